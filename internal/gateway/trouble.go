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

// Trouble describes the end of a call, as far as the log shows it.
type Trouble struct {
	outcome.Fault        // the fault at the end of the call
	Waiting       bool   // the client left before the response to the last request
	Finish        string // the finish reason of the last response with one, in the provider's term

	// Calls means that the last complete response to a request for work calls a tool.
	Calls bool
	// Unfinished means that the last response to a request for work was incomplete or an error, so
	// that the agent cannot have finished.
	Unfinished bool
	// Left means that the client left during the last response to a request for work. Agents do
	// this once they have the part that they need.
	Left bool
}

// state is the way a response ended.
type state int

const (
	complete state = iota // also a response with an end that is too long to read
	failed
	refused // by the gateway
	left    // by the client, before the end
)

// LastTrouble returns how a call ended, from its requests in the order of their ends. Requests for
// work decide. Another request, such as for the title of a session, only explains why an agent failed
// after its last request for work succeeded. Earlier trouble is ignored if a later request succeeded.
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
	if len(work) == 0 { // an agent without tools: every request that reached a provider is work
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

// isOf reports whether a line belongs to a request of the call that may use tokens.
func (e Entry) isOf(call string) bool {
	return e.Kind == Requested && e.Call == call && e.Req != nil && !e.Req.Free
}

// isWork reports whether a request is a step of the agent's work. A request without a class has a
// path that the gateway refused.
func (r *Request) isWork() bool { return r.Class != "" && !r.Aside && !r.isShort() }

// isShort reports whether a request limits its response to a length that is too short for work.
func (r *Request) isShort() bool {
	const short = 256
	return r.MaxTokens > 0 && r.MaxTokens < short
}

// end returns how a response ended, and its fault.
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

// unfinished reports whether the last response was incomplete or an error, and whether the client
// left it. A request that the client left before any response says nothing about earlier requests.
func unfinished(work []Entry) (bad, wasLeft bool) {
	for _, e := range slices.Backward(work) {
		switch s, _ := e.end(); {
		case s == refused && !e.Req.Aborted, s == failed:
			return true, wasLeft
		case s == complete:
			return false, wasLeft
		case e.Req.Status == http.StatusOK: // earlier trouble was overcome
			return false, true
		}
		wasLeft = true
	}
	return false, wasLeft
}

// explain looks back from the last request to the last successful response. A refusal of the gateway
// only counts if there is no other fault. asides is set if the log also has requests that are not
// for work: only their trouble counts, not their finish.
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
			What:  "abl's gateway refused a request of the agent: " + denied,
			Grown: tooLong,
		}
	}
	return t
}

// isDenied reports whether the gateway refused a request for its content, so that it would refuse it
// again.
func (r *Request) isDenied() bool {
	return r.Provider != "" && !r.Over && !r.Held && !r.Aborted && r.Status < http.StatusInternalServerError
}

// finished returns the fault in the finish reason of a response.
func (r *Request) finished() (class outcome.Outcome, what string) {
	limit := "at the token limit of the model"
	class = meter.OfFinish(r.Finish)
	switch {
	case class == "" || class == outcome.Cut && r.isShort():
		return "", ""
	case class == outcome.Failed: // what the model wrote is at fault
		return "", fmt.Sprintf("the last response of %s ended with %s", r.Model, r.Finish)
	case class == outcome.Unavailable:
		return class, fmt.Sprintf("the provider ended the last response of %s with %q", r.Model, r.Finish)
	case class == outcome.Filtered:
		return class, fmt.Sprintf("%s or the filter of its provider refused to respond (%s)", r.Model, r.Finish)
	case strings.EqualFold(r.Finish, meter.FullContext):
		limit = "because the conversation fills the context of the model"
	case r.MaxTokens > 0:
		limit = fmt.Sprintf("at %d tokens, the limit that the agent sets", r.MaxTokens)
	}
	return class, fmt.Sprintf("the last response of %s was cut off %s (%s)", r.Model, limit, r.Finish)
}
