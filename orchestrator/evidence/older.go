package evidence

import (
	"fmt"
	"strings"
)

// Older are tests that refuted a source which passes now as it is, with their replays
// on it.
type Older struct {
	Step    int    // in which they did
	Claims  Claims // of its failed_specs.md
	Suite   Suite
	Changed []string // files of the tests that are others now
}

// Weigh says for which contracts the pass of today's tests is not to be believed,
// and what else a person should know. Those that are ok now too have nothing to say,
// nor have those that are ok where nothing can be: they were wrong.
func (o Older) Weigh() (doubts, notes []string) {
	for _, c := range o.Suite.Contracts {
		t, claimed := tally(o.Suite.Real, c.ID), o.Claims.of(c.ID) > 0
		wrong := o.Suite.vacuous(c)
		switch {
		case t.n > 0 && t.ok == t.n && claimed:
			notes = append(notes, fmt.Sprintf("step-%d refuted %s on this very source, and its own test is ok there now", o.Step, c.ID))
		case t.n > 0 && t.ok == t.n, t.notOK == 0 && !claimed:
		case t.notOK == t.n && wrong != "":
			notes = append(notes, fmt.Sprintf("the test of %s with which step-%d refuted this very source was wrong: %s", c.ID, o.Step, wrong))
		default:
			doubts = append(doubts, o.doubt(t, c))
		}
	}
	return doubts, notes
}

func (o Older) doubt(t tallied, c Contract) string {
	said := "says nothing of it: " + t.silence(o.Suite.Real)
	switch {
	case t.mixed():
		said = "is not ok in each replay: " + t.gave()
	case t.notOK > 0:
		for _, r := range t.results {
			if len(r.Points) > 0 && !r.Points[0].OK {
				said = "is still not ok: " + brief(observed(r.Points[0]))
				break
			}
		}
	}
	changed := "no file of the tests"
	if len(o.Changed) > 0 {
		changed = strings.Join(o.Changed, ", ")
	}
	return fmt.Sprintf("%s passes by its test alone: step-%d refuted this very source, and its test %s; changed since: %s (the contract: %s)", c.ID, o.Step, said, changed, c.Says)
}
