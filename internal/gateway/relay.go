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

// pieceSize is the maximum size of a relayed piece, in bytes. Providers stream events of some hundred
// bytes, and queued events are relayed together. A piece and its frame fit into the 4 KiB buffer of
// net/http, so that a piece is one write.
const pieceSize = 3 << 10

// aliveShare is the number of Alive lines that a response causes within IdleMS, if it arrives steadily.
const aliveShare = 60

// relay relays a response piece by piece, and returns the meter that read its usage.
func (x *exchange) relay(ctx context.Context, stop context.CancelCauseFunc, answer *http.Response) *meter.Meter {
	// The length header is not copied: redacting a key changes the length.
	copyHeader(x.w.Header(), answer.Header, x.provider.secret())
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

// judge records the fault of a response with a good status. whole is set if the provider ended it.
func (x *exchange) judge(m *meter.Meter, h http.Header, whole bool) {
	said, failed := m.Failed(h, time.Now())
	usage := m.Usage()
	switch {
	case failed:
		x.failedWith("the provider ended its response with an error", said)
	case m.Broken(whole):
		x.troubled(outcome.Unavailable, "the provider's response is damaged: a part of it is not JSON")
	case !whole || !x.endless(m):
	case m.HasEvents() || usage.Known():
		x.troubled(outcome.Unavailable, "the provider's response is incomplete: it has no finish reason")
	default:
		x.troubled(outcome.Unavailable,
			fmt.Sprintf("the provider responds %d with something other than a response of a model", x.Status))
	}
}

// endless reports whether a response has no finish reason.
func (x *exchange) endless(m *meter.Meter) bool {
	return !x.route.Free && m.Finish() == "" && !m.Unread()
}

// pass copies a response piece by piece.
func (x *exchange) pass(
	from io.Reader, control *http.ResponseController, m *meter.Meter, stop context.CancelCauseFunc,
) error {
	// A response that contains the key must not reach the agent.
	hidden := x.provider.secret().Writer(x.w)
	_ = control.SetWriteDeadline(time.Now().Add(span(x.Limits.WriteMS)))
	x.w.WriteHeader(x.Status)
	_ = control.Flush() // if the client has left, the first piece fails
	silence := time.AfterFunc(span(x.Limits.IdleMS), func() { stop(errIdle) })
	defer silence.Stop()
	logged := time.Now()
	buffer := make([]byte, pieceSize)
	for {
		n, err := from.Read(buffer)
		// For this piece, or for the end.
		_ = control.SetWriteDeadline(time.Now().Add(span(x.Limits.WriteMS)))
		if n > 0 {
			silence.Reset(span(x.Limits.IdleMS))
			if time.Since(logged) >= span(x.Limits.IdleMS)/aliveShare {
				logged = time.Now()
				x.log(Entry{Kind: Alive})
			}
			if x.Out += int64(n); x.Out > x.Limits.Answer {
				stop(errLong)
				return errLong
			}
			_, failed := hidden.Write(buffer[:n])
			// net/http writes the last piece together with the end of the response.
			if failed == nil && err != io.EOF {
				failed = control.Flush()
			}
			m.Write(buffer[:n]) // after the client has it
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

// cut closes the connection before the end of a response, so that the client notices that it is
// incomplete.
func (x *exchange) cut(ctx context.Context, control *http.ResponseController, err error) {
	x.Cut = true
	cause := context.Cause(ctx)
	if errors.Is(err, errClient) {
		cause = errClient
	}
	switch {
	case x.Trouble != "": // the response contains the error
		x.Aborted = errors.Is(cause, errClient) || errors.Is(cause, context.Canceled)
	case !x.stopped(cause):
		x.troubled(outcome.Unavailable, "the provider's response is incomplete: "+err.Error())
	}
	if conn, _, err := control.Hijack(); err == nil {
		conn.Close()
	}
}

var errClient = errors.New("cannot write to the client")
