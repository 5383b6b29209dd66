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

// Alteration is what of an answer that fits a contract is altered, to see whether its
// test notices.
type Alteration string

// The two alterations.
const (
	OfStatus Alteration = "status" // an error becomes a success, all else an error
	OfNamed  Alteration = "named"  // all that the contract names besides is taken out
)

// Altering is what is altered of which answers.
type Altering struct {
	Answers []Altered `json:"answers"`
}

// Altered are the answers that fit a claim, with what is altered of them.
type Altered struct {
	Claim Claim      `json:"claim"`
	What  Alteration `json:"what"`
}

// maxAltered is the longest body that is altered, in bytes; longer ones pass.
const maxAltered = maxBody

var (
	statusLine    = regexp.MustCompile(`^(HTTP/1\.\d) [^\r\n]*`)
	contentLength = regexp.MustCompile(`(?im)^(content-length:\s*)\d+`)
)

// answer is the answer altered, nil where it stays: it fits no claim, or has nothing to
// alter. All else of its head stays as the app wrote it. framed is the body as it came.
func (a Altering) answer(x Exchange, head, framed, body []byte, chunked bool) []byte {
	x.Got = Body{Bytes: int64(len(body)), Begins: body}
	plain, packed := body, false
	if x.gzipped() {
		if content, ok := x.content(); ok && !bytes.Equal(content, body) {
			plain, packed = content, true
		}
	}
	less, altered := plain, false
	for _, one := range a.Answers {
		switch c := one.Claim; {
		case !c.Alters(one.What, x):
		case c.program:
			less, altered = x.alteredRun(one.What), true
		case one.What == OfStatus:
			status := fmt.Sprintf("$1 %d %s", far(x.Status), http.StatusText(far(x.Status)))
			if x.Method != http.MethodHead && (x.Status == http.StatusNoContent || x.Status == http.StatusNotModified) {
				status += "\r\nContent-Length: 0" // which needs none, and the other status does
			}
			head, altered = statusLine.ReplaceAll(head, []byte(status)), true
		default:
			before := head
			head, less = c.without(head, less)
			altered = altered || !bytes.Equal(before, head) || !bytes.Equal(less, plain)
		}
	}
	switch {
	case !altered:
		return nil
	case bytes.Equal(less, plain):
		return slices.Concat(head, framed)
	case packed:
		less = pack(less)
	}
	switch {
	case !chunked:
		return slices.Concat(contentLength.ReplaceAll(head, fmt.Appendf(nil, "${1}%d", len(less))), less)
	case len(less) > 0:
		less = fmt.Appendf(nil, "%x\r\n%s\r\n", len(less), less)
	}
	return slices.Concat(head, less, []byte("0\r\n\r\n"))
}

// pack compresses a body again.
func pack(body []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body) // to memory
	_ = z.Close()
	return packed.Bytes()
}

// may says whether an answer may be altered, by its request and its head.
func (a Altering) may(x Exchange) bool {
	return slices.ContainsFunc(a.Answers, func(one Altered) bool {
		c := one.Claim
		if c.program {
			return x.Target == RunTarget
		}
		return c.Names(one.What) && c.Asked(x) && c.missesHead(x) == "" && (one.What == OfNamed || !c.says(far(x.Status)))
	})
}

// without takes what the claim names out of an answer.
func (c Claim) without(head, body []byte) ([]byte, []byte) {
	for _, header := range c.headers {
		head = regexp.MustCompile(`(?im)^`+header.name+`:.*\n`).ReplaceAll(head, nil)
	}
	if doc, ok := decode(body); ok && c.json != nil {
		if data, err := json.Marshal(c.json.without(doc)); err == nil {
			body = data
		}
	}
	for _, text := range c.texts {
		escaped := written{html.EscapeString(text.text), text.vars}
		body = []byte(escaped.out(text.out(string(body))))
	}
	return head, body
}

// Names says that the claim names what is altered.
func (c Claim) Names(what Alteration) bool {
	if what == OfStatus {
		return len(c.statuses) > 0
	}
	return len(c.headers)+len(c.texts) > 0 || c.json != nil || c.leaves
}

// Alters says whether a test should notice the alteration of an exchange: it fits the
// claim, and altered it would not.
func (c Claim) Alters(what Alteration, x Exchange) bool {
	return c.Names(what) && c.Fits(x) && (what == OfNamed || !c.says(far(x.Status)))
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
	if c.program {
		return x.tellRun(what)
	}
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
		all = append(all, text.String())
	}
	return fmt.Sprintf("%s is taken out of the %d to %s", strings.Join(all, ", "), x.Status, x.Request())
}

var acceptEncoding = regexp.MustCompile(`(?im)^(accept-encoding:[ \t]*)([^\r\n]*)`)

// readable is the head of a request that asks for no encoding which abl cannot read.
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

// held keeps what an answer says until it is known whether it is to be altered, up to
// maxAltered.
type held struct {
	*conn
	head []byte
	said []byte
	over bool // it was too long, or too much beside others, and passes
}

func (h *held) Write(p []byte) (int, error) {
	if !h.over && len(h.said)+len(p) <= maxAltered && h.proxy.kept.Load() <= maxKept {
		h.said = append(h.said, p...)
		h.proxy.kept.Add(2 * int64(len(p))) // it is kept as it came, too
		return len(p), nil
	}
	if !h.over {
		h.over = true
		if _, err := h.client.Write(h.head); err != nil {
			return 0, err
		}
	}
	_, err := h.client.Write(h.app.take())
	return len(p), err
}

// asked is the exchange with what was sent so far. A body that is still being sent is one that was
// not kept.
func (x *turn) asked() Exchange {
	asked := x.Exchange
	if asked.Sent = (Body{Bytes: 1}); x.whole.Load() {
		asked.Sent = Body{Bytes: x.sent.bytes, Begins: x.sent.begins}
	}
	return asked
}

// alter passes on an answer's body behind its head, altered where that is asked for. An answer that
// is not altered passes as it comes.
func (c *conn) alter(x *turn, resp *http.Response, head []byte) error {
	asked := x.asked()
	if !c.proxy.Altering.may(asked) || stream.MatchString(resp.Header.Get("Content-Type")) {
		if _, err := c.client.Write(head); err != nil {
			return err
		}
		return c.app.body(resp.Body, c.client, &x.got)
	}
	h := held{conn: c, head: head}
	defer func() { c.proxy.kept.Add(-2 * int64(len(h.said))) }()
	_, err := io.Copy(io.MultiWriter(&x.got, &h), resp.Body)
	out := c.app.take()
	if !h.over {
		altered := c.proxy.Altering.answer(asked, head, out, h.said, len(resp.TransferEncoding) > 0)
		if x.Altered = err == nil && altered != nil; x.Altered {
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
