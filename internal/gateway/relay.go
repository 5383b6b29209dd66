package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
)

// pieceSize is how much of an answer is passed on at most at once, in bytes. Providers stream
// events of some hundred; what has queued up goes on together. With its frame, and with the
// answer's headers, it has room in the 4 KiB that net/http gathers, so that it is one write.
const pieceSize = 3 << 10

// relay passes an answer on, each piece at once, and returns what read its usage.
func (x *exchange) relay(ctx context.Context, stop context.CancelCauseFunc, answer *http.Response) *meter.Meter {
	key := string(x.provider.Key)
	inward(x.w.Header(), answer.Header, key)
	failed := answer.StatusCode >= http.StatusBadRequest
	if n := answer.ContentLength; !failed && n >= 0 { // blotting a key out of an error may change its length
		x.w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	}
	x.Status = answer.StatusCode
	control := http.NewResponseController(x.w)
	m := meter.New(x.provider.Kind)
	out := &passage{to: x.w, control: control, n: &x.Out}
	var hidden io.WriteCloser = &mask{to: out, key: []byte(key)}
	if failed { // there a key may be in any form, and the answer is short
		hidden = x.journal.secrets.Writer(out)
	}
	err := x.pass(answer.Body, out, hidden, m, stop)
	if said, broken := m.Failed(answer.Header, time.Now()); broken && !failed {
		x.wrong("the provider ends its answer with an error", said)
	}
	if err != nil {
		x.cut(ctx, control, err)
	}
	return m
}

// pass reads the answer piece by piece.
func (x *exchange) pass(from io.Reader, out *passage, hidden io.WriteCloser, m *meter.Meter, stop context.CancelCauseFunc) error {
	begin := open(x.w, x.Status, out.control.Flush)
	defer begin() // also where no piece comes
	silence := time.AfterFunc(span(x.Limits.IdleMS), func() { stop(errIdle) })
	defer silence.Stop()
	buffer := make([]byte, pieceSize)
	for read := int64(0); ; {
		n, err := from.Read(buffer)
		_ = out.control.SetWriteDeadline(time.Now().Add(span(x.Limits.WriteMS))) // for a piece, or for the end
		if piece := buffer[:n]; n > 0 {
			begin()
			silence.Reset(span(x.Limits.IdleMS))
			if read += int64(n); read > x.Limits.Answer {
				stop(errLong)
				return errLong
			}
			out.last = err == io.EOF
			_, failed := hidden.Write(piece)
			m.Write(piece) // when it is on its way
			if failed != nil {
				return failed
			}
		}
		if err == io.EOF {
			return hidden.Close()
		}
		if err != nil {
			return err
		}
	}
}

// cut ends the connection in the middle of an answer, so that the client sees that
// there should be more.
func (x *exchange) cut(ctx context.Context, control *http.ResponseController, err error) {
	x.Cut = true
	cause := context.Cause(ctx)
	if errors.Is(err, errClient) {
		cause = errClient
	}
	if !x.stopped(cause) && x.Trouble == "" { // else it has said what is wrong
		x.troubled(outcome.Unavailable, "the provider's answer has no end: "+err.Error())
	}
	if conn, _, err := control.Hijack(); err == nil {
		conn.Close()
	}
}

var errClient = errors.New("cannot write to the client")

// passage writes an answer to the client, counted.
type passage struct {
	to      io.Writer
	control *http.ResponseController
	n       *int64
	last    bool // this piece goes out with the end of the answer, which net/http writes in the next moment
}

func (o *passage) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.to.Write(p)
	*o.n += int64(n)
	if err == nil && !o.last {
		err = o.control.Flush()
	}
	if err != nil {
		return n, errClient
	}
	return n, nil
}

// patienceForBody is how long an answer's headers wait for the first piece of its
// body, to go out with it. Providers mostly send both at once; a client that gets
// them at once wakes up once.
const patienceForBody = 5 * time.Millisecond

// open writes an answer's status and headers now, to go out with its first piece or
// soon. From begin on only its caller writes.
func open(w http.ResponseWriter, status int, flush func() error) (begin func()) {
	w.WriteHeader(status)
	flushed := make(chan struct{})
	late := time.AfterFunc(patienceForBody, func() {
		_ = flush() // a client that has left shows at the first piece
		close(flushed)
	})
	return sync.OnceFunc(func() {
		if !late.Stop() {
			<-flushed
		}
	})
}

// mask blots a key out of an answer that passes in pieces, at once and without
// changing its length. A provider has no reason to say the key; one that does
// shall not say it to an agent.
type mask struct {
	to   io.Writer
	key  []byte
	held []byte // the end of what came, while it may be the key's beginning
}

// pass returns what can go on of what was held and p.
func (m *mask) pass(p []byte) []byte {
	if len(m.key) == 0 {
		return p
	}
	if len(m.held) > 0 {
		p = append(m.held, p...)
	}
	if bytes.Contains(p, m.key) {
		p = bytes.ReplaceAll(p, m.key, bytes.Repeat([]byte("*"), len(m.key)))
	}
	n := begun(p, m.key)
	m.held = bytes.Clone(p[len(p)-n:])
	return p[:len(p)-n]
}

// Write passes an answer on; the last of it goes with Close.
func (m *mask) Write(p []byte) (int, error) {
	_, err := m.to.Write(m.pass(p))
	return len(p), err
}

// Close passes on what is still held when the answer has ended.
func (m *mask) Close() error {
	_, err := m.to.Write(m.held)
	return err
}

// begun is the length of the longest end of p that the key begins with.
func begun(p, key []byte) int {
	for n := min(len(p), len(key)-1); n > 0; n-- {
		if p[len(p)-n] == key[0] && bytes.HasPrefix(key, p[len(p)-n:]) {
			return n
		}
	}
	return 0
}
