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

// Maximum size of the kept part of a body in bytes: keepBody for requests, maxBody for responses.
const (
	keepBody = 64 << 10
	maxBody  = 1 << 20
)

// Exchange is one request of the tests and the app's response.
type Exchange struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took_ns"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Sent   Body          `json:"sent"`

	SentHeader http.Header `json:"sent_header,omitempty"`

	Status int         `json:"status"` // 0: no response
	Header http.Header `json:"header,omitempty"`
	Got    Body        `json:"got"`

	Altered bool `json:"altered,omitempty"` // the tests got an altered response
	Left    bool `json:"left,omitempty"`    // the tests closed the connection before the end of the response
}

// Body is the body of a request or a response.
type Body struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Begins []byte `json:"begins,omitempty"` // at most keepBody, or maxBody
}

// maxKept is the maximum number of bytes kept of all bodies in transit.
const maxKept = 16 << 20

// recorder hashes and counts a body in transit and keeps its beginning.
type recorder struct {
	hash   hash.Hash
	bytes  int64
	begins []byte
	most   int           // maximum size of begins
	full   bool          // begins gets no more bytes
	kept   *atomic.Int64 // bytes kept of all bodies
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.bytes += int64(len(p))
	if n := min(len(p), r.most-len(r.begins)); !r.full {
		r.full = r.kept.Add(int64(n)) > maxKept
		if r.full {
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

// Asked reports whether x has a request that the contract names.
func (c Claim) Asked(x Exchange) bool {
	_, _, ok := c.request(x)
	return ok
}

// request returns the contract's request that x has, and its rank (see Rank).
func (c Claim) request(x Exchange) (r request, rank int, ok bool) {
	if c.program {
		return r, len(c.words), c.askedRun(x)
	}
	for _, one := range c.requests {
		if _, whole, n := one.matches(x); whole && (!ok || n > rank) {
			r, rank, ok = one, n, true
		}
	}
	return r, rank, ok
}

// Rank returns how specific the contract's request is for x: the number of words of a command, or
// of path segments that are literally equal. It returns -1 if x has another request.
func (c Claim) Rank(x Exchange) int {
	if _, rank, ok := c.request(x); ok {
		return rank
	}
	return -1
}

// AskedOtherwise reports whether x differs from a request of the contract only in headers or body.
func (c Claim) AskedOtherwise(x Exchange) bool {
	return slices.ContainsFunc(c.requests, func(r request) bool {
		target, whole, _ := r.matches(x)
		return target && !whole
	})
}

// Fits reports whether x has the request and the response that the contract names.
func (c Claim) Fits(x Exchange) bool { return c.Asked(x) && c.Misses(x) == "" }

// Trouble reports whether the contract requires a server error.
func (r response) Trouble() bool {
	return slices.ContainsFunc(r.statuses, func(s span) bool { return s.high >= 500 })
}

// Misses describes how the response of x differs from the contract, "" if it does not.
func (c Claim) Misses(x Exchange) string {
	if c.program {
		return c.missesRun(x)
	}
	echoes := c.echoes(x)
	if misses := c.missesHead(x, echoes); misses != "" {
		return misses
	}
	return c.missesBody(x, echoes)
}

// DidNotWait reports whether the client closed the connection before it could see that the response
// differs from the contract. A client that got a wrong status and read no body, as curl -f does, did
// wait.
func (c Claim) DidNotWait(x Exchange) bool {
	echoes := c.echoes(x)
	return x.Left && (x.Status == 0 || c.missesHead(x, echoes) == "" && c.missesBody(x, echoes) != "")
}

// missesHead describes how status and headers of x differ from the contract after a request with
// these echoes, "" if they do not.
func (r response) missesHead(x Exchange, echoes []echo) string {
	switch {
	case x.Status == 0:
		return "no response"
	case !r.allows(x.Status):
		return fmt.Sprint(x.Status)
	}
	for _, h := range r.headers {
		if !h.isIn(x, echoes) {
			return fmt.Sprintf("%d %s", x.Status, h.missing())
		}
	}
	return ""
}

// missesBody is missesHead for the body. It returns "" for a body that abl cannot decode.
func (r response) missesBody(x Exchange, echoes []echo) string {
	switch {
	case !r.ofBody():
		return ""
	case r.form.empty && x.Got.Bytes > 0:
		return fmt.Sprintf("%d with a body", x.Status)
	}
	if len(x.Got.Begins) < int(min(x.Got.Bytes, maxBody)) { // the app sent too much at the same time
		return fmt.Sprintf("%d with a body that abl could not keep, because too many were in transit", x.Status)
	}
	body, ok := x.content()
	if !ok {
		return ""
	}
	doc, isDoc := decode(body)
	if r.form.json && !isDoc {
		return fmt.Sprintf("%d without a JSON document", x.Status)
	}
	if r.json != nil && (!isDoc || !r.json.fits(doc, echoes, false)) {
		return fmt.Sprintf("%d with a different body", x.Status)
	}
	for _, text := range r.texts {
		switch fits := text.fits(body, doc, isDoc, echoes); {
		case fits:
		case text.absent:
			return fmt.Sprintf("%d with a body that has %s", x.Status, text.fill(echoes))
		case text.whole && text.fill(echoes).isIn(string(body)):
			return fmt.Sprintf("%d with a body that is not only %s", x.Status, text.fill(echoes))
		default:
			return fmt.Sprintf("%d with a body without %s", x.Status, text.fill(echoes))
		}
	}
	return ""
}

// content returns the decoded body of the response. It returns false if there is no body or abl
// cannot decode it. A body of plain text counts as decoded, whatever its Content-Encoding says.
func (x Exchange) content() (body []byte, ok bool) {
	if x.Method == http.MethodHead || streamed.MatchString(x.Header.Get("Content-Type")) ||
		x.Got.Bytes > int64(len(x.Got.Begins)) {
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

// Says reports whether the kept part of the app's response contains text. It decodes base64,
// because the broker returns the output and the files of a program in base64. The last JSON string
// may lack its end.
func (x Exchange) Says(text string) bool {
	body, _ := x.content()
	if bytes.Contains(body, []byte(text)) || bytes.Contains(x.Got.Begins, []byte(text)) {
		return true
	}
	for word := range bytes.SplitSeq(x.Got.Begins, []byte{'"'}) {
		// With an error, data has the part before it.
		data, _ := base64.RawStdEncoding.AppendDecode(nil, bytes.TrimRight(word, "="))
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

// Unread returns the reason why abl could not compare the body with the claim, "" if it could.
func (c Claim) Unread(x Exchange) string {
	if _, ok := x.content(); ok || c.program || c.json == nil && len(c.texts) == 0 && !c.form.json {
		return ""
	}
	switch encoding := x.Header.Get("Content-Encoding"); {
	case x.Method == http.MethodHead:
		return "a response to HEAD has no body"
	case streamed.MatchString(x.Header.Get("Content-Type")):
		if c.json == nil && !slices.ContainsFunc(c.texts, func(p bodyText) bool { return p.absent || !p.isIn(string(x.Got.Begins)) }) {
			return ""
		}
		return "it is a stream"
	case x.Got.Bytes > maxBody:
		return fmt.Sprintf("it is larger than %d bytes", maxBody)
	case encoding != "":
		return fmt.Sprintf("its encoding is %q", wording.Cut(wording.OneLine(encoding), 40))
	}
	return "it is not text"
}

// streamed matches content types with many documents or without an end.
var streamed = regexp.MustCompile(`(?i)event-stream|ndjson|jsonl|json-seq`)

var tag = regexp.MustCompile(`<[^>]*>`)

// readings returns the body without HTML entities, the visible text of the page, and the values of
// the JSON document.
func readings(body []byte) []string {
	if !utf8.Valid(body) { // decode ISO-8859-1: one byte is one character
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
