package model

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

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
	text, err := c.p.ask(ctx, call{model: c.name, key: c.c.Key, base: c.c.Base, prompt: prompt, once: once, http: t.client()})
	a := Answer{Text: text, Body: t.body, Model: c.name}
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
	r, err := c.p.read(t.body)
	if err != nil {
		return a, c.unavailable("sent what is no answer", err)
	}
	a.Finish, a.Reason, a.Usage = r.finish, r.reason, r.usage
	if r.model != "" {
		a.Model = r.model
	}
	if a.Finish == Blocked {
		return a, &Error{Kind: outcome.Filtered, What: fmt.Sprintf("the answer was held back by %s (%s)", c.name, a.Reason)}
	}
	return a, nil
}

func (c *Client) unavailable(what string, err error) *Error {
	return &Error{Kind: outcome.Unavailable, What: fmt.Sprintf("%s %s: %v", c.name, what, err), After: unsaid, Err: err}
}

// judge says what a status means.
func (c *Client) judge(t *tape) error {
	e := &Error{Kind: outcome.FromHTTP(int64(t.status)), What: fmt.Sprintf("%s answered with status %d", c.name, t.status), After: after(t)}
	switch body := string(t.body); {
	case strings.Contains(body, "API_KEY_INVALID"):
		e.Kind = outcome.Refused
	case strings.Contains(body, "insufficient_quota"):
		e.Kind = outcome.Quota
	case t.status == http.StatusRequestTimeout:
		e.Kind = outcome.Unavailable
	case e.Kind == "":
		e.Kind = outcome.Failed
	}
	if said := complaint(t.body, c.c.Key); said != "" {
		e.What += ": " + said
	}
	return e
}

// complaint is the message of an error's body. The key is taken out of it before its
// end is cut off, which might leave a part of one that nobody knows again.
func complaint(body []byte, key string) string {
	var doc struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	const most = 400
	r, _ := redact.New(key)
	text := r.String(strings.Join(strings.Fields(doc.Error.Message), " "))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// unsaid is the wait that a provider does not ask for.
const unsaid = -1

// after reads the header Retry-After, or what Gemini's errors say in its stead.
func after(t *tape) time.Duration {
	if s := t.header.Get("Retry-After"); s != "" {
		if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < math.MaxInt32 {
			return time.Duration(n * float64(time.Second))
		}
		if at, err := http.ParseTime(s); err == nil {
			return max(0, time.Until(at))
		}
	}
	var doc struct {
		Error struct {
			Details []struct {
				RetryDelay string `json:"retryDelay"`
			}
		}
	}
	if json.Unmarshal(t.body, &doc) == nil {
		for _, detail := range doc.Error.Details {
			if d, err := time.ParseDuration(detail.RetryDelay); err == nil && d >= 0 {
				return d
			}
		}
	}
	return unsaid
}

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
