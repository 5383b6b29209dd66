// Package redact makes text safe that abl shows at a terminal, stores in a file or sends in a
// prompt.
//
// It first removes secrets, also if a write or a line ends inside one, and in the encodings that
// programs use. Then it escapes characters that move the cursor, hide text or make it look like a
// line of abl. In the other order an escape could hide a part of a secret. It does not find
// reversed secrets.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Shortest is the minimum length of a secret in bytes. A shorter one occurs in other text by
// chance, and its removal would reveal it.
const Shortest = 8

// Redactor removes secrets. The zero Redactor has no secrets.
type Redactor struct {
	forms [256][]form // by first byte
	pairs [1 << 10]uint64
}

// form is one encoding of a secret and its replacement.
type form struct {
	spelling []byte
	shown    string
}

// New returns a Redactor of the secrets. It ignores secrets shorter than Shortest.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	seen := map[string]bool{}
	for _, secret := range secrets {
		if len(secret) < Shortest {
			continue
		}
		for _, part := range parts(secret) {
			for _, spelling := range spellings(part) {
				if !seen[spelling] {
					seen[spelling] = true
					r.add(spelling, replacement(secret))
				}
			}
		}
	}
	return r
}

// Knows reports whether the Redactor has any secret.
func (r *Redactor) Knows() bool {
	return slices.ContainsFunc(r.forms[:], func(f []form) bool { return len(f) > 0 })
}

func (r *Redactor) add(spelling, shown string) {
	r.forms[spelling[0]] = append(r.forms[spelling[0]], form{[]byte(spelling), shown})
	at := int(spelling[0])<<8 | int(spelling[1])
	r.pairs[at>>6] |= 1 << (at & 63)
}

// begins reports whether a form may begin with these two bytes. The second one may belong to a line
// end.
func (r *Redactor) begins(a, b byte) bool {
	at := int(a)<<8 | int(b)
	return r.pairs[at>>6]&(1<<(at&63)) != 0 || len(r.forms[a]) > 0 && (b == '\n' || b == '\r' || b == '\\')
}

// match returns the length of the secret at the beginning of rest, or 0, and its replacement. more
// means that the result depends on the next bytes.
func (r *Redactor) match(rest []byte) (n int, shown string, more bool) {
	for _, f := range r.forms[rest[0]] {
		length, open := f.walk(rest)
		if length > n {
			n, shown = length, f.shown
		}
		more = more || open
	}
	return n, shown, more
}

// breaks are the line ends that may occur inside a secret. base64 and fold insert them, and their
// output may be in JSON, or in JSON within JSON.
var breaks = [][]byte{[]byte(`\r\n`), []byte(`\\n`), []byte("\r\n"), []byte(`\n`), []byte("\n")}

// walk returns the number of bytes of rest that are the form, with at most one line end between two
// of its bytes. open means that rest is too short to decide.
func (f form) walk(rest []byte) (n int, open bool) {
	at := 0
	for i, want := range f.spelling {
		if i > 0 && at < len(rest) && rest[at] != want {
			length, open := lineEnd(rest[at:])
			if open {
				return 0, true
			}
			at += length
		}
		switch {
		case at == len(rest):
			return 0, true
		case rest[at] != want:
			return 0, false
		}
		at++
	}
	return at, false
}

// lineEnd returns the length of the line end at the beginning of rest, or 0.
func lineEnd(rest []byte) (n int, open bool) {
	for _, b := range breaks {
		switch {
		case bytes.HasPrefix(rest, b):
			return len(b), false
		case bytes.HasPrefix(b, rest):
			return 0, true
		}
	}
	return 0, false
}

// Holds reports whether p contains a secret.
func (r *Redactor) Holds(p []byte) bool {
	for i := range max(len(p)-1, 0) {
		if r.begins(p[i], p[i+1]) {
			if n, _, _ := r.match(p[i:]); n > 0 {
				return true
			}
		}
	}
	return false
}

// Bytes removes the secrets from p. It returns p itself if it contains none.
func (r *Redactor) Bytes(p []byte) []byte {
	if !r.Holds(p) {
		return p
	}
	return []byte(r.String(string(p)))
}

// String removes the secrets from s.
func (r *Redactor) String(s string) string {
	if !r.Knows() {
		return s
	}
	var out strings.Builder // which does not fail
	w := secretWriter{r: r, to: &out, held: []byte(s)}
	w.Close()
	return out.String()
}

// secretWriter removes secrets from its input. It keeps the end of a write that may begin a secret,
// so Close must be called.
type secretWriter struct {
	r     *Redactor
	to    io.Writer
	held  []byte // undecided input, at most as long as a form with line ends
	cover int    // number of bytes at the beginning of held that belong to a secret
	out   []byte
}

