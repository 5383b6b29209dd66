// Package report shows audit records to people and to other programs: as text,
// as Markdown and as JUnit XML. What agents wrote stands in the records, so each
// format has one place that makes a text harmless there (escape.go), and nothing
// reaches it past that. It decides nothing and opens no file.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
)

// Run is what there is to report of a phase.
type Run struct {
	Phase  int
	Title  string
	Record *audit.Record // the newest iteration; nil when none was judged
	Before []audit.Record
	Ended  *Ended // how the run ended when it was not with a verdict
}

// Ended is an end that is not a verdict.
type Ended struct {
	Code int    // exit code
	What string // in one sentence
}

// heading is the phase in a few words.
func (r Run) heading() string {
	title := r.Title
	if r.Record != nil {
		title = r.Record.Title
	}
	if title == "" {
		return fmt.Sprintf("phase %d", r.Phase)
	}
	return fmt.Sprintf("phase %d: %s", r.Phase, title)
}

// count says how many contracts came to what.
type count struct{ pass, fail, untried, unknown int }

func counted(r audit.Record) (n count) {
	for _, c := range r.Contracts {
		switch {
		case c.Result == audit.Pass:
			n.pass++
		case c.Result == audit.Fail:
			n.fail++
		case spared(c, r):
			n.untried++
		default:
			n.unknown++
		}
	}
	return n
}

func (n count) String() string {
	parts := []string{fmt.Sprintf("%d pass", n.pass)}
	if n.fail > 0 {
		parts = append(parts, fmt.Sprintf("%d fail", n.fail))
	}
	if n.untried > 0 {
		parts = append(parts, fmt.Sprintf("%d untried", n.untried))
	}
	if n.unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n.unknown))
	}
	return strings.Join(parts, ", ")
}

// spared says that a contract replayed ok and was not tried further, because the
// iteration fails anyway.
func spared(c audit.Contract, r audit.Record) bool {
	return c.Is == "untried" && r.Verdict == audit.Fail
}

// told is where a contract stands, with the reason.
func told(c audit.Contract, r audit.Record) string {
	switch {
	case spared(c, r):
		return "untried: " + untried
	case c.Why == "":
		return stands(c)
	}
	return stands(c) + ": " + c.Why
}

const untried = "ok in the replay, and not tried further, since the iteration fails anyway"

// news are the notes that no contract tells by itself.
func news(r audit.Record) []string {
	return slices.DeleteFunc(slices.Clone(r.Notes), func(note string) bool {
		return slices.ContainsFunc(r.Contracts, func(c audit.Contract) bool { return note == c.ID+" is "+c.Is+": "+c.Why })
	})
}

// besides are the entries that name no contract of the specs.
func besides(r audit.Record) (all []int) {
	for i, e := range r.Entries {
		if !slices.ContainsFunc(r.Contracts, func(c audit.Contract) bool { return c.ID == e.Contract }) {
			all = append(all, i)
		}
	}
	return all
}

// stands is a contract's result with what it stands on, in a few words.
func stands(c audit.Contract) string {
	switch {
	case c.Is == "failed" || c.Is == "verified":
		return c.Result + ", " + "by replay"
	case c.Is == "not reproduced":
		return "fail, by the Verifier, not reproduced"
	case c.Is != "":
		return c.Result + ", " + c.Is
	case c.By == audit.ByVerifier:
		return c.Result + ", by the Verifier's word"
	case c.By == audit.ByReplay:
		return c.Result + ", by replay"
	}
	return c.Result + ", not tested"
}

// proof is the evidence for one contract, a line each.
func proof(c audit.Contract, r audit.Record) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("result: %s", told(c, r))
	if len(c.Runs) > 0 {
		say("replays against the app: %s", strings.Join(c.Runs, ", "))
	}
	if others := tried(r); c.Result == audit.Pass && len(others) > 0 {
		say("not ok, as it should be, against: %s", orNone(without(others, c)))
	}
	if len(c.Under) > 0 {
		say("ok as well under: %s", strings.Join(c.Under, ", "))
	}
	return lines
}

// tried are what the tests were run against besides the app.
func tried(r audit.Record) (all []string) {
	for _, run := range r.Replays {
		if name := underName(run.Against); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// plain are the replays against the app as it is; older records have others too.
func plain(all []audit.Replay) (some []audit.Replay) {
	for _, run := range all {
		if !strings.HasPrefix(run.Name, "mutant-") {
			some = append(some, run)
		}
	}
	return some
}

// underName is what Finding.Under calls what a replay was against, "" for others.
func underName(against string) string {
	return map[string]string{"no app": "away", "empty": "empty 200", "500": "500"}[against]
}

func without(names []string, c audit.Contract) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(c.Under, n) })
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// boundaries sums the proofs of an iteration's containers up.
func boundaries(r audit.Record) string {
	boxes, checks, held := 0, 0, 0
	weak := map[string]bool{}
	add := func(proofs ...*audit.Proof) {
		for _, p := range proofs {
			if p == nil {
				continue
			}
			boxes, checks, held = boxes+1, checks+p.Checks, held+p.Held
			if p.Weak != "" {
				weak[p.Weak] = true
			}
		}
	}
	for _, c := range r.Calls {
		add(c.Boundary, c.App)
	}
	for _, run := range r.Replays {
		add(run.Boundary, run.App)
	}
	if boxes == 0 {
		return "none kept"
	}
	text := fmt.Sprintf("%d of %d checks of %d containers held", held, checks, boxes)
	for why := range weak {
		return text + "; weak network: " + why
	}
	return text
}

// took is a duration as people say it.
func took(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// when is a moment as people read it.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
