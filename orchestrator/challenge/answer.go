package challenge

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"abl/orchestrator/dirs"
)

// answer is what the app answered, and what becomes of it.
type answer struct {
	status  int
	head    []byte // as it came, or changed
	header  http.Header
	framing framing
}

func (a *answer) success() bool { return a.status >= 200 && a.status < 300 }

// json says that the body is one document, and not too long a one. A stream of
// documents is none.
func (a *answer) json() bool {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	document := kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json") && kind != "application/stream+json"
	return err == nil && document && !a.framing.empty() && a.framing.length <= maxBody && a.header.Get("Content-Encoding") == ""
}

// answers passes on what the app sends.
func (c *conn) answers() {
	for {
		if _, err := c.fromApp.Peek(1); err != nil {
			return
		}
		var x *exchange
		select {
		case x = <-c.asked: // before its request was sent
		default: // the app speaks first
		}
		if x == nil || x.raw {
			c.pass(nil)
			return
		}
		if !c.answer(x) {
			return
		}
	}
}

// pass passes on all that follows as it is.
func (c *conn) pass(first []byte) {
	close(c.unread)
	c.note(func(r *dirs.Mutated) bool { r.Unread++; return false })
	if _, err := c.client.Write(first); err != nil {
		return
	}
	if _, err := io.Copy(c.client, c.fromApp); err == nil {
		closeWrite(c.client)
		<-c.asking
	}
}

// answer passes on the answer to a request; false ends the connection.
func (c *conn) answer(x *exchange) bool {
	for {
		raw, err := readHead(c.fromApp)
		if err != nil {
			c.pass(raw)
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: x.method})
		if err != nil {
			c.pass(raw)
			return false
		}
		switch s := resp.StatusCode; {
		case s == http.StatusSwitchingProtocols, x.method == http.MethodConnect && s/100 == 2:
			c.pass(raw)
			return false
		case s < 200:
			if _, err := c.client.Write(raw); err != nil {
				return false
			}
			continue
		}
		close(x.stays)
		c.note(func(r *dirs.Mutated) bool { r.Answers++; return false })
		a := &answer{status: resp.StatusCode, head: raw, header: resp.Header, framing: answerFraming(x.method, resp)}
		if c.finish(x, a) != nil {
			c.pass(nil) // a body that is none, or the end
			return false
		}
		return a.framing.chunked || a.framing.length >= 0
	}
}

// finish passes on an answer whose head was read.
func (c *conn) finish(x *exchange, a *answer) error {
	m := c.Mutation
	if old, ok := c.remembered(x); ok {
		if err := copyBody(io.Discard, io.Discard, c.fromApp, a.framing); err != nil {
			return err
		}
		_, err := c.client.Write(slices.Concat(old.head, old.body))
		return err
	}
	switch {
	case m.empty && a.success() && !a.framing.empty() && a.header.Get("Content-Type") != "text/event-stream":
		return c.emptied(a)
	case a.success() && a.json() && (m.edit != nil || m.Name == Control || m.forget != nil) && c.hold():
		defer c.free()
		return c.document(x, a)
	}
	c.possible(a, nil)
	c.settle(x, a, nil)
	if m.change != nil && m.change(a) {
		c.applied()
	}
	if _, err := c.client.Write(a.head); err != nil {
		return err
	}
	return copyBody(c.client, io.Discard, c.fromApp, a.framing)
}

// emptied passes on an answer without its body.
func (c *conn) emptied(a *answer) error {
	var n counter
	if err := copyBody(io.Discard, &n, c.fromApp, a.framing); err != nil {
		return err
	}
	if n > 0 {
		c.applied()
	}
	_, err := c.client.Write(withLength(a.head, 0))
	return err
}

type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// document passes on JSON, changed where the mutation finds something.
func (c *conn) document(x *exchange, a *answer) error {
	t := &tentative{to: c.client, head: a.head}
	if err := t.hold(c.fromApp, a.framing); err != nil || t.gone {
		c.possible(a, nil)
		c.settle(x, a, nil)
		_ = t.letGo()
		return err
	}
	data := t.data.Bytes()
	c.possible(a, data)
	c.settle(x, a, data)
	if c.Mutation.edit != nil {
		if f, ok := look(data); ok {
			if changed := c.Mutation.edit(data, f); changed != nil {
				c.applied()
				_, err := c.client.Write(slices.Concat(withLength(a.head, len(changed)), changed))
				return err
			}
		}
	}
	return t.letGo()
}

// possible notes, while nothing is changed, which mutations would find
// something in an answer.
func (c *conn) possible(a *answer, data []byte) {
	if c.Mutation.Name != Control {
		return
	}
	f, ok := look(data)
	for _, m := range Mutations() {
		copied := *a
		switch {
		case m.change != nil && m.change(&copied),
			m.empty && a.success() && !a.framing.empty(),
			m.edit != nil && ok && m.edit(data, f) != nil:
			c.could(m.Name)
		}
	}
}

func (c *conn) could(name string) {
	c.note(func(r *dirs.Mutated) bool {
		if slices.Contains(r.Could, name) {
			return false
		}
		r.Could = append(slices.Clip(r.Could), name)
		return true
	})
}
