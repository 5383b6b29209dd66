package evidence

import (
	"strings"
	"testing"

	"abl/internal/tap"
)

// TestOlder checks the results of older tests on a source that passes now, per contract.
func TestOlder(t *testing.T) {
	run := func(line string) Run { return Run{TAP: tap.Parse([]byte("1..1\n"+line+"\n"), true)} }
	const ok, notOK, none = "ok 1 - P1.C1", "not ok 1 - P1.C1\n  ---\n  observed: '404'\n  ...", "ok 1 - P1.C2"
	for _, c := range []struct {
		name    string
		claims  Claims
		real    []string
		away    string
		empty   string
		absence bool
		doubt   string
		note    string
	}{
		{"ok under both", Claims{"P1.C1"}, []string{ok}, "", "", false, "", "its own test is ok there now"},
		{"ok under both, and never reported", nil, []string{ok}, "", "", false, "", ""},
		{"still refuted", Claims{"P1.C1"}, []string{notOK, notOK}, notOK, notOK, false, "its test is still not ok: 404; changed since: run.sh (the contract: a → b)", ""},
		{"still refuted, unreported", nil, []string{notOK, notOK}, notOK, notOK, false, "its test is still not ok: 404", ""},
		{"only a status, which an empty 200 has too", Claims{"P1.C1"}, []string{notOK, notOK}, notOK, ok, false, "its test is still not ok: 404", ""},
		{"ok without the app", Claims{"P1.C1"}, []string{notOK, notOK}, ok, notOK, false, "", "was wrong: its test is ok without the app"},
		{"ok without the app, for an absence", Claims{"P1.C1"}, []string{notOK, notOK}, ok, notOK, true, "its test is still not ok: 404", ""},
		{"different results", nil, []string{notOK, ok}, "", "", false, "is not ok in each replay", ""},
		{"no result for a reported contract", Claims{"P1.C1"}, []string{none}, "", "", false, "does not report it: no test line names it", ""},
		{"no result for an unreported contract", nil, []string{none}, "", "", false, "", ""},
		{"not replayed", Claims{"P1.C1"}, nil, "", "", false, "does not report it: its tests were not replayed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Older{Step: 1, Claims: c.claims, Changed: []string{"run.sh"}, Suite: Suite{Contracts: []Contract{{ID: "P1.C1", Says: "a → b", Absence: c.absence}}}}
			for _, line := range c.real {
				o.Suite.Real = append(o.Suite.Real, run(line))
			}
			if c.away != "" {
				away, empty := run(c.away), run(c.empty)
				o.Suite.Away, o.Suite.Empty = &away, &empty
			}
			doubts, notes := o.Weigh()
			for what, is := range map[string]struct {
				got  []string
				want string
			}{"doubts": {doubts, c.doubt}, "notes": {notes, c.note}} {
				if got := strings.Join(is.got, "\n"); (is.want == "") != (got == "") || !strings.Contains(got, is.want) {
					t.Errorf("%s: got %q, want %q", what, got, is.want)
				}
			}
		})
	}
}
