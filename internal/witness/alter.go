package witness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Alteration is what of an answer that fits a contract is altered, to see whether its
// test notices.
type Alteration string

// The two alterations.
const (
	OfStatus Alteration = "status" // an error becomes a success, all else an error
	OfNamed  Alteration = "named"  // all that the contract names besides is taken out
)

// Altering alters the answers that fit one of the claims.
type Altering struct {
	What   Alteration
	Claims []Claim
}

// maxAltered is the longest body that is altered, in bytes; longer ones pass.
const maxAltered = 1 << 20

// answer is the answer altered, nil where it stays: it fits no claim, or has nothing to alter.
func (a Altering) answer(x Exchange, resp *http.Response, body []byte) []byte {
	x.Got = Body{Bytes: int64(len(body)), Begins: body[:min(len(body), keepBody)]}
	resp.Header = resp.Header.Clone() // the record keeps the app's own
	altered := false
	for _, c := range a.Claims {
		switch {
		case !c.Alters(a.What, x):
		case a.What == OfStatus:
			resp.StatusCode, altered = far(x.Status), true
		default:
			less := c.without(resp.Header, body)
			altered = altered || len(c.headers) > 0 || !bytes.Equal(less, body)
			body = less
		}
	}
	if !altered {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection"} {
		resp.Header.Del(name)
	}
	_ = resp.Header.Write(&b)
	if x.Method != http.MethodHead && resp.StatusCode != http.StatusNoContent {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
		return b.Bytes()
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// without takes what the claim names out of an answer.
func (c Claim) without(h http.Header, body []byte) []byte {
	for _, header := range c.headers {
		h.Del(header.name)
	}
	if doc, ok := decode(body); ok && c.json != nil {
		if data, err := json.Marshal(c.json.without(doc)); err == nil {
			body = data
		}
	}
	for _, text := range c.texts {
		body = []byte(strings.NewReplacer(text, "", html.EscapeString(text), "").Replace(string(body)))
	}
	return body
}

// Names says that the claim names what is altered.
func (c Claim) Names(what Alteration) bool {
	if what == OfStatus {
		return len(c.statuses) > 0
	}
	return len(c.headers)+len(c.texts) > 0 || c.json != nil
}

// Alters says whether a test should notice the alteration of an exchange: it fits the
// claim, and altered it would not.
func (c Claim) Alters(what Alteration, x Exchange) bool {
	return c.Names(what) && c.Fits(x) && (what == OfNamed || !slices.Contains(c.statuses, far(x.Status)))
}

// far is the status that another one becomes.
func far(status int) int {
	if status >= 400 {
		return http.StatusOK
	}
	return http.StatusInternalServerError
}

// Altered tells what became of an answer: "the 201 to POST /notes becomes 500".
func (c Claim) Altered(what Alteration, x Exchange) string {
	if what == OfStatus {
		return fmt.Sprintf("the %d to %s becomes %d", x.Status, x.Request(), far(x.Status))
	}
	var all []string
	if c.json != nil {
		for _, f := range c.json.fields {
			all = append(all, f.key)
		}
		if len(all) == 0 {
			all = append(all, "the body")
		}
	}
	for _, h := range c.headers {
		all = append(all, "the header "+http.CanonicalHeaderKey(h.name))
	}
	for _, text := range c.texts {
		all = append(all, fmt.Sprintf("%q", text))
	}
	return fmt.Sprintf("%s is taken out of the %d to %s", strings.Join(all, ", "), x.Status, x.Request())
}

var acceptEncoding = regexp.MustCompile(`(?im)^accept-encoding:.*\n`)

// held keeps what passes until it is known whether it is to be altered, up to maxAltered.
type held struct {
	to    io.Writer
	bytes []byte
	over  bool // it was too long and has passed
}

func (h *held) Write(p []byte) (int, error) {
	if !h.over && len(h.bytes)+len(p) <= maxAltered {
		h.bytes = append(h.bytes, p...)
		return len(p), nil
	}
	if !h.over {
		h.over = true
		if _, err := h.to.Write(h.bytes); err != nil {
			return 0, err
		}
	}
	return h.to.Write(p)
}

// alter passes on an answer's body behind its head, altered where that is asked for. A
// stream is left alone.
func (c *conn) alter(x *turn, resp *http.Response, raw []byte, f framing) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if kind == "text/event-stream" {
		if _, err := c.client.Write(raw); err != nil {
			return err
		}
		return copyBody(c.client, &x.got, c.fromApp, f)
	}
	whole, said := held{to: c.client}, held{to: io.Discard}
	_, _ = whole.Write(raw)
	err := copyBody(&whole, io.MultiWriter(&x.got, &said), c.fromApp, f)
	if whole.over {
		return err
	}
	out := whole.bytes
	if !said.over && err == nil {
		if altered := c.proxy.Altering.answer(x.Exchange, resp, said.bytes); altered != nil {
			out, x.Altered = altered, true
		}
	}
	if _, failed := c.client.Write(out); failed != nil {
		return failed
	}
	return err
}
