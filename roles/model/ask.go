package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
	"abl/internal/redact"
)

// Error is why there is no answer.
type Error struct {
	Kind  outcome.Outcome // whose trouble it is; what is transient may pass
	What  string
	After time.Duration // that the provider asks to wait; negative when it does not say
	Err   error         // the cause, if any
}

// Error says what happened.
func (e *Error) Error() string { return e.What }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Ask puts one question. What it returns is whole, or says that it is not; an
// error is an *Error unless ctx has ended or a file could not be written.
func (c *Client) Ask(ctx context.Context, prompt string) (Answer, error) {
	once := rand.Text() // the same for each try, so that a provider can tell that it is one question
	for try := 1; ; try++ {
		a, err := c.try(ctx, prompt, once)
		a.Tries = try
		var e *Error
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, context.Cause(ctx)
		case !errors.As(err, &e):
			return a, err
		}
		pause, worth := c.pause(e, try)
		if !worth {
			if try > 1 {
				e.What += fmt.Sprintf(" (after %d tries)", try)
			}
			return a, e
		}
		if c.c.Trouble != nil {
			c.c.Trouble(e, pause)
		}
		if err := c.c.Wait(ctx, pause); err != nil {
			return a, err
		}
	}
}

// try asks once.
func (c *Client) try(ctx context.Context, prompt, once string) (Answer, error) {
	if c.c.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.c.Patience, fmt.Errorf("no answer within %s", c.c.Patience))
		defer cancel()
	}
	t := &tape{next: c.c.Transport, sent: c.c.Sent}
	a, err := c.p.ask(ctx, call{model: c.name, key: c.c.Key, base: c.c.Base, prompt: prompt, once: once, http: t.client()})
	read := meter.New(c.p.api)
	_, _ = read.Write(t.body)
	a.Body, a.Model, a.Usage = t.body, cmp.Or(a.Model, c.name), read.Usage() // the SDKs make a zero of what is not told
	var end stop
	switch {
	case errors.As(err, &end):
		return a, end.error
	case t.status == 0:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return a, c.unavailable("did not answer", err)
	case t.status != http.StatusOK:
		return a, c.judge(t)
	case err != nil:
		return a, c.unavailable("sent what is no answer", err)
	}
	switch {
	case strings.EqualFold(a.Reason, "stop"):
		a.Finish = Whole
	case meter.OfFinish(a.Reason) == outcome.Filtered:
		a.Finish = Blocked
		return a, &Error{Kind: outcome.Filtered, What: fmt.Sprintf("the answer was held back by %s (%s)", c.name, a.Reason)}
	default:
		a.Finish = Cut
	}
	return a, nil
}

func (c *Client) unavailable(what string, err error) *Error {
	return &Error{Kind: outcome.Unavailable, What: fmt.Sprintf("%s %s: %v", c.name, what, err), After: unsaid, Err: err}
}

// judge says what a status means. The key is taken out of the provider's words before
// their end is cut off, which might leave a part of one that nobody knows again.
func (c *Client) judge(t *tape) error {
	const most = 400
	told := meter.Of(t.status, t.header, t.body, time.Now())
	hide, _ := redact.New(c.c.Key)
	words := hide.String(strings.Join(strings.Fields(told.Words), " "))
	words = strings.ToValidUTF8(words[:min(len(words), most)], "")
	e := &Error{Kind: told.Class, What: fmt.Sprintf("%s answered with status %d: %s", c.name, t.status, words), After: told.Retry}
	if told.Retry == 0 && t.header.Get("Retry-After") != "0" {
		e.After = unsaid
	}
	return e
}

// unsaid is the wait that a provider does not ask for.
const unsaid = -1

// pause is how long to wait before the next try, if one is worth it: a used up quota
// is not back in minutes.
func (c *Client) pause(e *Error, try int) (time.Duration, bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	switch {
	case !e.Kind.Transient() || e.Kind == outcome.Quota || try > c.c.Retries:
		return 0, false
	case e.After >= 0:
		return e.After, e.After <= patience
	}
	return min(time.Second<<min(try-1, 10), longest), true
}

// maxBody is the largest response that is taken.
const maxBody = 64 << 20

// tape hands requests on and keeps what went over the wire in one try.
type tape struct {
	next   http.RoundTripper
	sent   func([]byte) error
	status int
	header http.Header
	body   []byte
}

// RoundTrip is one exchange. The response is read to its end here, so that it is
// kept even when the SDK gives up on it.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.sent != nil && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err == nil {
			err = t.sent(data)
		}
		if err != nil {
			return nil, stop{err}
		}
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	t.status, t.header, t.body = resp.StatusCode, resp.Header, data
	if len(data) > maxBody {
		t.body = nil
		return nil, stop{&Error{Kind: outcome.Failed, What: fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20)}}
	}
	if err != nil {
		t.status = 0 // it broke off
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// stop is an error that no further try can mend.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// client is an HTTP client that goes nowhere but where it was sent: at a
// redirection the key would go along.
func (t *tape) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
