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
	s.Real = append(s.Real, s.ranked(r))
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

// sight is what the exchanges of the replays show of a contract.
type sight struct {
	exchange string // that shows it
	lacks    string // what keeps some replay from having one
	unread   string // why the body of that exchange was not read, "" where it was
	blind    bool   // abl can read no request with an answer in the contract
}

func (s Suite) witnessed(c Contract) (all sight) {
	for _, r := range s.Real {
		if !r.Watched {
			continue
		}
		if c.Claim == nil {
			return s.ran(r, c)
		}
		one := s.shows(r, *c.Claim)
		all.exchange, all.lacks, all.unread = cmp.Or(all.exchange, one.exchange), cmp.Or(all.lacks, one.lacks), cmp.Or(all.unread, one.unread)
	}
	return all
}

// ran looks for a run of a program that was given the words of a contract, and ended as it says.
func (s Suite) ran(r Run, c Contract) sight {
	if s.Kind != helper.KindCommand || c.Run == nil {
		return sight{blind: true}
	}
	if i := slices.IndexFunc(r.Record, c.Run.Fits); i >= 0 && c.Run.GivesWords() {
		return sight{exchange: r.Record[i].Line()}
	}
	return sight{}
}

// exchanges lists the exchanges of a replay that have the request of a claim, and of no other contract's
// claim more exactly: GET /login is not the request of GET /C.
func (s Suite) exchanges(r Run, claim witness.Claim) (all []witness.Exchange) {
	for i, x := range r.Record {
		if rank := claim.Rank(x); rank >= 0 && rank >= s.rank(r, i) {
			all = append(all, x)
		}
	}
	return all
}

// rank says how exactly the i-th exchange of a replay has the request of some contract.
func (s Suite) rank(r Run, i int) int {
	if r.ranks != nil {
		return r.ranks[i]
	}
	most := -1
	for _, c := range s.Contracts {
		if c.Claim != nil {
			most = max(most, c.Claim.Rank(r.Record[i]))
		}
	}
	return most
}

// ranked is the replay with the ranks of all its exchanges.
func (s Suite) ranked(r Run) Run {
	ranks := make([]int, len(r.Record))
	for i := range r.Record {
		ranks[i] = s.rank(r, i)
	}
	r.ranks = ranks
	return r
}

// shows looks for an exchange of a replay that shows what a contract says, with its body where that
// was read.
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
	case len(answers) > 0:
		found.lacks = s.words().every + wording.Cut(strings.Join(answers, "; "), 200)
	case slices.ContainsFunc(r.Record, claim.AskedOtherwise):
		found.lacks = s.words().otherwise
	default:
		found.lacks = s.words().never
	}
	return found
}

var (
	// Words of contracts by which an app may fail first.
	mayFail = regexp.MustCompile(`(?i)503|eventually`)
	// Words by which it may answer otherwise first: the contract speaks of time, or of many requests.
	mayChange = regexp.MustCompile(`(?i)\b(?:until|after\w*|later|then|next|again|repeat\w*|expir\w*|wait\w*|delay\w*|retr\w*|times|twice|` +
		`\d+(?:st|nd|rd|th)|second|third|more than \d+|rate|limit\w*|ms|seconds|minutes?|hours?|days?|` +
		`in the end|finally|at last|as soon as|once|becomes?|finish\w*|complete\w*|poll\w*)\b`)
)

// repeated says in which runs the answer that fits came after the same request had got an error of
// the app's, or no answer, or right after it had got an answer that fits no contract.
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
	var before *witness.Exchange // with such an answer, directly before
	for _, x := range r.Record {
		same := [3]string{x.Method, x.Target, x.Sent.SHA256}
		switch {
		case x.Method == "" || x.Left && !c.Claim.Fits(x): // nobody was asked, or nobody waited for the answer
		case !c.Claim.Near(x):
			before = nil
		case c.Claim.Fits(x) && failed[same] > 0:
			return fmt.Sprintf("%s was asked again until it fitted: %d of %d answers were errors", x.Request(), failed[same], failed[same]+1)
		case c.Claim.Fits(x) && before != nil && x.Repeats(*before) && !mayChange.MatchString(c.Says):
			return fmt.Sprintf("%s was asked again until it fitted: it got %s before", x.Request(), c.Claim.Misses(*before))
		case c.Claim.Misses(x) == "" || s.fitsAnother(c, x):
			before = nil
		default:
			if before = &x; x.Status == 0 || x.Status >= 500 {
				failed[same]++
			}
		}
	}
	return ""
}

// fitsAnother says that an exchange shows what another contract says.
func (s Suite) fitsAnother(c Contract, x witness.Exchange) bool {
	return slices.ContainsFunc(s.Contracts, func(o Contract) bool { return o.ID != c.ID && o.Claim != nil && o.Claim.Fits(x) })
}
