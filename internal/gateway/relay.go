package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
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
	if n := answer.ContentLength; !failed && n >= 0 { // blotting a key out of an error may change its length
		x.w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
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
		x.wrong("the provider ends its answer with an error", said)
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
			x.troubled(outcome.Unavailable, cause.Error())
		}
	default:
		if x.line.Req.Trouble == "" { // else it has said what is wrong
			x.troubled(outcome.Unavailable, "the provider's answer has no end: "+err.Error())
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

// patienceForBody is how long an answer's headers wait for the first piece of its
// body, to go out with it. Providers mostly send both at once; a client that gets
// them at once wakes up once.
const patienceForBody = 5 * time.Millisecond

// opening sends an answer's status and headers, with its first piece or soon.
type opening struct {
	mu    sync.Mutex
	timer *time.Timer
	sent  bool
}

// open writes the status now and lets it out when the body is late.
func open(w http.ResponseWriter, status int, flush func() error) *opening {
	w.WriteHeader(status)
	o := &opening{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = time.AfterFunc(patienceForBody, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.sent {
			o.sent = true
			_ = flush() // a client that has left shows at the first piece
		}
	})
	return o
}

// begin ends the wait: from here on only its caller writes.
func (o *opening) begin() {
	o.timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = true
}

// watch calls silent when nothing was noted for as long as idle. Noting is cheap,
// which a timer that is set anew with each piece of an answer is not.
type watch struct {
	idle   time.Duration
	begun  time.Time
	last   atomic.Int64 // since begun
	mu     sync.Mutex
	timer  *time.Timer
	over   bool
	silent func()
}

func newWatch(idle time.Duration, silent func()) *watch {
	w := &watch{idle: idle, begun: time.Now(), silent: silent}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(idle, w.look)
	return w
}

func (w *watch) note() { w.last.Store(int64(time.Since(w.begun))) }

// look is called when it may have been silent for long enough.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	left := w.idle - (time.Since(w.begun) - time.Duration(w.last.Load()))
	if left <= 0 {
		w.silent()
		return
	}
	w.timer.Reset(left)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// mask blots a key out of an answer that passes in pieces, at once and without
// changing its length. A provider has no reason to say the key; one that does
// shall not say it to an agent.
type mask struct {
	key  []byte
	held []byte // the end of what came, while it may be the key's beginning
}

// pass returns what can go on of what was held and p. It may change p.
func (m *mask) pass(p []byte) []byte {
	if len(m.key) == 0 {
		return p
	}
	if len(m.held) > 0 {
		p = append(m.held, p...)
	}
	for rest := p; ; {
		at := bytes.Index(rest, m.key)
		if at < 0 {
			break
		}
		for i := range m.key {
			rest[at+i] = '*'
		}
		rest = rest[at+len(m.key):]
	}
	n := begun(p, m.key)
	m.held = append([]byte(nil), p[len(p)-n:]...)
	return p[:len(p)-n]
}

// rest returns what is still held when the answer has ended.
func (m *mask) rest() []byte { return m.held }

// begun is the length of the longest end of p that the key begins with.
func begun(p, key []byte) int {
	for n := min(len(p), len(key)-1); n > 0; n-- {
		if p[len(p)-n] == key[0] && bytes.HasPrefix(key, p[len(p)-n:]) {
			return n
		}
	}
	return 0
}
