package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"abl/internal/gateway/meter"
)

// Trouble is what was wrong with the provider when a call came to its end.
type Trouble struct {
	Kind    meter.Kind
	Status  int    // of the last answer in trouble, 0 for none
	Broken  bool   // that answer had begun well and ended in an error
	Words   string // about it
	Times   int    // requests in a row that had trouble of any kind
	Last    time.Time
	Back    time.Time // until when the provider asks to wait; zero when it does not say
	Waiting bool      // the very last request was not answered when the client went away

	Model  string // that gave the last whole answer
	Finish string // how that answer ended, in the provider's word
	Most   int64  // tokens that it might have, 0 where its request did not say
}

// LastTrouble looks at a call's requests from the last one back to the last that
// was answered well. Trouble that the call got over tells nothing about its end. A
// last request that was itself at fault is Odd, which is no trouble of the provider's;
// one that this gateway refused is Denied.
func LastTrouble(log []Entry, call string) (t Trouble) {
	denied, first, well := "", true, false
	defer func() {
		if t.Times == 0 && !t.Waiting && denied != "" {
			t.Kind, t.Words = meter.Denied, denied
		}
	}()
	for _, e := range slices.Backward(log) {
		if !e.isOf(call) {
			continue
		}
		if e.Req.Refused {
			if isDenied(e.Req) {
				denied = cmp.Or(denied, e.Reason)
			}
			continue
		}
		kind, left := troubleOf(e)
		if left {
			t.Waiting = t.Waiting || first
			first = false
			continue
		}
		first = false
		if well = well || kind == ""; well {
			if kind == "" && isAside(e.Req) {
				continue
			}
			t.ended(e)
			return t
		}
		t.Times++
		if t.Kind != "" {
			continue
		}
		t.Kind, t.Status, t.Broken, t.Words = kind, e.Req.Status, e.Req.Broken, e.Reason
		t.Last, _ = time.Parse(time.RFC3339, e.At) // zero should a line be damaged
		if e.Req.RetryMS > 0 && !t.Last.IsZero() {
			t.Back = t.Last.Add(time.Duration(e.Req.RetryMS) * time.Millisecond)
		}
	}
	return t
}

// isAside says that an answer had to be so short by its request's own wish that it is
// no work.
func isAside(r *Request) bool {
	const short = 256
	return r.MaxTokens > 0 && r.MaxTokens < short && r.Trouble == ""
}

// ended takes up how the last whole answer ended, which counts where no trouble
// followed it.
func (t *Trouble) ended(e Entry) {
	r := e.Req
	switch {
	case r.Trouble == string(meter.Odd) && t.Times == 0:
		t.Kind, t.Status, t.Broken, t.Words = meter.Odd, r.Status, r.Broken, e.Reason
	case r.Trouble == "" && r.Status < http.StatusBadRequest:
		t.Model, t.Finish, t.Most = r.Model, r.Finish, r.MaxTokens
		if t.Times == 0 && !t.Waiting {
			t.Kind = meter.OfFinish(r.Finish)
		}
	}
}

// isDenied says that a request was refused for what it is, whenever it is made.
func isDenied(r *Request) bool {
	return r.Provider != "" && !r.Over && !r.Held && !r.Aborted && r.Status < http.StatusInternalServerError
}

// troubleOf is what was wrong with one request. left says that nobody knows, for
// its client went away before the answer.
func troubleOf(e Entry) (kind meter.Kind, left bool) {
	switch {
	case e.Req.Trouble == string(meter.Odd):
		return "", false // the request was at fault
	case e.Req.Trouble != "":
		return meter.Kind(e.Req.Trouble), false
	case e.Req.Aborted:
		return "", true
	case e.Req.Status < http.StatusBadRequest && e.Usage != nil && !e.Usage.Known():
		return meter.Garbled, false
	}
	return "", false
}
