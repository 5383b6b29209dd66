package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/witness"
	"abl/roles/replay"
)

// TestStrengthDecides checks that passing tests must detect altered responses, within the time limit.
func TestStrengthDecides(t *testing.T) {
	always := func(took time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return took }
	}
	unnoticed := "its test stays ok when the 200 to GET /1/1 becomes 500"
	for _, c := range []struct {
		name    string
		empty   string // the tests' output for an app with an empty 200
		looksAt string // for each test, the contract whose responses it checks
		time    func(time.Duration) time.Duration
		allow   []string
		want    string // verdict, altered replays, message
	}{
		{"they notice", "--", "12", always(time.Hour), nil,
			"pass 2 shown for 2 of 2 contracts: nothing failed"},
		{"they notice nothing", "--", "00", always(time.Hour), nil,
			"unverified 2 shown for 0 of 2 contracts, 2 weak: P1.C1 is weak: " + unnoticed + " (the contract: GET /1/1 → 200)"},
		{"one assertion for both", "--", "22", always(time.Hour), nil,
			"unverified 2 shown for 1 of 2 contracts, 1 weak: P1.C1 is weak: " + unnoticed + " (the contract: GET /1/1 → 200)"},
		{"which the user allows", "--", "22", always(time.Hour), []string{"P1.C1"},
			"pass 2 shown for 1 of 2 contracts, 1 weak: nothing failed; weak: P1.C1 (" + unnoticed + ")"},
		{"of another contract", "--", "22", always(time.Hour), []string{"P1.C2"},
			"unverified 2 shown for 1 of 2 contracts, 1 weak: P1.C1 is weak: " + unnoticed + " (the contract: GET /1/1 → 200)"},
		{"all may be weak", "--", "00", always(time.Hour), []string{"all"},
			"pass 2 shown for 0 of 2 contracts, 2 weak: nothing failed; weak: P1.C1 (" + unnoticed + "), P1.C2 (its test stays ok when the 404 to GET /1/2 becomes 200)"},
		{"time for one", "--", "12", always(time.Second), nil,
			"pass 1 shown for 1 of 2 contracts, 1 not reached: nothing failed"},
		{"no time", "--", "", always(0), nil, "pass 0 not checked, because verify.strength_time is 0: nothing failed"},
		{"ok for an answer that is right", "+-", "12", always(time.Hour), nil,
			"pass 2 shown for 2 of 2 contracts: nothing failed"},
		{"ok for one that is not, and they notice", "-+", "12", always(time.Hour), nil,
			"pass 2 shown for 2 of 2 contracts: nothing failed"},
		{"ok for one that is not", "-+", "12", always(0), nil,
			"unverified 0 not checked, because verify.strength_time is 0: P1.C2 is weak: its test is ok under an app that responds to everything with an empty 200 (the contract: GET /1/2 → 404)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
			replays := watchedTests(t, c.empty, c.looksAt)
			l, p := w.toJudge(replays)
			l.NoNull, l.StrengthTime, l.Allow.Weak = "", c.time, c.allow
			f, err := w.judged(l, p)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s %d %s: %s", f.Verdict, replays.runs["altered"], f.Evidence.Strength, summary(f))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestSecondRunBeforeAlteredAnswers checks that the tests run once more without alterations first. A
// test that is then not ok is flaky.
func TestSecondRunBeforeAlteredAnswers(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
	replays := watchedTests(t, "--", "12")
	replays.says["app"] = []string{suite(1, "++"), suite(1, "+-"), suite(1, "++")}
	l, p := w.toJudge(replays)
	l.NoNull, l.StrengthTime = "", func(time.Duration) time.Duration { return time.Hour }
	f, err := w.judged(l, p)
	if err != nil {
		t.Fatal(err)
	}
	if f.Verdict != Fail || len(f.Entries) != 1 || !strings.Contains(f.Entries[0].Spec, "/1/2") || replays.runs["altered"] > 0 {
		t.Errorf("got %s with the entries %v after %d altered replays, want a fail of GET /1/2 before any", f.Verdict, f.Entries, replays.runs["altered"])
	}
}

// TestStrengthIsCounted checks the progress: the number of finished replays and of all planned so far.
func TestStrengthIsCounted(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
	l, p := w.toJudge(watchedTests(t, "--", "12"))
	l.NoNull, l.StrengthTime = "", func(time.Duration) time.Duration { return time.Hour }
	var progress []string
	l.Out = state.Func(func(e state.Event) {
		if e.Kind == state.Progress {
			progress = append(progress, e.Text)
		}
	})
	if _, err := w.judged(l, p); err != nil {
		t.Fatal(err)
	}
	want := []string{"replay 1 of 2 with altered responses", "replay 2 of 2 with altered responses"}
	if !slices.Equal(progress, want) {
		t.Errorf("progress: got %q, want %q", progress, want)
	}
}

// watchedTests returns tests that are ok against an app that responds as the contracts of twoEach
// require, with a witness, and print empty for an empty 200. looksAt has for each test the number of
// the contract whose altered response it detects, 0 for none.
func watchedTests(t *testing.T, empty, looksAt string) *tests {
	no := []string{suite(1, "--")}
	says := map[string][]string{"app": {suite(1, "++")}, "no app": no, "empty": {suite(1, empty)}, "500": no}
	exchanges := []witness.Exchange{{Method: "GET", Target: "/1/1", Status: 200}, {Method: "GET", Target: "/1/2", Status: 404}}
	altered := func(r replay.Job) (is [3]bool) {
		for i, x := range exchanges {
			is[i+1] = r.Altering != nil && slices.ContainsFunc(r.Altering.Answers, func(one witness.Altered) bool { return one.Claim.Fits(x) })
		}
		return is
	}
	return &tests{t: t, says: says, altered: func(r replay.Job) string {
		results := []byte("++")
		for i, contract := range looksAt {
			if altered(r)[contract-'0'] {
				results[i] = '-'
			}
		}
		return suite(1, string(results))
	}, watch: func(r replay.Job) (all []witness.Exchange) {
		for i, x := range exchanges {
			x.Altered = altered(r)[i+1]
			all = append(all, x)
		}
		return all
	}}
}
