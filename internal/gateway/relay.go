package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
)

// pieceSize is how much of an answer is passed on at most at once, in bytes. Providers stream
// events of some hundred; what has queued up goes on together. With its frame it has room in the
// 4 KiB that net/http gathers, so that it is one write.
const pieceSize = 3 << 10

// relay passes an answer on, each piece at once, and returns what read its usage.
func (x *exchange) relay(ctx context.Context, stop context.CancelCauseFunc, answer *http.Response) *meter.Meter {
	// An answer passes without its length, which changes where a key is blotted out.
	inward(x.w.Header(), answer.Header, x.provider.secret())
	x.Status = answer.StatusCode
	control := http.NewResponseController(x.w)
	m := meter.New(x.provider.Kind)
	err := x.pass(answer.Body, control, m, stop)
	if x.Status < http.StatusBadRequest && !x.route.Free {
		x.judge(m, answer.Header, err == nil)
	}
	if err != nil {
		x.cut(ctx, control, err)
	}
	return m
}

// judge notes what is wrong with an answer that began well. whole is set if the provider ended it.
func (x *exchange) judge(m *meter.Meter, h http.Header, whole bool) {
	said, failed := m.Failed(h, time.Now())
	usage := m.Usage()
	switch {
	case failed:
		x.wrong("the provider ends its answer with an error", said)
	case m.Broken(whole):
		x.troubled(outcome.Unavailable, "the provider's answer is damaged: a part of it is not JSON")
	case !whole || !x.endless(m):
	case m.HasEvents() || usage.Known():
		x.troubled(outcome.Unavailable, "the provider's answer has no end: it does not say that it is finished")
	default:
		x.troubled(outcome.Unavailable, fmt.Sprintf("the provider answers %d with what is no answer of a model", x.Status))
	}
}

// endless reports whether an answer does not say that it is finished.
func (x *exchange) endless(m *meter.Meter) bool {
	return !x.route.Free && m.Finish() == "" && !m.Unread()
}

// pass reads the answer piece by piece.
func (x *exchange) pass(from io.Reader, control *http.ResponseController, m *meter.Meter, stop context.CancelCauseFunc) error {
	// A provider has no reason to say the key; one that does shall not say it to an agent.
	hidden := x.provider.secret().Writer(x.w)
	_ = control.SetWriteDeadline(time.Now().Add(span(x.Limits.WriteMS)))
	x.w.WriteHeader(x.Status)
	_ = control.Flush() // a client that has left shows at the first piece
	silence := time.AfterFunc(span(x.Limits.IdleMS), func() { stop(errIdle) })
	defer silence.Stop()
	buffer := make([]byte, pieceSize)
	for {
		n, err := from.Read(buffer)
		// This is for a piece, or for the end.
		_ = control.SetWriteDeadline(time.Now().Add(span(x.Limits.WriteMS)))
		if n > 0 {
			silence.Reset(span(x.Limits.IdleMS))
			if x.Out += int64(n); x.Out > x.Limits.Answer {
				stop(errLong)
				return errLong
			}
			_, failed := hidden.Write(buffer[:n])
			// The last one goes out with the answer's end, which net/http writes in the next moment.
			if failed == nil && err != io.EOF {
				failed = control.Flush()
			}
			m.Write(buffer[:n]) // when it is on its way
			if failed != nil {
				return errClient
			}
		}
		switch {
		case err == io.EOF && hidden.Close() != nil:
			return errClient
		case err == io.EOF:
			return nil
		case err != nil:
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
	switch {
	case x.Trouble != "": // the answer itself says what is wrong
		x.Aborted = errors.Is(cause, errClient) || errors.Is(cause, context.Canceled)
	case !x.stopped(cause):
		x.troubled(outcome.Unavailable, "the provider's answer has no end: "+err.Error())
	}
	if conn, _, err := control.Hijack(); err == nil {
		conn.Close()
	}
}

var errClient = errors.New("cannot write to the client")
