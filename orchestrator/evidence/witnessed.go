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

// asked reports whether the app got a request or, in another protocol, sent a response. It returns
// true without a witness.
func (r Run) asked() bool {
	return !r.Watched || slices.ContainsFunc(r.Record, func(x witness.Exchange) bool {
		return x.Method != "" || x.Got.Bytes > 0
	})
}

// echoed reports whether the app itself sent a test line that is ok.
func (s Suite) echoed(c Contract) bool {
	return slices.ContainsFunc(s.Real, func(r Run) bool {
		return slices.ContainsFunc(r.TAP.Of(c.ID).Points, func(p tap.Point) bool {
			return slices.ContainsFunc(r.Record, func(x witness.Exchange) bool { return x.Says(p.Printed) })
		})
	})
}

// noHTTP matches the first bytes of a response in TLS or HTTP/2.
var noHTTP = regexp.MustCompile(`(?s)^(?:[\x15\x16]\x03|\x00..\x04.\x00{4})`)

// toNoHTTP matches the first bytes of a request in TLS or HTTP/2.
var toNoHTTP = regexp.MustCompile(`^(?:\x16\x03|PRI \* HTTP/2)`)

// unreadable reports whether the app never answered in HTTP/1: it answered encrypted requests, or
// sent data first to tests that sent no HTTP. A non-HTTP response to other bytes proves nothing:
// some servers send one, and an app may try to avoid being read.
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
	s.Real = append(s.Real, s.ranked(r))
	s.Unread = s.Unread || s.Kind == helper.KindTCP || r.unreadable()
	if !s.Unread && s.Kind == "" {
		return
	}
	s.Contracts = slices.Clone(s.Contracts)
	for i := range s.Contracts {
		c := &s.Contracts[i]
		c.Claim = nil
		if c.Run != nil && !slices.ContainsFunc(r.Record, c.Run.Asked) {
			c.Run = c.Run.Loose()
		}
	}
}

// sight is what the recorded exchanges show of a contract.
type sight struct {
	exchange string // that matches the contract
	lacks    string // why a replay has no such exchange
	unread   string // why abl did not read the body of that exchange, or ""
	blind    bool   // abl can read no request with a response in the contract
}

// witnessed looks in all replays for an exchange or a run that matches a contract.
func (s Suite) witnessed(c Contract) (all sight) {
	for _, r := range s.Real {
		if !r.Watched {
			continue
		}
		claim := s.claim(c)
		if claim == nil {
			return sight{blind: true}
		}
		one := s.shows(r, *claim)
		if next := claim.Next(); next != nil && one.lacks == "" {
			one.lacks = s.shows(r, *next).lacks
		}
		all.exchange = cmp.Or(all.exchange, one.exchange)
		all.lacks = cmp.Or(all.lacks, one.lacks)
		all.unread = cmp.Or(all.unread, one.unread)
		all.blind = all.blind || one.blind
	}
	return all
}

// exchanges returns the exchanges of a replay with the request of a claim, unless another contract's
// claim matches better: GET /login is not the request of GET /C.
func (s Suite) exchanges(r Run, claim witness.Claim) (all []witness.Exchange) {
	for i, x := range r.Record {
		if rank := claim.Rank(x); rank >= 0 && rank >= s.rank(r, i) && claim.Follows(x, r.Record[:i]) {
			all = append(all, x)
		}
	}
	return all
}

// rank returns how well the i-th exchange of a replay matches the request of some contract.
func (s Suite) rank(r Run, i int) int {
	if r.ranks != nil {
		return r.ranks[i]
	}
	most := -1
	for _, c := range s.Contracts {
		if claim := s.claim(c); claim != nil {
			most = max(most, claim.Rank(r.Record[i]))
		}
	}
	return most
}

// ranked returns the replay with the ranks of all of its exchanges.
func (s Suite) ranked(r Run) Run {
	ranks := make([]int, len(r.Record))
	for i := range r.Record {
		ranks[i] = s.rank(r, i)
	}
	r.ranks = ranks
	return r
}

// shows looks for an exchange of a replay that matches a contract, preferably one whose body abl
// read.
func (s Suite) shows(r Run, claim witness.Claim) (found sight) {
	var answers []string
	for _, x := range s.exchanges(r, claim) {
		shown, misses := x.Line(), claim.Misses(x)
		switch unread := claim.Unread(x); {
		case slices.Contains(answers, misses):
		case misses != "":
			answers = append(answers, misses)
		case unread == "":
			return sight{exchange: shown}
		case found.exchange == "":
			found = sight{exchange: shown, unread: unread}
		}
	}
	switch {
	case found.exchange != "":
	case slices.ContainsFunc(r.Record, witness.Exchange.Unkept):
		found.blind = true
	case len(answers) > 0:
		found.lacks = s.vocabulary().every + wording.Cut(strings.Join(answers, "; "), 200)
	case claim.Ordered() && slices.ContainsFunc(r.Record, claim.Asked):
		found.lacks = s.vocabulary().early
	case slices.ContainsFunc(r.Record, claim.AskedOtherwise):
		found.lacks = s.vocabulary().otherwise
	default:
		found.lacks = s.vocabulary().never
	}
	return found
}

var (
	// mayFail matches contracts by which an app may fail at first.
	mayFail = regexp.MustCompile(`(?i)503|eventually`)
	// mayChange matches contracts about time or many requests, by which responses may change.
	mayChange = regexp.MustCompile(`(?i)\b(?:until|after\w*|later|then|next|again|repeat\w*|expir\w*|wait\w*|delay\w*|retr\w*|times|twice|` +
		`\d+(?:st|nd|rd|th)|second|third|more than \d+|rate|limit\w*|ms|seconds|minutes?|hours?|days?|` +
		`in the end|finally|at last|as soon as|once|becomes?|finish\w*|complete\w*|poll\w*)\b`)
)

// repeated describes the replays in which the test repeated a request until its response matched:
// after an error or no response, or right after a response that matches no contract.
func (s Suite) repeated(c Contract) (runs []string) {
	if c.Claim == nil || c.Claim.Trouble() || mayFail.MatchString(c.Says) {
		return nil
	}
	for _, r := range s.Real {
		if text := s.repeatedIn(r, c); text != "" {
			runs = append(runs, text)
		}
	}
	return runs
}

func (s Suite) repeatedIn(r Run, c Contract) string {
	failed := map[[3]string]int{}
	var before *witness.Exchange // the directly preceding one, with such a response
	fitsAnother := func(x witness.Exchange) bool {
		return slices.ContainsFunc(s.Contracts, func(o Contract) bool {
			return o.ID != c.ID && o.Claim != nil && o.Claim.Fits(x)
		})
	}
	for _, x := range r.Record {
		same := [3]string{x.Method, x.Target, x.Sent.SHA256}
		switch {
		case x.Method == "" || c.Claim.DidNotWait(x): // not a request, or the client stopped waiting
		case !c.Claim.Near(x):
			before = nil
		case c.Claim.Fits(x) && failed[same] > 0:
			return fmt.Sprintf("%s was repeated until its response matched: %d of %d responses were errors", x.Request(),
				failed[same], failed[same]+1)
		case c.Claim.Fits(x) && before != nil && x.Repeats(*before) && !mayChange.MatchString(c.Says):
			return fmt.Sprintf("%s was repeated until its response matched: it got %s before", x.Request(),
				c.Claim.Misses(*before))
		case c.Claim.Misses(x) == "" || fitsAnother(x):
			before = nil
		default:
			before = &x
			if x.Status == 0 || x.Status >= 500 {
				failed[same]++
			}
		}
	}
	return ""
}
