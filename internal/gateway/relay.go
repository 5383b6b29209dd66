package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
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
	inward(x.w.Header(), answer.Header, x.provider.secret) // without its length, which changes where a key is blotted out
	x.Status = answer.StatusCode
	control := http.NewResponseController(x.w)
	m := meter.New(x.provider.Kind)
	out := &passage{to: x.w, control: control, n: &x.Out}
	err := x.pass(answer.Body, out, m, stop)
	if said, broken := m.Failed(answer.Header, time.Now()); broken && x.Status < http.StatusBadRequest {
		x.wrong("the provider ends its answer with an error", said)
	}
	if err != nil {
		x.cut(ctx, control, err)
	}
	return m
}

// pass reads the answer piece by piece.
func (x *exchange) pass(from io.Reader, out *passage, m *meter.Meter, stop context.CancelCauseFunc) error {
	hidden := x.provider.secret.Writer(out) // a provider has no reason to say the key; one that does shall not say it to an agent
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
