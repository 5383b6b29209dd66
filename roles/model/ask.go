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
	After time.Duration // that the provider asks to wait; 0 when it does not say
}

// Error says what happened.
func (e *Error) Error() string { return e.What }

// Ask puts one question, and tells sent what is about to be sent, before it is. What it
// returns is whole, or says that it is not; an
// error is an *Error unless ctx has ended or a file could not be written.
func (c *Client) Ask(ctx context.Context, prompt string, sent func(body []byte) error) (Answer, error) {
	once := rand.Text() // the same for each try, so that a provider can tell that it is one question
	for try := 1; ; try++ {
		a, err := c.try(ctx, prompt, once, sent)
		a.Tries = try
		e, told := errors.AsType[*Error](err)
		switch {
		case err != nil && ctx.Err() != nil:
			return a, context.Cause(ctx)
		case !told:
			return a, err
		}
		pause, worth := c.pause(e, try)
		if !worth {
			if try > 1 {
				e.What += fmt.Sprintf(" (after %d tries)", try)
			}
			return a, e
		}
		if err := c.Wait(ctx, e, pause); err != nil {
			return a, err
		}
	}
}

// try asks once.
func (c *Client) try(ctx context.Context, prompt, once string, sent func([]byte) error) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, fmt.Errorf("no answer within %s", c.Patience))
	defer cancel()
	t := &tape{next: c.Transport, sent: sent}
	a, err := c.p.ask(ctx, c, t.client(), prompt, once)
	read := meter.New(c.p.api)
	_, _ = read.Write(t.body)
	// The SDKs make a zero of what is not told.
	a.Body, a.Model, a.Usage, a.Reason = t.body, cmp.Or(a.Model, c.name), read.Usage(), read.Finish()
	switch {
	case t.stop != nil:
		return a, t.stop
	case t.status == 0:
		return a, c.unavailable("did not answer", cmp.Or(context.Cause(ctx), err))
	case t.status != http.StatusOK:
		return a, c.judge(t)
	case meter.OfFinish(a.Reason) == outcome.Filtered:
		a.Finish = Blocked
		return a, &Error{Kind: outcome.Filtered, What: fmt.Sprintf("the answer was held back by %s (%s)", c.name, a.Reason)}
	case err != nil:
		return a, c.unavailable("sent what is no answer", err)
	case strings.EqualFold(a.Reason, "stop"):
		a.Finish = Whole
	default:
		a.Finish = Cut
	}
	return a, nil
}

func (c *Client) unavailable(what string, err error) *Error {
	return &Error{Kind: outcome.Unavailable, What: fmt.Sprintf("%s %s: %v", c.name, what, err)}
}

// judge says what a status means. The key is taken out of the provider's words before
// their end is cut off, which might leave a part of one that nobody knows again.
func (c *Client) judge(t *tape) error {
	const most = 400
	told := meter.Of(t.status, t.header, t.body, time.Now())
	hide, _ := redact.New(c.Key)
	words := hide.String(strings.Join(strings.Fields(told.Words), " "))
	words = strings.ToValidUTF8(words[:min(len(words), most)], "")
	return &Error{Kind: told.Class, What: fmt.Sprintf("%s answered with status %d: %s", c.name, t.status, words), After: told.Retry}
}

// pause is how long to wait before the next try, if one is worth it: a used up quota
// is not back in minutes.
func (c *Client) pause(e *Error, try int) (pause time.Duration, worth bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	pause = cmp.Or(e.After, min(time.Second<<min(try-1, 10), longest))
	return pause, e.Kind.Transient() && e.Kind != outcome.Quota && try <= c.Retries && pause <= patience
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
	stop   error // that no further try can mend
}

// RoundTrip is one exchange. The response is read to its end here, so that it is
// kept even when the SDK gives up on it.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody() // both SDKs hold the body in memory
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err == nil {
		err = t.sent(data)
	}
	if err != nil {
		t.stop = err
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	t.status, t.header, t.body = resp.StatusCode, resp.Header, data
	if len(data) > maxBody {
		t.body = nil
		what := fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20)
		t.stop = &Error{Kind: outcome.Failed, What: what}
		return nil, t.stop
	}
	if err != nil {
		t.status = 0 // it broke off
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// client is an HTTP client that goes nowhere but where it was sent: at a
// redirection the key would go along.
func (t *tape) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
