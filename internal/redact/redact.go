// Package redact makes safe what leaves abl for a reader: at a terminal, in a
// file, in a prompt. Secrets are taken out first, also where a write or a line
// ends in the middle of one and in the forms that programs turn them into; then
// what could move a cursor, hide text or look like a line of abl's own, since
// what is escaped could hide a part of a secret. A secret that is spelled
// backwards passes. What a text means is not known here.
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

// Shortest is the length in bytes from which a secret can be redacted. A
// shorter one turns up in innocent text by chance, and taking it out would tell
// where it is.
const Shortest = 8

// Redactor knows the secrets. The zero Redactor knows none.
type Redactor struct {
	forms [256][]form // by first byte, the longest first
	pairs [1 << 10]uint64
}

// form is one spelling of a secret and what is shown in its place.
type form struct {
	spelling []byte
	shown    string
}

// New returns a Redactor of the secrets, and how many of them are too short to
// be redacted. An empty secret is none, and is not counted.
func New(secrets ...string) (r *Redactor, refused int) {
	r = &Redactor{}
	seen := map[string]bool{}
	for _, secret := range secrets {
		if len(secret) < Shortest {
			refused += min(len(secret), 1)
			continue
		}
		for _, part := range parts(secret) {
			for _, spelling := range spellings(part) {
				if !seen[spelling] {
					seen[spelling] = true
					r.add(spelling, mark(secret))
				}
			}
		}
	}
	for i := range r.forms {
		slices.SortStableFunc(r.forms[i], func(a, b form) int { return len(b.spelling) - len(a.spelling) })
	}
	return r, refused
}

// Knows reports whether there is any secret to take out.
func (r *Redactor) Knows() bool {
	return slices.ContainsFunc(r.forms[:], func(f []form) bool { return len(f) > 0 })
}

func (r *Redactor) add(spelling, shown string) {
	r.forms[spelling[0]] = append(r.forms[spelling[0]], form{[]byte(spelling), shown})
	at := int(spelling[0])<<8 | int(spelling[1])
	r.pairs[at>>6] |= 1 << (at & 63)
}

// begins reports whether a form begins with these two bytes, or may, when the
// second one is the beginning of a line's end.
func (r *Redactor) begins(a, b byte) bool {
	at := int(a)<<8 | int(b)
	return r.pairs[at>>6]&(1<<(at&63)) != 0 || len(r.forms[a]) > 0 && (b == '\n' || b == '\r' || b == '\\')
}

// match returns how many bytes at the beginning of rest are a secret, 0 for
// none, and what is shown instead. more says that this depends on what follows.
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

// breaks end a line in the middle of a secret: base64 and fold do so, and what
// they print may stand in JSON, or in JSON within JSON.
var breaks = [][]byte{[]byte(`\r\n`), []byte(`\\n`), []byte("\r\n"), []byte(`\n`), []byte("\n")}

// walk returns how many bytes of rest spell the form, with at most one line end
// between two of its bytes; open says that rest is too short to tell.
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

// lineEnd is the length of the line end at the beginning of rest, 0 for none.
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

// Holds reports whether there is a secret in p.
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

// Bytes takes the secrets out of p, and returns p itself when there are none.
func (r *Redactor) Bytes(p []byte) []byte {
	if !r.Holds(p) {
		return p
	}
	return []byte(r.String(string(p)))
}

// String takes the secrets out of s.
func (r *Redactor) String(s string) string {
	if !r.Knows() {
		return s
	}
	var out strings.Builder // which does not fail
	w := secretWriter{r: r, to: &out, held: []byte(s)}
	w.Close()
	return out.String()
}

// secretWriter takes secrets out of what passes through it. It holds back the end of
// a write that may be the beginning of a secret, so Close must be called.
type secretWriter struct {
	r     *Redactor
	to    io.Writer
	held  []byte // not decided yet, no longer than a form and its line ends
	cover int    // bytes at the beginning of held that belong to a secret
	out   []byte
}

// Writer returns a writer to w without the secrets.
func (r *Redactor) Writer(w io.Writer) *secretWriter { return &secretWriter{r: r, to: w} }

// Write takes the next chunk.
func (w *secretWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	return len(p), w.pass(false)
}

// Close writes what was held back. It does not close the underlying writer,
// and the writer can be used on.
func (w *secretWriter) Close() error { return w.pass(true) }

// pass decides on every byte that it can. Secrets that overlap are covered to
// the end of the last one, and shown as the first.
func (w *secretWriter) pass(last bool) error {
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
		if w.cover = max(w.cover, n); w.cover > 0 {
			w.cover--
		} else {
			w.out = append(w.out, w.held[at])
		}
		at++
	}
	w.held = append(w.held[:0], w.held[at:]...)
	return drain(w.to, &w.out)
}

// skip passes the bytes on with which no secret begins, and counts them.
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

// mark is what is shown instead: enough to tell two keys apart, and nothing
// that means something in JSON, CSV or HTML.
func mark(secret string) string {
	text := strings.TrimSpace(secret)
	if last := text[max(0, len(text)-2):]; len(last) == 2 && made(last, small+capital+digits) {
		return "[secret …" + last + "]"
	}
	return "[secret]"
}

// leastLine is how long a line of a secret of several lines must be to be a
// secret by itself; the last line of a key in PEM may be a few letters.
const leastLine = 16

// parts are what is looked for of a secret: the whole, without the space around
// it, and each of its lines, for programs print line by line.
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

// spellings returns the forms in which programs print a secret: as it is, in
// JSON, in an address, in a page, in hex, and in base64 wherever in the encoded
// text it stands.
func spellings(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	quoted := strconv.Quote(secret)
	out := []string{secret, digits, strings.ToUpper(digits), html.EscapeString(secret), quoted[1 : len(quoted)-1]}
	// With and without what some encoders of JSON escape besides, and JSON within JSON,
	// as agents quote the output of their tools.
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

// unescaped undoes what encoders of JSON escape only to be safe in a page.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// jsonText is text as JSON, without the quotes around it. All text can be JSON.
func jsonText(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// ascii escapes what is not ASCII, as some encoders of JSON do.
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

// lowered has the digits after each percent sign in small letters.
func lowered(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(out)
}

// inBase64 is what is the same in every encoding of the secret with a number of
// bytes before it: the characters that no neighbour has a bit in.
func inBase64(enc *base64.Encoding, secret string, before int) string {
	const byteBits, charBits = 8, 6
	text := enc.EncodeToString(append(make([]byte, before), secret...))
	from := (before*byteBits + charBits - 1) / charBits
	to := (before + len(secret)) * byteBits / charBits
	return text[from:to]
}
