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
	"abl/internal/prices"
	"abl/internal/tokens"
)

// Used is what one call used of its model.
type Used struct {
	Model        string
	tokens.Count              // of the answers that were told whole
	Cost         *prices.USD  // of these; nil where the model has no price
	Requests     int64        // that a provider answered, free ones left out
	Untold       int64        // of these, answers of which the provider told nothing, or not all
	Part         tokens.Count // what it told of those
}

// Usage adds up a call's part of the log. An answer was told whole when its price is
// known, and where the model has none, when its tokens are.
func Usage(log []Entry, call string) (u Used) {
	for _, e := range log {
		if !e.isOf(call) || e.Usage == nil || e.Req.Status >= http.StatusBadRequest && !e.Usage.Known() {
			continue // an error answer is not paid for
		}
		u.Model = e.Req.Model
		u.Requests++
		_, whole := e.Usage.All()
		if e.Req.ChargedUSD != nil {
			whole = e.Cost != nil
		}
		if !whole || e.Req.Part {
			u.Untold++
			u.Part = u.Part.Add(*e.Usage)
			continue
		}
		u.Count = u.Count.Add(*e.Usage)
		if e.Cost != nil {
			u.Cost = new(cmp.Or(u.Cost, new(prices.USD)).Plus(*e.Cost))
		}
	}
	return u
}

// isOf says that a line is that of a request of the call which may use tokens.
func (e Entry) isOf(call string) bool {
	return e.Kind == Requested && e.Call == call && e.Req != nil && !e.Req.Free
}

// Charged is what the budgets counted of a call: estimates where its provider did
// not tell. The dollars are nil where a model without a price was asked. Lines that
// are lost are in it as far as a later one sums them up.
func Charged(log []Entry, call string) (tokens int64, usd *prices.USD) {
	usd = new(prices.USD)
	for _, e := range log {
		if e.Kind != Requested || e.Call != call || e.Req == nil || e.Req.Refused {
			continue
		}
		tokens = max(tokens, e.Req.Spent)
		switch {
		case e.Req.SpentUSD != nil && usd != nil:
			*usd = max(*usd, *e.Req.SpentUSD)
		case e.Req.Charged > 0 && e.Req.SpentUSD == nil:
			usd = nil
		}
	}
	return tokens, usd
}

// Trouble is what was wrong with the provider when a call came to its end.
type Trouble struct {
	outcome.Fault
	Waiting bool   // the very last request was not answered when the client went away
	Finish  string // how the last whole answer ended, in the provider's word
}

// LastTrouble looks at a call's requests from the last one back to the last that
// was answered well. Trouble that the call got over tells nothing about its end. What
// this gateway refused is the trouble where there is no other.
func LastTrouble(log []Entry, call string) (t Trouble) {
	denied, last, well, troubled := "", true, false, false
scan:
	for _, e := range slices.Backward(log) {
		r, class, what := e.Req, outcome.Outcome(""), ""
		if !e.isOf(call) {
			continue
		}
		if r.Refused {
			if isDenied(r) {
				denied = cmp.Or(denied, e.Reason)
			}
			continue
		}
		switch {
		case r.Trouble == outcome.Failed:
		case r.Trouble != "":
			class, what = r.Trouble, e.Reason
		case !r.Aborted && r.Status < http.StatusBadRequest && e.Usage != nil && !e.Usage.Known():
			class, what = outcome.Unavailable, cmp.Or(e.Reason, fmt.Sprintf("the provider answers %d with what is no answer of a model", r.Status))
		}
		switch {
		case r.Trouble == "" && r.Aborted:
			t.Waiting = t.Waiting || last
		case class == "" && isAside(r):
			well = true
		case class == "" || well:
			t.ended(e)
			break scan
		case !troubled:
			troubled = true
			t.Class, t.What, t.Paid = class, what, r.Paid
			if at, err := time.Parse(time.RFC3339, e.At); r.RetryMS > 0 && err == nil { // a line may be damaged
				t.Back = at.Add(time.Duration(r.RetryMS) * time.Millisecond)
			}
		}
		last = false
	}
	if !troubled && !t.Waiting && denied != "" {
		t.Class, t.What = outcome.Denied, "abl's gateway refuses the agent's request: "+denied
	}
	return t
}

// isAside says that an answer had to be so short by its request's own wish that it is
// no work.
func isAside(r *Request) bool {
	const short = 256
	return r.MaxTokens > 0 && r.MaxTokens < short && r.Trouble == ""
}

// isDenied says that a request was refused for what it is, whenever it is made.
func isDenied(r *Request) bool {
	return r.Provider != "" && !r.Over && !r.Held && !r.Aborted && r.Status < http.StatusInternalServerError
}

// ended takes up how the last answer without trouble ended, which is the call's own
// end where no trouble followed it.
func (t *Trouble) ended(e Entry) {
	r := e.Req
	switch {
	case r.Trouble == outcome.Failed && t.Class == "":
		t.What = e.Reason
	case r.Trouble == "" && r.Status < http.StatusBadRequest:
		t.Finish = r.Finish
		if t.Class == "" && !t.Waiting {
			t.Class, t.What = r.finished()
		}
	}
}

// finished is what is wrong with the end of an answer that came whole.
func (r *Request) finished() (class outcome.Outcome, what string) {
	limit := "at the model's own limit of tokens for one"
	switch class = meter.OfFinish(r.Finish); {
	case r.Finish == "":
		return "", fmt.Sprintf("the last answer of %s does not say that it is finished", r.Model)
	case class == "":
		return "", ""
	case class == outcome.Filtered:
		return class, fmt.Sprintf("%s or its provider's filter declined to answer (%s)", r.Model, r.Finish)
	case strings.EqualFold(r.Finish, meter.FullContext):
		limit = "since the conversation fills the model's context"
	case r.MaxTokens > 0:
		limit = fmt.Sprintf("at %d tokens, which is what the agent allows for one", r.MaxTokens)
	}
	return class, fmt.Sprintf("the last answer of %s was cut %s (%s)", r.Model, limit, r.Finish)
}
