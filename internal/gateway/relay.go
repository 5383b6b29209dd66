package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
)

// pieceSize is how much of an answer is passed on at most at once, in bytes.
// Providers stream events of some hundred; what has queued up goes on together.
const pieceSize = 16 << 10

// pieces are the buffers for passing answers on.
var pieces = sync.Pool{New: func() any { b := make([]byte, pieceSize); return &b }}

// relay passes an answer on, each piece at once, and returns what read its usage.
func (x *exchange) relay(ctx context.Context, stop context.CancelCauseFunc, answer *http.Response) *meter.Meter {
	key := x.verdict.Provider.Key
	inward(x.w.Header(), answer.Header, key)
	failed := answer.StatusCode >= http.StatusBadRequest
	if !failed { // blotting a key out of an error may change its length
		setLength(x.w.Header(), answer.ContentLength)
	}
	x.line.Req.Status = answer.StatusCode
	control := http.NewResponseController(x.w)
	m := meter.New(x.api())
	out := &passage{
		to: x.w, conn: connOf(x.r.Context()), flush: control.Flush, opening: open(x.w, answer.StatusCode, control.Flush), m: m, n: &x.line.Req.Out,
		ctx: ctx, end: stop, most: x.limits.Answer, idle: span(x.limits.IdleMS), open: x.w.Header().Get("Content-Length") == "",
	}
	pass := out.masked
	if failed {
		pass = out.redacted
	}
	err := pass(answer.Body, key)
	if said, broken := m.Failed(answer.Header, time.Now()); broken && !failed {
		x.line.Req.Broken = true
		x.wrong(said)
	}
	if err != nil {
		x.cut(ctx, control, err)
	}
	return m
}

// cut ends the connection in the middle of an answer, so that the client sees that
// there should be more.
func (x *exchange) cut(ctx context.Context, control *http.ResponseController, err error) {
	x.line.Req.Cut = true
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errClient) || errors.Is(cause, context.Canceled):
		x.line.Req.Aborted, x.line.Reason = true, "the client left"
	case cause != nil:
		x.line.Reason = cause.Error()
		if errors.Is(cause, errIdle) || errors.Is(cause, errTime) {
			x.troubled(meter.Silent)
		}
	default:
		if x.line.Req.Trouble == "" { // else it has said what is wrong
			x.troubled(meter.Cut)
			x.line.Reason = "the provider's answer has no end: " + err.Error()
		}
	}
	if conn, _, err := control.Hijack(); err == nil {
		conn.Close()
	}
}

var errClient = errors.New("cannot write to the client")

// passage writes an answer to the client, counted and metered.
type passage struct {
	to      io.Writer
	conn    *conn // below to, nil where there is none
	flush   func() error
	opening *opening
	m       *meter.Meter
	n       *int64
	ctx     context.Context // of the request to the provider
	end     context.CancelCauseFunc
	most    int64
	idle    time.Duration
	open    bool // its length is unknown, so that something follows the last piece
	last    bool // so this one goes out with it
}

func (o *passage) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.conn.cork()
	n, err := o.to.Write(p)
	*o.n += int64(n)
	if err == nil {
		err = o.flush()
	}
	if err == nil && o.last && o.conn.hold() {
		return n, nil
	}
	if errors.Join(err, o.conn.uncork()) != nil {
		return n, errClient
	}
	return n, nil
}

// masked passes a good answer on.
func (o *passage) masked(from io.Reader, key string) error {
	m := mask{key: []byte(key)}
	err := o.each(from, func(p []byte) error {
		_, err := o.Write(m.pass(p))
		return err
	})
	if err != nil {
		return err
	}
	_, err = o.Write(m.rest())
	return err
}

// redacted passes an error on: there a key may be in any form, and the answer is short.
func (o *passage) redacted(from io.Reader, key string) error {
	r, _ := redact.New(key)
	w := r.Writer(o)
	err := o.each(from, func(p []byte) error {
		_, err := w.Write(p)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// each reads the answer piece by piece.
func (o *passage) each(from io.Reader, pass func([]byte) error) error {
	buffer := pieces.Get().(*[]byte)
	defer pieces.Put(buffer)
	silence := newWatch(o.idle, func() { o.end(errIdle) })
	defer silence.stop()
	defer o.opening.begin() // also where no piece comes
	for read := int64(0); ; {
		n, err := from.Read(*buffer)
		if n > 0 {
			if read == 0 {
				o.opening.begin()
			}
			silence.note()
			o.last = err == io.EOF && o.open
			if read += int64(n); read > o.most {
				o.end(errLong)
				return context.Cause(o.ctx)
			}
			piece := (*buffer)[:n]
			failed := pass(piece)
			o.m.Write(piece) // when it is on its way
			if failed != nil {
				return failed
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
