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

	"abl/internal/redact"
)

// Kind says whose trouble it is that there is no answer.
type Kind string

// The kinds.
const (
	Away     Kind = "away"     // too many requests, a fault of theirs, or no way there: later it may work
	Login    Kind = "login"    // the key is refused
	Rejected Kind = "rejected" // the request is refused, and would be again
)

// Error is why there is no answer.
type Error struct {
	Kind   Kind
	Status int // of the response, 0 when there was none
	What   string
	Body   []byte // of the response, as received
	Tries  int
	Err    error
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
		if err == nil {
			return a, nil
		}
		var e *Error
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
		if !errors.As(err, &e) {
			return a, err
		}
		e.Tries = try
		pause, worth := c.pause(e, try)
		if !worth {
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
		return a, &Error{Kind: Away, What: fmt.Sprintf("%s did not answer: %v", c.name, err), Err: err}
	case t.status != http.StatusOK:
		return a, c.judge(t)
	case err != nil:
		return a, &Error{Kind: Away, Status: t.status, Body: t.body, What: fmt.Sprintf("%s sent what is no answer: %v", c.name, err), Err: err}
	}
	r, err := c.p.read(t.body)
	if err != nil {
		return a, &Error{Kind: Away, Status: t.status, Body: t.body, What: fmt.Sprintf("%s sent what is no answer: %v", c.name, err), Err: err}
	}
	a.Finish, a.Reason, a.Usage = r.finish, r.reason, r.usage
	if r.model != "" {
		a.Model = r.model
	}
	return a, nil
}

// judge says what a status means.
func (c *Client) judge(t *tape) error {
	e := &Error{Kind: Rejected, Status: t.status, Body: t.body}
	said := complaint(t.body, c.c.Key)
	switch {
	case t.status == http.StatusUnauthorized, t.status == http.StatusForbidden, strings.Contains(string(t.body), "API_KEY_INVALID"):
		e.Kind = Login
	case t.status == http.StatusTooManyRequests, t.status == http.StatusRequestTimeout, t.status >= http.StatusInternalServerError:
		e.Kind = Away
	}
	e.What = fmt.Sprintf("%s answered with status %d", c.name, t.status)
	if said != "" {
		e.What += ": " + said
	}
	e.Err = retryAfter{after(t)}
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

// retryAfter is how long a provider asks to wait; negative when it does not say.
type retryAfter struct{ d time.Duration }

func (r retryAfter) Error() string { return "wait " + r.d.String() }

// after reads the header Retry-After, or what Gemini's errors say in its stead.
func after(t *tape) time.Duration {
	const unsaid = -1
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

// pause is how long to wait before the next try, if one is worth it.
func (c *Client) pause(e *Error, try int) (time.Duration, bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	if e.Kind != Away || try > c.c.Retries || strings.Contains(string(e.Body), "insufficient_quota") {
		return 0, false
	}
	var told retryAfter
	if errors.As(e.Err, &told) && told.d >= 0 {
		return told.d, told.d <= patience
	}
	return min(time.Second<<min(try-1, 10), longest), true
}