// Writer returns a writer to w that removes the secrets.
func (r *Redactor) Writer(w io.Writer) *secretWriter { return &secretWriter{r: r, to: w} }

// Write processes the next chunk.
func (w *secretWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	return len(p), w.decide(false)
}

// Close writes the remaining input. It does not close the underlying writer, and Write may be
// called again.
func (w *secretWriter) Close() error { return w.decide(true) }

// decide decides on as many bytes as possible. Of overlapping secrets it covers all bytes and shows
// the replacement of the first.
func (w *secretWriter) decide(last bool) error {
	at := 0
	for at < len(w.held) {
		if w.cover == 0 {
			at += w.skip(w.held[at:], last)
		}
		if at == len(w.held) {
			break
		}
		n, shown, more := w.r.match(w.held[at:])
		if more && !last {
			break
		}
		if w.cover == 0 && n > 0 {
			w.out = append(w.out, shown...)
		}
		w.cover = max(w.cover, n)
		if w.cover > 0 {
			w.cover--
		} else {
			w.out = append(w.out, w.held[at])
		}
		at++
	}
	w.held = append(w.held[:0], w.held[at:]...)
	return drain(w.to, &w.out)
}

// skip passes on the bytes at the beginning of rest with which no secret begins. It returns their
// number.
func (w *secretWriter) skip(rest []byte, last bool) int {
	n, end := 0, len(rest)-1
	for n < end && !w.r.begins(rest[n], rest[n+1]) {
		n++
	}
	if n == end && (last || len(w.r.forms[rest[n]]) == 0) {
		n++
	}
	w.out = append(w.out, rest[:n]...)
	return n
}

// drain writes out to w and empties it.
func drain(w io.Writer, out *[]byte) (err error) {
	if len(*out) > 0 {
		_, err = w.Write(*out)
	}
	*out = (*out)[:0]
	return err
}

// replacement returns the replacement of a secret. It distinguishes keys and has no special characters of
// JSON, CSV or HTML.
func replacement(secret string) string {
	text := strings.TrimSpace(secret)
	if last := text[max(0, len(text)-2):]; len(last) == 2 && consistsOf(last, small+capital+digits) {
		return "[secret …" + last + "]"
	}
	return "[secret]"
}

// leastLine is the minimum length of a line that counts as a separate secret. The last line of a
// PEM key may be a few letters.
const leastLine = 16

// parts returns the parts of a secret to search: the whole secret, the secret without surrounding
// space, and each line, because programs print line by line.
func parts(secret string) []string {
	all := []string{secret}
	if trimmed := strings.TrimSpace(secret); len(trimmed) >= Shortest {
		all = append(all, trimmed)
	}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= leastLine && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// spellings returns the forms in which programs print a secret: literally, in JSON, in a URL, in
// HTML, in hex, and in base64 at any offset.
func spellings(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	quoted := strconv.Quote(secret)
	out := []string{secret, digits, strings.ToUpper(digits), html.EscapeString(secret), quoted[1 : len(quoted)-1]}
	// With and without the optional escapes of JSON encoders, and JSON within JSON,
	// because agents quote the output of their tools.
	strict := jsonText(secret)
	loose := unescaped.Replace(strict)
	out = append(out, strict, loose, strings.ReplaceAll(loose, "/", `\/`), strings.ReplaceAll(strict, "/", `\/`),
		ascii(loose), jsonText(strict), jsonText(loose), unescaped.Replace(jsonText(loose)))
	query := url.QueryEscape(secret)
	for _, s := range []string{query, url.PathEscape(secret), strings.ReplaceAll(query, "+", "%20")} {
		out = append(out, s, lowered(s))
	}
	for before := range 3 {
		out = append(out, inBase64(base64.RawStdEncoding, secret, before), inBase64(base64.RawURLEncoding, secret, before))
	}
	return out
}

// unescaped reverts the escapes that JSON encoders use only for HTML.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// jsonText returns text as a JSON string without the quotes.
func jsonText(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// ascii escapes non-ASCII characters like some JSON encoders.
func ascii(text string) string {
	var out []byte
	for _, r := range text {
		if r < 0x80 {
			out = append(out, byte(r))
		} else {
			out = append(out, escaped(r)...)
		}
	}
	return string(out)
}

// lowered converts the hexadecimal digits after percent signs to lower case.
func lowered(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(out)
}

// inBase64 returns the part of the encoded secret that does not depend on the bytes around it, if
// before is the number of bytes before it modulo 3.
func inBase64(enc *base64.Encoding, secret string, before int) string {
	const byteBits, charBits = 8, 6
	text := enc.EncodeToString(append(make([]byte, before), secret...))
	from := (before*byteBits + charBits - 1) / charBits
	to := (before + len(secret)) * byteBits / charBits
	return text[from:to]
}
