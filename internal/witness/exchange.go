package witness

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"abl/internal/wording"
)

// How much of a body an exchange keeps, in bytes: of what was sent, and of what was got.
const (
	keepBody = 64 << 10
	maxBody  = 1 << 20
)

// Exchange is one request of the tests with the app's answer.
type Exchange struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took_ns"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Sent   Body          `json:"sent"`

	SentHeader http.Header `json:"sent_header,omitempty"`

	Status int         `json:"status"` // 0: no answer came
	Header http.Header `json:"header,omitempty"`
	Got    Body        `json:"got"`

	Altered bool `json:"altered,omitempty"` // the tests got another answer
	Left    bool `json:"left,omitempty"`    // the tests closed the connection before the answer had come whole
}

// Body is what was sent in one direction.
type Body struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Begins []byte `json:"begins,omitempty"` // at most keepBody, or maxBody
}

// maxKept is how much is kept of all bodies that are under way, in bytes.
const maxKept = 16 << 20

// recorder is a body while it passes.
type recorder struct {
	hash   hash.Hash
	bytes  int64
	begins []byte
	most   int           // bytes that begins may have
	full   bool          // no more is kept
	kept   *atomic.Int64 // of all bodies
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.bytes += int64(len(p))
	if n := min(len(p), r.most-len(r.begins)); !r.full {
		if r.full = r.kept.Add(int64(n)) > maxKept; r.full {
			r.kept.Add(-int64(n))
			return r.hash.Write(p)
		}
		r.begins = append(r.begins, p[:n]...)
	}
	return r.hash.Write(p)
}

func (r *recorder) body() Body {
	if r.hash == nil {
		return Body{}
	}
	r.kept.Add(-int64(len(r.begins)))
	return Body{r.bytes, hex.EncodeToString(r.hash.Sum(nil)), r.begins}
}

// Asked says whether the exchange has a request that the contract names.
func (c Claim) Asked(x Exchange) bool {
	_, _, ok := c.request(x)
	return ok
}

// request finds the request of the contract that an exchange has. rank says how exactly.
func (c Claim) request(x Exchange) (r request, rank int, ok bool) {
	if c.program {
		return r, 0, c.askedRun(x)
	}
	for _, one := range c.requests {
		if why, n := one.asked(x); why == isAsked && (!ok || n > rank) {
			r, rank, ok = one, n, true
		}
	}
	return r, rank, ok
}

// Rank says how exactly an exchange has the path of the contract's request: how many of its parts
// are the contract's own, and not in the place of something open. It is -1 for another request.
func (c Claim) Rank(x Exchange) int {
	if _, rank, ok := c.request(x); ok {
		return rank
	}
	return -1
}

// AskedOtherwise says that only the headers or the body of a request are not the contract's.
func (c Claim) AskedOtherwise(x Exchange) bool {
	return slices.ContainsFunc(c.requests, func(r request) bool {
		why, _ := r.asked(x)
		return why == others
	})
}

// echoes are the texts that this exchange's request has in the place of the contract's.
func (c Claim) echoes(x Exchange) []echo {
	r, _, ok := c.request(x)
	if !ok || r.body == nil {
		return nil
	}
	doc, _ := decode(x.Sent.Begins)
	return r.body.echoes(doc)
}

// Fits says whether the exchange shows what the contract says.
func (c Claim) Fits(x Exchange) bool { return c.Asked(x) && c.Misses(x) == "" }

// Trouble says that the contract itself asks for an error of the app's.
func (c Claim) Trouble() bool {
	return slices.ContainsFunc(c.statuses, func(s span) bool { return s.high >= 500 })
}

// Misses says what the answer lacks of what the contract names, "" where it fits.
func (c Claim) Misses(x Exchange) string {
	if c.program {
		return c.missesRun(x)
	}
	if misses := c.missesHead(x); misses != "" {
		return misses
	}
	return c.missesBody(x)
}

// missesHead says likewise what its head lacks.
func (c Claim) missesHead(x Exchange) string {
	switch {
	case x.Status == 0:
		return "no answer"
	case !c.says(x.Status):
		return fmt.Sprint(x.Status)
	}
	for _, h := range c.headers {
		if !h.in(x.Header) {
			return strings.TrimSpace(fmt.Sprintf("%d and no header %s %s", x.Status, http.CanonicalHeaderKey(h.name), h.has))
		}
	}
	return ""
}

