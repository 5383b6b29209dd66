package evidence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"abl/internal/tap"

	"github.com/google/go-cmp/cmp"
)

// run returns a replay with one letter per contract, from P1.C1: o is ok, x not ok, - missing, s
// skipped, t twice.
func run(letters string) Run {
	var lines []string
	for i, l := range letters {
		id := fmt.Sprintf("P1.C%d", i+1)
		line := "ok - " + id
		switch l {
		case 'x':
			line = "not " + line + "\n  ---\n  input: GET /" + id + "\n  observed: \"500\"\n  ..."
		case 's':
			line += " # SKIP"
		case 't':
			lines = append(lines, line)
		}
		if l != '-' {
			lines = append(lines, line)
		}
	}
	text := fmt.Sprintf("TAP version 14\n1..%d\n%s\n", len(lines), strings.Join(lines, "\n"))
	r := Run{TAP: tap.Parse([]byte(text), true)}
	if strings.Contains(letters, "x") {
		r.Exit = 1
	}
	return r
}

func runs(letters ...string) (all []Run) {
	for _, l := range letters {
		all = append(all, run(l))
	}
	return all
}

func one(letters string) *Run {
	r := run(letters)
	return &r
}

// suite returns a suite with one contract per letter. All its tests fail in the runs without the
// app and against null apps.
func suite(letters ...string) Suite {
	s := Suite{Real: runs(letters...)}
	for i := range letters[0] {
		id := fmt.Sprintf("P1.C%d", i+1)
		s.Contracts = append(s.Contracts, Contract{ID: id, Says: "GET /" + id + " → 200"})
	}
	no := strings.Repeat("x", len(letters[0]))
	s.Away, s.Empty, s.Broken = one(no), one(no), one(no)
	return s
}

func (s Suite) with(change func(*Suite)) Suite {
	change(&s)
	return s
}

