package witness

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
)

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
		if _, err := c.client.Write(raw); err != nil {
			return false
		}
		f := answerFraming(x.method, resp)
		if copyBody(c.client, c.fromApp, f) != nil {
			c.pass(nil) // a body that is none, or the end
			return false
		}
		return f.chunked || f.length >= 0
	}
}
