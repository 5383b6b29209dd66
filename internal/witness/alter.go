package witness

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Alteration is a change of a response that fits a contract. The contract's test should fail
// because of it.
type Alteration string

// The two alterations.
const (
	OfStatus Alteration = "status" // an error becomes a success, any other status an error
	OfNamed  Alteration = "named"  // everything else that the contract names is removed
)

// Altering is the list of responses to alter.
type Altering struct {
	Answers []Altered `json:"answers"`
}

// Altered are the answers that fit a claim, with what is altered of them.
type Altered struct {
	Claim Claim      `json:"claim"`
	What  Alteration `json:"what"`
}

// maxAltered is the maximum size of an altered body in bytes. Larger bodies pass unchanged.
const maxAltered = maxBody

var (
	statusLine    = regexp.MustCompile(`^(HTTP/1\.\d) [^\r\n]*`)
	contentLength = regexp.MustCompile(`(?im)^(content-length:\s*)\d+`)
)

// answer returns the altered response, or nil if it fits no claim or has nothing to alter. It
// keeps the rest of the head byte by byte. framed is the body as received, with chunk headers.
func (a Altering) answer(x Exchange, head, framed, body []byte, chunked bool) []byte {
	x.Got = Body{Bytes: int64(len(body)), Begins: body}
	plain, packed := body, false
	if x.gzipped() {
		if content, ok := x.content(); ok && !bytes.Equal(content, body) {
			plain, packed = content, true
		}
	}
	less, altered := plain, false
	var ofRun []Alteration
	for _, one := range a.Answers {
		switch c := one.Claim; {
		case !c.Alters(one.What, x):
		case c.program:
			ofRun = append(ofRun, one.What)
			less, altered = x.alteredRun(ofRun), true
		case one.What == OfStatus:
			status := fmt.Sprintf("$1 %d %s", alteredStatus(x.Status), http.StatusText(alteredStatus(x.Status)))
			if x.Method != http.MethodHead && (x.Status == http.StatusNoContent || x.Status == http.StatusNotModified) {
				status += "\r\nContent-Length: 0" // 204 and 304 need no length, the new status does
			}
			head, altered = statusLine.ReplaceAll(head, []byte(status)), true
		default:
			before := head
			head, less = c.without(head, less, c.echoes(x))
			altered = altered || !bytes.Equal(before, head) || !bytes.Equal(less, plain)
		}
	}
	switch {
	case !altered:
		return nil
	case bytes.Equal(less, plain):
		return slices.Concat(head, framed)
	case packed:
		less = gzipped(less)
	}
	switch {
	case !chunked:
		return slices.Concat(contentLength.ReplaceAll(head, fmt.Appendf(nil, "${1}%d", len(less))), less)
	case len(less) > 0:
		less = fmt.Appendf(nil, "%x\r\n%s\r\n", len(less), less)
	}
	return slices.Concat(head, less, []byte("0\r\n\r\n"))
}

// gzipped compresses body with gzip.
func gzipped(body []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body) // a bytes.Buffer returns no error
	_ = z.Close()
	return packed.Bytes()
}

// mayAlter reports whether a claim may alter the response to x, judged by the request and the head of the
// response.
func (a Altering) mayAlter(x Exchange) bool {
	return slices.ContainsFunc(a.Answers, func(one Altered) bool {
		c := one.Claim
		if c.program {
			return x.Target == RunTarget
		}
		return c.Names(one.What) && c.Asked(x) && c.missesHead(x, c.echoes(x)) == "" &&
			(one.What == OfNamed || !c.allows(alteredStatus(x.Status)))
	})
}

// without removes the values that the claim names from a response.
func (r response) without(head, body []byte, echoes []echo) ([]byte, []byte) {
	for _, header := range r.headers {
		if header.absent {
			continue
		}
		head = regexp.MustCompile(`(?im)^`+header.name+`:.*\n`).ReplaceAll(head, nil)
	}
	if doc, ok := decode(body); ok && r.json != nil {
		if data, err := json.Marshal(r.json.without(doc)); err == nil {
			body = data
		}
	}
	for _, p := range r.texts {
		if p.absent {
			continue
		}
		text := p.fill(echoes)
		escaped := written{html.EscapeString(text.text), text.vars}
		body = []byte(escaped.removeFrom(text.removeFrom(string(body))))
	}
	return head, body
}

// Names reports whether the claim names a value that the alteration changes.
func (c Claim) Names(what Alteration) bool {
	if what == OfStatus {
		return len(c.statuses) > 0
	}
	present := func(h namedHeader) bool { return !h.absent }
	return slices.ContainsFunc(c.headers, present) || c.named() || c.leaves
}

