package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
)

// Trouble is what the log says about the end of a call.
type Trouble struct {
	outcome.Fault        // what was wrong when the call ended
	Waiting       bool   // the very last request had no answer yet when the client left
	Finish        string // how the last answer that reports an end ended, in the provider's word

	// Calls means that the last whole answer to a request for work calls a tool.
	Calls bool
	// Unfinished means that the last answer to a request for work was not complete and
	// successful, so that the agent cannot have finished.
	Unfinished bool
	// Left means that the client left while the last answer to a request for work was under
	// way. An agent may do that once it has what it wanted.
	Left bool
}

// state is how an answer ended.
type state int

const (
	complete state = iota // also one of which the end was too long to be read
	failed
	refused // by this gateway
	left    // by the client, before the end
)

// LastTrouble reads the end of a call from its requests, in the order in which they ended.
// Requests for work decide. An aside, such as the title of a session, only explains why an
// agent failed whose last request for work succeeded. Trouble that the call got over says
// nothing about its end.
func LastTrouble(log []Entry, call string) Trouble {
	var all, work []Entry
	for _, e := range log {
		if e.isOf(call) {
			all = append(all, e)
			if e.Req.isWork() {
				work = append(work, e)
			}
		}
	}
	if len(work) == 0 { // an agent without tools: whatever a provider answered is its work
		work = slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Req.Refused })
	}
	t := explain(work, false)
	t.Unfinished, t.Left = unfinished(work)
	if t.Class == "" && t.What == "" && !t.Waiting {
		aside := explain(all, true)
		t.Fault, t.Waiting, t.Finish = aside.Fault, aside.Waiting, cmp.Or(t.Finish, aside.Finish)
	}
	answered := slices.ContainsFunc(work, func(e Entry) bool { return e.Req.Finish != "" })
	t.Grown = answered && (t.Class == outcome.TooLarge || t.Grown)
	return t
}

// isOf reports whether a line is that of a request of the call which may use tokens.
func (e Entry) isOf(call string) bool {
	return e.Kind == Requested && e.Call == call && e.Req != nil && !e.Req.Free
}

// isWork reports whether a request is a step of the agent's work. One without a class was
// refused for its path.
func (r *Request) isWork() bool { return r.Class != "" && !r.Aside && !r.isShort() }

// isShort reports whether a request wants an answer that is too short for work.
func (r *Request) isShort() bool {
	const short = 256
	return r.MaxTokens > 0 && r.MaxTokens < short
}

// end returns how an answer ended, and what is wrong with it.
func (e Entry) end() (s state, f outcome.Fault) {
	r := e.Req
	switch {
	case r.Refused:
		return refused, f
	case r.Trouble != "":
		f = outcome.Fault{Class: r.Trouble, What: e.Reason, Paid: r.Paid}
		if r.Trouble == outcome.Failed { // the request was at fault
			f.Class = ""
		}
		// A line may be damaged.
		if at, err := time.Parse(time.RFC3339, e.At); r.RetryMS > 0 && err == nil {
			f.Back = at.Add(time.Duration(r.RetryMS) * time.Millisecond)
		}
		return failed, f
	case r.Finish != "": // also if the client did not wait for the last bytes
		if f.Class, f.What = r.finished(); f.What != "" {
			return failed, f
		}
		return complete, f
	case r.Aborted:
		return left, f
	case r.Status >= http.StatusBadRequest:
		return failed, outcome.Fault{What: cmp.Or(e.Reason, fmt.Sprintf("the request ended with %d", r.Status))}
	}
	return complete, f
}

// unfinished reports whether the last answer was not complete and successful, or was left by
// the client. A request that the client left before any answer came says nothing about those
// before it.
func unfinished(work []Entry) (bad, wasLeft bool) {
	for _, e := range slices.Backward(work) {
		switch s, _ := e.end(); {
		case s == refused && !e.Req.Aborted, s == failed:
			return true, wasLeft
		case s == complete:
			return false, wasLeft
		case e.Req.Status == http.StatusOK: // what came before it was got over
			return false, true
		}
		wasLeft = true
	}
	return false, wasLeft
}

// explain looks from the last request back to the last one that was answered well. What this
// gateway refused is the trouble if there is no other. asides is set if the log holds requests
// besides those for work: of them only trouble counts, not how they ended.
func explain(log []Entry, asides bool) (t Trouble) {
	denied, tooLong, last, troubled := "", false, true, false
scan:
	for _, e := range slices.Backward(log) {
		s, f := e.end()
		switch {
		case s == refused:
			if e.Req.isDenied() && denied == "" {
				denied, tooLong = e.Reason, e.Req.Status == http.StatusRequestEntityTooLarge
			}
			continue
		case s == left:
			t.Waiting = t.Waiting || last
		case s == failed && f.Class != "" && e.Req.Trouble != "":
			if !troubled {
				troubled, t.Fault = true, f
			}
		default:
			t.Finish, t.Calls = e.Req.Finish, e.Req.Calls
			if !troubled && !t.Waiting && (!asides || e.Req.isWork() || e.Req.Trouble != "") {
				t.Fault = f
			}
			break scan
		}
		last = false
	}
	if !troubled && !t.Waiting && denied != "" {
		t.Fault = outcome.Fault{
			Class: outcome.Denied,
			What:  "abl's gateway refuses the agent's request: " + denied,
			Grown: tooLong,
		}
	}
	return t
}

// isDenied reports whether a request was refused for what it is, whenever it is made.
func (r *Request) isDenied() bool {
	return r.Provider != "" && !r.Over && !r.Held && !r.Aborted && r.Status < http.StatusInternalServerError
}

// finished says what is wrong with the end that an answer reports.
func (r *Request) finished() (class outcome.Outcome, what string) {
	limit := "at the model's own limit of tokens for one"
	switch class = meter.OfFinish(r.Finish); {
	case class == "" || class == outcome.Cut && r.isShort():
		return "", ""
	case class == outcome.Failed: // what the model wrote is at fault
		return "", fmt.Sprintf("the last answer of %s ended with %s", r.Model, r.Finish)
	case class == outcome.Unavailable:
		return class, fmt.Sprintf("the provider ended the last answer of %s with %q", r.Model, r.Finish)
	case class == outcome.Filtered:
		return class, fmt.Sprintf("%s or its provider's filter declined to answer (%s)", r.Model, r.Finish)
	case strings.EqualFold(r.Finish, meter.FullContext):
		limit = "since the conversation fills the model's context"
	case r.MaxTokens > 0:
		limit = fmt.Sprintf("at %d tokens, which is what the agent allows for one", r.MaxTokens)
	}
	return class, fmt.Sprintf("the last answer of %s was cut %s (%s)", r.Model, limit, r.Finish)
}
