package evidence

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/tap"
	"abl/internal/witness"
	"abl/internal/wording"
)

// asked says whether the app was asked anything in a replay that was watched: by HTTP, or
// by what is none and got an answer.
func (r Run) asked() bool {
	return !r.Watched || slices.ContainsFunc(r.Record, func(x witness.Exchange) bool { return x.Method != "" || x.Got.Bytes > 0 })
}

// echoed says that the app answered the very line by which a contract is ok.
func (s Suite) echoed(c Contract) bool {
	return slices.ContainsFunc(s.Real, func(r Run) bool {
		return slices.ContainsFunc(r.TAP.Of(c.ID).Points, func(p tap.Point) bool {
			return slices.ContainsFunc(r.Record, func(x witness.Exchange) bool { return x.Says(p.Printed) })
		})
	})
}

// noHTTP is how an answer of TLS begins, and one of HTTP/2.
var noHTTP = regexp.MustCompile(`(?s)^(?:[\x15\x16]\x03|\x00..\x04.\x00{4})`)

// toNoHTTP is how a request of TLS begins, and one of HTTP/2.
var toNoHTTP = regexp.MustCompile(`^(?:\x16\x03|PRI \* HTTP/2)`)

// unreadable says that the app was watched, and never answered by HTTP/1: it is encrypted
// and was asked so, or speaks first to tests that never asked by HTTP. That it answers
// noise by what is none says nothing: some servers do, and an app might like not to be read.
func (r Run) unreadable() bool {
	var other, first, asked bool
	for _, x := range r.Record {
		none := noHTTP.Match(x.Got.Begins)
		if x.Status > 0 || x.Method != "" && x.Got.Bytes > 0 && !none {
			return false
		}
		other = other || none && toNoHTTP.Match(x.Sent.Begins)
		first = first || x.Method == "" && x.Sent.Bytes == 0 && x.Got.Bytes > 0
		asked = asked || x.Method != ""
	}
	return r.Watched && (other || first && !asked)
}

// Ran adds a replay against the app.
func (s *Suite) Ran(r Run) {
	s.Real = append(s.Real, r)
	s.Unread = s.Unread || s.Kind == helper.KindTCP || r.unreadable()
	if !s.Unread && s.Kind == "" {
		return
	}
	s.Contracts = slices.Clone(s.Contracts)
	for i := range s.Contracts {
		c := &s.Contracts[i]
		if c.Claim = nil; c.Run != nil && !slices.ContainsFunc(r.Record, c.Run.Asked) {
			c.Run = c.Run.AnyRun()
		}
	}
}

// witnessed is the exchange that shows what a contract says, and what keeps some replay from
// having one. unread says that abl could not look for any.
func (s Suite) witnessed(c Contract) (exchange, lacks string, unread bool) {
	for _, r := range s.Real {
		if !r.Watched {
			continue
		}
		if c.Claim == nil {
			return "", "", true
		}
		shown, lack := r.shows(*c.Claim)
		exchange, lacks = cmp.Or(exchange, shown), cmp.Or(lacks, lack)
	}
	return exchange, lacks, false
}

// shows is an exchange of a replay that shows what a contract says, with its body where there
// is one, or why none does.
func (r Run) shows(claim witness.Claim) (exchange, lacks string) {
	var answers []string
	for _, x := range r.Record {
		if !claim.Asked(x) {
			continue
		}
		shown, misses := fmt.Sprintf("%s → %d", x.Request(), x.Status), claim.Misses(x)
		switch {
		case slices.Contains(answers, misses):
		case misses != "":
			answers = append(answers, misses)
		case claim.Read(x):
			return shown, ""
		default:
			exchange = cmp.Or(exchange, shown+", with a body that abl did not read")
		}
	}
	switch {
	case exchange != "":
		return exchange, ""
	case len(answers) == 0:
		return "", "the tests never sent this request"
	}
	return "", "every answer to this request was another than the contract says: " + wording.Cut(strings.Join(answers, "; "), 200)
}

// patient are words of contracts by which an app may fail first.
var patient = []string{"503", "eventually"}

// repeated says in which runs the answer that fits came after the very same request had
// got an error of the app's, or no answer.
func (s Suite) repeated(c Contract) (runs []string) {
	waits := func(word string) bool { return strings.Contains(strings.ToLower(c.Says), word) }
	if c.Claim == nil || c.Claim.Trouble() || slices.ContainsFunc(patient, waits) {
		return nil
	}
	for _, r := range s.Real {
		failed := map[[3]string]int{}
		for _, x := range r.Record {
			if !c.Claim.Asked(x) || s.troubled(x) {
				continue
			}
			same := [3]string{x.Method, x.Target, x.Sent.SHA256}
			if x.Status == 0 || x.Status >= 500 {
				failed[same]++
			} else if c.Claim.Misses(x) == "" && failed[same] > 0 {
				runs = append(runs, fmt.Sprintf("%s was asked again until it fitted: %d of %d answers were errors", x.Request(), failed[same], failed[same]+1))
				break
			}
		}
	}
	return runs
}

// troubled says that a contract asks for this very error.
func (s Suite) troubled(x witness.Exchange) bool {
	return slices.ContainsFunc(s.Contracts, func(c Contract) bool { return c.Claim != nil && c.Claim.Trouble() && c.Claim.Fits(x) })
}