func show(f Finding) string {
	var b strings.Builder
	fmt.Fprintln(&b, f.Verdict)
	for _, st := range f.Contracts {
		fmt.Fprintf(&b, "  %s%s %s", Suite{Name: st.Suite}.prefix(), st.Contract, st.Is)
		if len(st.Under) > 0 {
			fmt.Fprintf(&b, ", ok under %s", strings.Join(st.Under, ", "))
		}
		b.WriteString("\n")
	}
	for _, r := range f.Reasons {
		fmt.Fprintf(&b, "! %s\n", r)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "~ %s\n", n)
	}
	for _, e := range f.Entries() {
		fmt.Fprintf(&b, "> %s | %s | %s\n", e.Spec, e.Input, e.Observed)
	}
	return b.String()
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims Claims
		suites []Suite
		want   string
	}{
		{"honest pass", nil, []Suite{suite("oo")}, "pass\n  P1.C1 verified\n  P1.C2 verified\n"},
		{"nothing at all", nil, nil, "unverified\n! there is no contract to prove\n"},
		{"no contracts", nil, []Suite{{Real: runs("o")}}, "unverified\n! there is no contract to prove\n"},
		{"lazy: no run.sh", nil, []Suite{suite("o").with(func(s *Suite) { s.Real = []Run{{Gone: "run.sh is missing"}} })},
			"unverified\n  P1.C1 missing\n! P1.C1 is missing: run.sh is missing (the contract: GET /P1.C1 → 200)\n! run.sh: run.sh is missing\n"},
		{"not replayed", nil, []Suite{suite("o").with(func(s *Suite) { s.Real = nil })},
			"unverified\n  P1.C1 missing\n! P1.C1 is missing: its tests were not replayed (the contract: GET /P1.C1 → 200)\n"},
		{"a contract without a test", nil, []Suite{suite("o-s")},
			"unverified\n  P1.C1 verified\n  P1.C2 missing\n  P1.C3 missing\n" +
				"! P1.C2 is missing: no test line names it (the contract: GET /P1.C2 → 200)\n! P1.C3 is missing: line 4 is marked SKIP (the contract: GET /P1.C3 → 200)\n"},

		{"a failure that replays", Claims{"P1.C2", "P1.C2"}, []Suite{suite("ox")},
			"fail\n  P1.C1 verified\n  P1.C2 failed\n! P1.C2 is failed: 1 of 1 replays are not ok: 500\n"},
		{"a failure that does not replay", Claims{"P1.C1"}, []Suite{suite("o", "o", "o", "o")},
			"fail\n  P1.C1 not reproduced\n! P1.C1 is not reproduced: the Verifier reports a failure, and its test is ok in all of 4 replays\n"},
		{"nor could", Claims{"P1.C1"}, []Suite{suite("o").with(func(s *Suite) { s.Away = one("o") })},
			"fail\n  P1.C1 not reproduced, ok under away\n! P1.C1 is not reproduced: the Verifier reports a failure, and its test is ok in all of 1 replay; but its test is ok without the app (does it send requests to $ABL_APP_URL?)\n"},
		{"a failure without a test", Claims{"P1.C1"}, []Suite{suite("-")},
			"fail\n  P1.C1 failed\n! P1.C1 is failed: the Verifier reports it, the replays have no result: no test line names it\n! run.sh: the plan has no tests\n"},
		{"an entry about something else", Claims{"", "P9.C9"}, []Suite{suite("o")},
			"fail\n  P1.C1 verified\n! failed_specs.md has 2 entries whose contract was not replayed\n"},
		{"an unreported failure", nil, []Suite{suite("ox", "ox", "ox", "ox")},
			"unverified\n  P1.C1 verified\n  P1.C2 disputed\n" +
				"! P1.C2 is disputed: the Verifier reports no failure, and 4 of 4 replays are not ok: 500 (the contract: GET /P1.C2 → 200)\n"},
		{"flaky", nil, []Suite{suite("ox", "oo", "ox")},
			"fail\n  P1.C1 verified\n  P1.C2 flaky\n! P1.C2 is flaky: 2 of 3 runs gave: 500; 1 of 3 gave the contract's result\n" +
				"> GET /P1.C2 → 200 | GET /P1.C2 | 2 of 3 runs gave: 500; 1 of 3 gave the contract's result\n"},
		{"flaky, and reported", Claims{"P1.C1"}, []Suite{suite("oo", "xo", "-o").with(func(s *Suite) { s.Contracts = s.Contracts[:1] })},
			"fail\n  P1.C1 flaky\n! P1.C1 is flaky: 1 of 3 runs gave: 500; 1 of 3 gave the contract's result\n" +
				"> GET /P1.C1 → 200 | GET /P1.C1 | 1 of 3 runs gave: 500; 1 of 3 gave the contract's result\n"},
		{"ok, or nothing", nil, []Suite{suite("oo", "o-")},
			"unverified\n  P1.C1 verified\n  P1.C2 missing\n! P1.C2 is missing: in replay 2 of 2 no test line names it (the contract: GET /P1.C2 → 200)\n"},

		{"vacuous with the app away", nil, []Suite{suite("oo").with(func(s *Suite) { s.Away = one("xo") })},
			"unverified\n  P1.C1 verified\n  P1.C2 vacuous, ok under away\n! P1.C2 is vacuous: its test is ok without the app (does it send requests to $ABL_APP_URL?) (the contract: GET /P1.C2 → 200)\n"},
		{"a doubtful ok with the app away is one", nil, []Suite{suite("o").with(func(s *Suite) { s.Away = one("t") })},
			"unverified\n  P1.C1 vacuous, ok under away\n! P1.C1 is vacuous: its test is ok without the app (does it send requests to $ABL_APP_URL?) (the contract: GET /P1.C1 → 200)\n"},
		{"a skip without the app does not count", nil, []Suite{suite("o").with(func(s *Suite) { s.Away = one("s") })}, "pass\n  P1.C1 verified\n"},
		{"no answer is not ok", nil, []Suite{suite("o").with(func(s *Suite) { s.Away, s.Empty, s.Broken = one("-"), &Run{Late: true}, one("-") })}, "pass\n  P1.C1 verified\n"},
		{"an absence with the app away", nil, []Suite{suite("o").with(func(s *Suite) { s.Away, s.Contracts[0].Absence = one("o"), true })},
			"pass\n  P1.C1 verified, ok under away\n"},
		{"an absence under all three", nil, []Suite{suite("o").with(func(s *Suite) {
			s.Away, s.Empty, s.Broken, s.Contracts[0].Absence = one("o"), one("o"), one("o"), true
		})}, "unverified\n  P1.C1 vacuous, ok under away, empty 200, 500\n! P1.C1 is vacuous: its test is ok without the app and with both null apps: it cannot fail (the contract: GET /P1.C1 → 200)\n"},
		{"weak", nil, []Suite{suite("oo").with(func(s *Suite) { s.Empty, s.Broken = one("ox"), one("xo") })},
			"pass\n  P1.C1 weak, ok under empty 200\n  P1.C2 weak, ok under 500\n"},
		{"weak under both", nil, []Suite{suite("o").with(func(s *Suite) { s.Empty, s.Broken = one("o"), one("o") })},
			"pass\n  P1.C1 weak, ok under empty 200, 500\n"},
		{"untried", nil, []Suite{suite("o").with(func(s *Suite) { s.Away, s.Broken = nil, nil })},
			"unverified\n  P1.C1 untried\n! P1.C1 is untried: its tests were not run with the app away and under an app that responds to everything with 500 (the contract: GET /P1.C1 → 200)\n"},
		{"waived", nil, []Suite{suite("o").with(func(s *Suite) {
			s.Away, s.Empty, s.Broken, s.Waived = nil, nil, nil, Waived{Away: true, Null: true}
		})}, "pass\n  P1.C1 verified\n"},

		{"a plan that does not fit", nil, []Suite{suite("o").with(func(s *Suite) { s.Real[0].TAP = tap.Parse([]byte("1..2\nok 1 - P1.C1\n"), true) })},
			"unverified\n  P1.C1 verified\n! run.sh: the plan has 2 tests, but the output has 1 test line\n"},
		{"stopped at its limit", nil, []Suite{suite("oo").with(func(s *Suite) {
			s.Real[0] = Run{Late: true, TAP: tap.Parse([]byte("1..2\nok 1 - P1.C1\nok 2 - P1.C"), false)}
		})}, "unverified\n  P1.C1 verified\n  P1.C2 missing\n! P1.C2 is missing: run.sh was stopped at its time limit before this contract (the contract: GET /P1.C2 → 200)\n" +
			"! run.sh: it was stopped at its time limit\n! run.sh: the plan has 2 tests, but the output has 1 test line\n! run.sh: line 2 of its output: the output ends here, because it was cut or its program was stopped\n"},
		{"an exit code without a reason", nil, []Suite{suite("o", "o").with(func(s *Suite) { s.Real[1].Exit = 7 })},
			"unverified\n  P1.C1 verified\n! run.sh in replay 2 of 2: it ended with exit code 7, but no test line is \"not ok\"\n"},
		{"lines that were not asked for", nil, []Suite{suite("oxo").with(func(s *Suite) { s.Contracts = s.Contracts[:1] })},
			"unverified\n  P1.C1 verified\n! run.sh: line 4 of its output is not ok and names P1.C2, which this suite does not test\n"},
		{"noise and further tests", nil, []Suite{suite("o").with(func(s *Suite) { s.Real[0].TAP = tap.Parse([]byte("hi\n1..2\nok - P1.C1\nok - setup\n"), true) })},
			"pass\n  P1.C1 verified\n"},

		{"regression", nil, []Suite{suite("ox", "ox").with(func(s *Suite) { s.Name, s.Unreported = "phase1/passed", true })},
			"fail\n  phase1/passed: P1.C1 verified\n  phase1/passed: P1.C2 failed\n! phase1/passed: P1.C2 is failed: 2 of 2 replays are not ok: 500\n> GET /P1.C2 → 200 | GET /P1.C2 | 500\n"},
		{"a regression without words", nil, []Suite{suite("x").with(func(s *Suite) {
			s.Unreported, s.Real[0].TAP = true, tap.Parse([]byte("1..1\nnot ok - P1.C1\n# 404,\n# not 200\n"), true)
		})}, "fail\n  P1.C1 failed\n! P1.C1 is failed: 1 of 1 replays are not ok: 404, not 200\n> GET /P1.C1 → 200 | the saved test of this contract, which does not print its input | 404,\nnot 200\n"},
		{"the old tests say otherwise", nil, []Suite{suite("o"), suite("-").with(func(s *Suite) { s.Name = "phase1/passed" })},
			"unverified\n  P1.C1 verified\n  phase1/passed: P1.C1 missing\n! phase1/passed: P1.C1 is missing: no test line names it (the contract: GET /P1.C1 → 200)\n! phase1/passed: run.sh: the plan has no tests\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(Decide(c.claims, c.suites...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims Claims
		real   []string
		alone  bool
		want   bool
	}{
		{"not-yet", nil, nil, false, true},
		{"all-ok", nil, []string{"oo"}, false, false},
		{"as-reported", Claims{"P1.C2"}, []string{"ox"}, false, false},
		{"unreported", nil, []string{"ox"}, false, true},
		{"and-again", nil, []string{"ox", "ox", "ox"}, false, true},
		{"to-the-end", nil, []string{"ox", "ox", "ox", "ox"}, false, false},
		{"flaky", nil, []string{"ox", "ox", "oo"}, false, false},
		{"flaky-and-another-open", nil, []string{"xx", "xo"}, false, true},
		{"reported-and-ok", Claims{"P1.C1"}, []string{"oo"}, false, true},
		{"reported-twice-and-ok", Claims{"P1.C1", "P1.C1"}, []string{"oo", "oo"}, false, true},
		{"reported-and-then-not-ok", Claims{"P1.C1"}, []string{"oo", "xo"}, false, false},
		{"missing", nil, []string{"o-"}, false, false},
		{"a-regression", nil, []string{"ox"}, true, true},
		{"confirmed", nil, []string{"ox", "ox"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := suite("oo")
			s.Real, s.Unreported = runs(c.real...), c.alone
			if got := Again(c.claims, s); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for real, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Second: 5 * time.Second, time.Minute: 2 * time.Minute} {
		if got := Limit(real); got != want {
			t.Errorf("%v: got %v, want %v", real, got, want)
		}
	}
}
