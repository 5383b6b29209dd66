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

// keepBody is how much of a body an exchange keeps, in bytes.
const keepBody = 64 << 10

// Exchange is one request of the tests with the app's answer.
type Exchange struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took_ns"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Sent   Body          `json:"sent"`
	Status int           `json:"status"` // 0: no answer came
	Header http.Header   `json:"header,omitempty"`
	Got    Body          `json:"got"`

	Altered bool `json:"altered,omitempty"` // the tests got another answer
}

// Request is what was asked, on one line of a report: tests may ask for anything.
func (x Exchange) Request() string {
	return wording.Cut(wording.OneLine(x.Method+" "+x.Target), 200)
}

// Body is what was sent in one direction.
type Body struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Begins []byte `json:"begins,omitempty"` // at most keepBody
}

// maxKept is how much is kept of all bodies that are under way, in bytes.
const maxKept = 16 << 20

// recorder is a body while it passes.
type recorder struct {
	hash   hash.Hash
	bytes  int64
	begins []byte
	full   bool          // no more is kept
	kept   *atomic.Int64 // of all bodies
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.bytes += int64(len(p))
	if n := min(len(p), keepBody-len(r.begins)); !r.full {
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
	if c.program {
		return c.askedRun(x)
	}
	return slices.ContainsFunc(c.requests, func(r request) bool { return r.asked(x.Method, x.Target) })
}

// Fits says whether the exchange shows what the contract says.
func (c Claim) Fits(x Exchange) bool { return c.Asked(x) && c.Misses(x) == "" }

// Trouble says that the contract itself asks for an error of the app's.
func (c Claim) Trouble() bool {
	return slices.ContainsFunc(c.statuses, func(status int) bool { return status >= 500 })
}

// Misses says what the answer lacks of what the contract names, "" where it fits.
func (c Claim) Misses(x Exchange) string {
	switch {
	case c.program:
		return c.missesRun(x)
	case x.Status == 0:
		return "no answer"
	case len(c.statuses) > 0 && !slices.Contains(c.statuses, x.Status):
		return fmt.Sprint(x.Status)
	}
	for _, h := range c.headers {
		if !slices.ContainsFunc(x.Header.Values(h.name), func(v string) bool {
			return strings.Contains(strings.ToLower(v), strings.ToLower(h.has))
		}) {
			return strings.TrimSpace(fmt.Sprintf("%d and no header %s %s", x.Status, http.CanonicalHeaderKey(h.name), h.has))
		}
	}
	if c.json == nil && len(c.texts) == 0 {
		return ""
	}
	if len(x.Got.Begins) < int(min(x.Got.Bytes, keepBody)) { // many were sent at a time, or too many: nobody has to
		return fmt.Sprintf("%d and a body that was too much to keep beside others", x.Status)
	}
	body, ok := x.content()
	if !ok {
		return ""
	}
	if c.json != nil {
		if doc, ok := decode(body); !ok || !c.json.fits(doc) {
			return fmt.Sprintf("%d and another body", x.Status)
		}
	}
	for _, text := range c.texts {
		has := func(body string) bool { return strings.Contains(body, text) }
		if !has(string(body)) && !slices.ContainsFunc(readings(body), has) {
			return fmt.Sprintf("%d and a body without %q", x.Status, text)
		}
	}
	return ""
}

// maxUnpacked is the longest body that is unpacked, in bytes.
const maxUnpacked = 1 << 20

// content is the body that was answered, unpacked; ok is false where there is none, or none
// that can be read. A body of text is not packed, whatever the app says of it.
func (x Exchange) content() (body []byte, ok bool) {
	if x.Method == http.MethodHead || stream.MatchString(x.Header.Get("Content-Type")) || x.Got.Bytes > int64(len(x.Got.Begins)) {
		return nil, false
	}
	if strings.Contains(strings.ToLower(x.Header.Get("Content-Encoding")), "gzip") {
		if z, err := gzip.NewReader(bytes.NewReader(x.Got.Begins)); err == nil {
			body, err = io.ReadAll(io.LimitReader(z, maxUnpacked+1))
			return body, err == nil && len(body) <= maxUnpacked
		}
	}
	binary := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) }
	return x.Got.Begins, x.Header.Get("Content-Encoding") == "" || !bytes.ContainsFunc(x.Got.Begins, binary)
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

// Read says whether the body was held against all that the claim names of it.
func (c Claim) Read(x Exchange) bool {
	_, ok := x.content()
	return ok || c.json == nil && len(c.texts) == 0
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