// Alters reports whether a test should notice the alteration of x: x fits the claim, but would not
// fit it after the alteration.
func (c Claim) Alters(what Alteration, x Exchange) bool {
	return c.Names(what) && c.Fits(x) && (what == OfNamed || !c.allows(alteredStatus(x.Status)))
}

// alteredStatus returns the status that replaces status.
func alteredStatus(status int) int {
	if status >= 400 {
		return http.StatusOK
	}
	return http.StatusInternalServerError
}

// Altered selects the responses that fit Claim and says how to alter them.
func (c Claim) Altered(what Alteration, x Exchange) string {
	if c.program {
		return x.describeAlteredRun(what)
	}
	if what == OfStatus {
		return fmt.Sprintf("the %d to %s becomes %d", x.Status, x.Request(), alteredStatus(x.Status))
	}
	var all []string
	if c.json != nil {
		for _, f := range c.json.fields {
			all = append(all, f.key)
		}
		if len(all) == 0 {
			all = append(all, "body")
		}
	}
	for _, h := range c.headers {
		if !h.absent {
			all = append(all, "header "+http.CanonicalHeaderKey(h.name))
		}
	}
	for _, text := range c.texts {
		if !text.absent {
			all = append(all, text.String())
		}
	}
	return fmt.Sprintf("the %d to %s has no %s", x.Status, x.Request(), strings.Join(all, ", "))
}

var acceptEncoding = regexp.MustCompile(`(?im)^(accept-encoding:[ \t]*)([^\r\n]*)`)

// readable returns the head of a request with only those values of Accept-Encoding that abl can
// decode.
func readable(head []byte) []byte {
	return acceptEncoding.ReplaceAllFunc(head, func(line []byte) []byte {
		m := acceptEncoding.FindSubmatch(line)
		all := strings.Split(string(m[2]), ",")
		read := slices.DeleteFunc(slices.Clone(all), func(one string) bool {
			name, _, _ := strings.Cut(strings.TrimSpace(one), ";")
			return !slices.Contains([]string{"", "gzip", "x-gzip", "identity"}, strings.ToLower(strings.TrimSpace(name)))
		})
		switch len(read) {
		case len(all):
			return line
		case 0:
			read = []string{"identity"}
		}
		return append(bytes.Clone(m[1]), strings.TrimSpace(strings.Join(read, ","))...)
	})
}

// heldResponse buffers a response until abl knows whether to alter it, up to maxAltered bytes.
type heldResponse struct {
	*conn
	head []byte
	said []byte
	over bool // the response, or the sum of all, is too large to buffer, so it passes unchanged
}

func (h *heldResponse) Write(p []byte) (int, error) {
	if !h.over && len(h.said)+len(p) <= maxAltered && h.proxy.kept.Load() <= maxKept {
		h.said = append(h.said, p...)
		h.proxy.kept.Add(2 * int64(len(p))) // the app's side buffers the framed body, too
		return len(p), nil
	}
	if !h.over {
		h.over = true
		if _, err := h.client.Write(h.head); err != nil {
			return 0, err
		}
	}
	_, err := h.client.Write(h.app.drain())
	return len(p), err
}

// asked returns the exchange with the request as sent so far. While the client is still sending the
// body, the body counts as one that was too large to keep.
func (x *turn) asked() Exchange {
	asked := x.Exchange
	asked.Sent = Body{Bytes: 1}
	if x.whole.Load() {
		asked.Sent = Body{Bytes: x.sent.bytes, Begins: x.sent.begins}
	}
	return asked
}

// alter passes a response on, altered if a claim asks for it. A response that no claim can alter
// passes without delay.
func (c *conn) alter(x *turn, resp *http.Response, head []byte) error {
	asked := x.asked()
	if !c.proxy.Altering.mayAlter(asked) || streamed.MatchString(resp.Header.Get("Content-Type")) {
		if _, err := c.client.Write(head); err != nil {
			return err
		}
		return c.app.body(resp.Body, c.client, &x.got)
	}
	h := heldResponse{conn: c, head: head}
	defer func() { c.proxy.kept.Add(-2 * int64(len(h.said))) }()
	_, err := io.Copy(io.MultiWriter(&x.got, &h), resp.Body)
	out := c.app.drain()
	if !h.over {
		altered := c.proxy.Altering.answer(asked, head, out, h.said, len(resp.TransferEncoding) > 0)
		x.Altered = err == nil && altered != nil
		if x.Altered {
			out = altered
		} else {
			out = slices.Concat(head, out)
		}
	}
	if _, failed := c.client.Write(out); failed != nil {
		return failed
	}
	return err
}
