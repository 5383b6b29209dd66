// Package model sends single questions to the APIs of models. It returns requests and responses as they were on the wire, reports incomplete answers, and retries
// after transient failures. It has no prompts, agents or budgets.
package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"abl/internal/gateway"
	"abl/internal/gateway/meter"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
)

// Finish reports whether an answer is complete.
type Finish string

// The values of Finish. A finish reason that is unknown counts as Cut.
const (
	Whole   Finish = "whole"
	Cut     Finish = "cut"     // it reached a limit, or its finish reason is unknown
	Blocked Finish = "blocked" // a filter or the model itself refused
)

// Answer is the answer of a model.
type Answer struct {
	Text   string
	Finish Finish
	Reason string // the provider's finish reason
	Model  string // the provider's name of the model, else the requested one
	Usage  usage.Count
	Body   []byte // of the response, as received
	Tries  int
	Lost   bool // the provider may charge for a try without a reported usage
}

// Config configures a Client.
type Config struct {
	Provider  Provider
	Key       string
	Base      string // another address than the provider's own
	Transport http.RoundTripper
	Retries   int              // further tries after a transient failure
	Patience  time.Duration    // for one try
	Heard     func(length int) // receives the length of the answer of a try so far, in bytes; may be nil
	// Wait waits for d before the next try. why is the failure of the last one.
	Wait func(ctx context.Context, why error, d time.Duration) error
}

// Client sends questions to one model.
type Client struct {
	Config
	name string
}

// New returns a client of the model with that name.
func New(name string, c Config) (*Client, error) {
	if _, err := c.Provider.address(c.Base); err != nil {
		return nil, err
	}
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	if c.Heard == nil {
		c.Heard = func(int) {}
	}
	return &Client{c, name}, nil
}

// Name returns the model's name.
func (c *Client) Name() string { return c.name }

// address returns the address of a provider with a slash at its end: the user's, if there is one. That
// receives the key, so it must use https or be on this machine.
func (p Provider) address(raw string) (string, error) {
	base, local, err := gateway.ParseAddress(cmp.Or(raw, gateway.Address(string(p.api))))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", p.BaseVar, err)
	case base.Scheme == "http" && !local:
		return "", fmt.Errorf("%s would send the key to %s unencrypted: use https", p.BaseVar, base.Hostname())
	case p.Name == "openai" && strings.Trim(base.Path, "/") == "":
		base = base.JoinPath("v1")
	}
	return strings.TrimRight(base.String(), "/") + "/", nil
}

// Error is the failure of a question.
type Error struct {
	Kind  outcome.Outcome // a transient failure may pass
	What  string
	After time.Duration // how long the provider asks to wait, 0 if it does not
	Now   bool          // the provider accepts another try immediately
}

// Error returns what happened.
func (e *Error) Error() string { return e.What }