// missesBody says likewise what its body lacks. A body that cannot be read lacks nothing.
func (c Claim) missesBody(x Exchange) string {
	if c.json == nil && len(c.texts) == 0 {
		return ""
	}
	if len(x.Got.Begins) < int(min(x.Got.Bytes, maxBody)) { // many were sent at a time, or too many: nobody has to
		return fmt.Sprintf("%d and a body that was too much to keep beside others", x.Status)
	}
	body, ok := x.content()
	if !ok {
		return ""
	}
	echoes := c.echoes(x)
	doc, isDoc := decode(body)
	if c.json != nil && (!isDoc || !c.json.fits(doc, echoes)) {
		return fmt.Sprintf("%d and another body", x.Status)
	}
	for _, text := range c.texts {
		text = text.with(echoes)
		if !text.in(string(body)) && !slices.ContainsFunc(readings(body), text.in) && !(isDoc && text.field(doc)) {
			return fmt.Sprintf("%d and a body without %s", x.Status, text)
		}
	}
	return ""
}

// content is the body that was answered, unpacked; ok is false where there is none, or none
// that can be read. A body of text is not packed, whatever the app says of it.
func (x Exchange) content() (body []byte, ok bool) {
	if x.Method == http.MethodHead || stream.MatchString(x.Header.Get("Content-Type")) || x.Got.Bytes > int64(len(x.Got.Begins)) {
		return nil, false
	}
	if x.gzipped() {
		if z, err := gzip.NewReader(bytes.NewReader(x.Got.Begins)); err == nil {
			body, err = io.ReadAll(io.LimitReader(z, maxBody+1))
			return body, err == nil && len(body) <= maxBody
		}
	}
	binary := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) }
	return x.Got.Begins, x.Header.Get("Content-Encoding") == "" || !bytes.ContainsFunc(x.Got.Begins, binary)
}

func (x Exchange) gzipped() bool {
	return strings.Contains(strings.ToLower(x.Header.Get("Content-Encoding")), "gzip")
}

// packed begins a JSON string in which bytes may be, which may be cut off.
var packed = regexp.MustCompile(`"[A-Za-z0-9+/]{4,}`)

// Says says whether a text stands in what the app answered, as far as that was kept. What a
// program printed, and its files, are base64 in its broker's answer.
func (x Exchange) Says(text string) bool {
	body, _ := x.content()
	said := [][]byte{body, x.Got.Begins}
	for _, word := range packed.FindAllString(string(x.Got.Begins), -1) {
		data, _ := base64.RawStdEncoding.DecodeString(word[1:]) // as far as it goes
		said = append(said, data)
	}
	return slices.ContainsFunc(said, func(data []byte) bool { return bytes.Contains(data, []byte(text)) })
}

// Unread says why the body could not be held against all that the claim names of it, "" where it was.
func (c Claim) Unread(x Exchange) string {
	if _, ok := x.content(); ok || c.json == nil && len(c.texts) == 0 {
		return ""
	}
	switch encoding := x.Header.Get("Content-Encoding"); {
	case x.Method == http.MethodHead:
		return "an answer to HEAD has no body"
	case stream.MatchString(x.Header.Get("Content-Type")):
		in := func(w written) bool { return w.in(string(x.Got.Begins)) }
		if c.json == nil && !slices.ContainsFunc(c.texts, func(w written) bool { return !in(w) }) {
			return ""
		}
		return "it is a stream"
	case x.Got.Bytes > maxBody:
		return fmt.Sprintf("it has more than %d bytes", maxBody)
	case encoding != "":
		return "its encoding is " + wording.Cut(wording.OneLine(encoding), 40)
	}
	return "it is not text"
}

// stream is the kind of a body that is many, or never at its end.
var stream = regexp.MustCompile(`(?i)event-stream|ndjson|jsonl|json-seq`)

var tag = regexp.MustCompile(`<[^>]*>`)

// readings are a body without entities, as a page shows it, and as what its JSON says.
func readings(body []byte) []string {
	if !utf8.Valid(body) { // ISO-8859-1, which has a byte for each letter
		letters := make([]rune, len(body))
		for i, b := range body {
			letters[i] = rune(b)
		}
		body = []byte(string(letters))
	}
	page := html.UnescapeString(string(body))
	shown := strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(string(body), ""))), " ")
	doc, _ := decode(body)
	return []string{page, shown, fmt.Sprint(doc)}
}

func decode(body []byte) (doc any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return doc, d.Decode(&doc) == nil && !d.More()
}