// Ask sends one question and returns the answer, which may be incomplete. It calls sent with the
// body before each try. Its error is an *Error unless ctx has ended or sent failed.
func (c *Client) Ask(ctx context.Context, prompt string, sent func(body []byte) error) (Answer, error) {
	// The same for each try, so that the provider recognizes a repeated question.
	once := rand.Text()
	var before Answer // all earlier tries
	for try := 1; ; try++ {
		a, err := c.try(ctx, prompt, once, sent)
		a.Tries, a.Usage, a.Lost = try, before.Usage.Add(a.Usage), before.Lost || a.Lost
		before = a
		e, is := errors.AsType[*Error](err)
		switch {
		case err != nil && ctx.Err() != nil:
			return a, context.Cause(ctx)
		case !is:
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

// try sends the question once. If a server at another address does not support OpenAI's Responses
// API, the Client uses the Chat API from then on.
func (c *Client) try(ctx context.Context, prompt, once string, sent func([]byte) error) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, fmt.Errorf("no answer within %s", c.Patience))
	defer cancel()
	t := &try{meter: meter.New(c.Provider.api)}
	t.meter.Longest = maxBody
	a := Answer{Model: c.name}
	var text strings.Builder
	c.Heard(0)
	base, err := c.Provider.address(c.Base)
	if err != nil {
		return a, err
	}
	heard := func(model, piece string) {
		a.Model = cmp.Or(model, a.Model)
		text.WriteString(piece)
		c.Heard(text.Len())
	}
	err = t.run(ctx, c.Transport, c.Provider.protocol, question{c.Key, base, c.name, prompt, once}, sent, heard)
	a.Text, a.Body, a.Reason, a.Usage = text.String(), t.body, t.meter.Finish(), t.meter.Usage()
	if a.Reason == "" {
		a.Usage = usage.Count{} // so far; the provider may charge for more
	}
	a.Lost = t.asked && !a.Usage.Known() && (t.status == 0 || t.status == http.StatusOK || meter.GaveUp(t.status))
	if c.lacksResponses(t) {
		c.Provider = c.Provider.chat()
		return c.try(ctx, prompt, once, sent)
	}
	err = c.fault(ctx, t, err)
	var failure *Error
	switch {
	case err == nil && slices.Contains(whole, strings.ToLower(a.Reason)):
		a.Finish = Whole
	case err == nil:
		a.Finish = Cut
	case errors.As(err, &failure) && failure.Kind == outcome.Filtered:
		a.Finish = Blocked
	}
	return a, err
}

// whole are the finish reasons of a complete answer.
var whole = []string{"stop", "end_turn", "completed"}

// lacksResponses reports whether a server at the user's address does not support the Responses API.
func (c *Client) lacksResponses(t *try) bool {
	missing := t.status == http.StatusNotFound || t.status == http.StatusMethodNotAllowed
	return missing && c.Base != "" && c.Provider.api == meter.Responses && t.problem().Class != outcome.NoModel
}

// fault returns why a try has no answer, or nil. err is why an event cannot be read, or why
// there is no response.
func (c *Client) fault(ctx context.Context, t *try, err error) error {
	reason := t.meter.Finish()
	failed, is := t.meter.Failed(t.header, time.Now())
	why := cmp.Or(context.Cause(ctx), t.broken, err)
	switch {
	case t.stop != nil:
		return t.stop
	case t.status == 0:
		return c.unavailable("did not respond", why)
	case t.status != http.StatusOK:
		e := c.problem(fmt.Sprintf("responded with status %d", t.status), t.problem())
		e.Now = e.After == 0 && t.header.Get("Retry-After") == "0"
		return e
	case is:
		return c.problem("ended its answer with an error", failed)
	case reason == "":
		return c.unavailable("sent an incomplete answer", cmp.Or(why, errors.New("it has no finish reason")))
	case err != nil:
		return c.unavailable("sent an invalid answer", err)
	case !t.meter.HasEvents():
		return c.unavailable("sent an invalid answer", errors.New("it is not a stream of events"))
	}
	switch class := meter.OfFinish(reason); class {
	case outcome.Filtered:
		return &Error{Kind: class, What: fmt.Sprintf("the answer was blocked by %s (%s)", c.name, reason)}
	case outcome.Unavailable:
		return c.unavailable("ended its answer", errors.New(reason))
	}
	return nil
}

func (c *Client) unavailable(what string, err error) *Error {
	return c.problem(what, meter.Problem{Class: outcome.Unavailable, Words: err.Error()})
}

// problem returns the error of a try. It removes the key before it cuts the text of the provider,
// because a part of the key would not be recognized.
func (c *Client) problem(what string, of meter.Problem) *Error {
	const most = 400
	hide := redact.New(c.Key)
	words := hide.String(strings.Join(strings.Fields(of.Words), " "))
	words = strings.ToValidUTF8(words[:min(len(words), most)], "")
	return &Error{Kind: of.Class, What: fmt.Sprintf("%s %s: %s", c.name, what, words), After: of.Retry}
}

// pause returns how long to wait before the next try. worth is false if another try is useless: a
// quota is not renewed within minutes.
func (c *Client) pause(e *Error, try int) (pause time.Duration, worth bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	if pause = e.After; pause == 0 && !e.Now {
		pause = min(time.Second<<min(try-1, 10), longest)
	}
	return pause, e.Kind.Transient() && e.Kind != outcome.Quota && try <= c.Retries && pause <= patience
}
