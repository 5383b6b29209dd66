package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/witness"
	"abl/orchestrator/evidence"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/call"
	"abl/roles/replay"
)

// tests returns TAP lines for replays, by the target and the number of the replay.
type tests struct {
	t       *testing.T
	says    map[string][]string // by target or "phase1/passed": outputs in turn; the last one repeats
	mu      sync.Mutex
	runs    map[string]int
	order   []string // sorted, because some run at the same time
	from    []string // commits that the app was started from
	late    map[string]bool
	altered func(replay.Job) string             // what they say to altered responses
	watch   func(replay.Job) []witness.Exchange // what a witness sees of a replay against the app, nil for nobody there
}

func (s *tests) AtOnce() int { return 1 }

func (s *tests) Run(_ context.Context, r replay.Job) (replay.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = append(s.from, r.Source)
	what := string(r.Against)
	if r.Altering != nil && len(r.Altering.Answers) > 0 {
		what = "altered"
	}
	if r.Commit != "" && r.Against == replay.TheApp {
		what = strings.TrimPrefix(r.Commit, "tests of ")
	}
	if s.runs == nil {
		s.runs = map[string]int{}
	}
	s.order = append(s.order, what)
	slices.Sort(s.order)
	all := s.says[what]
	if what == "altered" && s.altered != nil {
		all = []string{s.altered(r)}
	}
	if len(all) == 0 {
		s.t.Errorf("replays against %s: got one, want none", what)
		return replay.Result{}, nil
	}
	out := all[min(s.runs[what], len(all)-1)]
	s.runs[what]++
	if failed, ok := strings.CutPrefix(out, "app: "); ok {
		return replay.Result{AppFailed: failed}, nil
	}
	if gone, ok := strings.CutPrefix(out, "fault: "); ok {
		return replay.Result{Gone: gone, Fault: true, Output: []byte(suite(1, "--"))}, nil
	}
	done := replay.Result{Output: []byte(out), Took: time.Second, Late: s.late[what]}
	if done.Watched = s.watch != nil && r.Against == replay.TheApp; done.Watched {
		done.Record = s.watch(r)
	}
	return done, nil
}

// suite prints one TAP line per result: "+" is ok, "-" is not ok, "." is missing.
func suite(phase int, results string) string {
	var b strings.Builder
	n := 0
	for i, r := range results {
		switch r {
		case '+':
			n++
			fmt.Fprintf(&b, "ok %d - P%d.C%d x\n", n, phase, i+1)
		case '-':
			n++
			fmt.Fprintf(&b, "not ok %d - P%d.C%d x\n  ---\n  input: 'GET /%d'\n  observed: '500'\n  ...\n", n, phase, i+1, i+1)
		}
	}
	return fmt.Sprintf("1..%d\n", n) + b.String()
}

// twoEach returns specs with two contracts each.
func twoEach(t *testing.T, phases int) spec.Set {
	t.Helper()
	dir := t.TempDir()
	for n := 1; n <= phases; n++ {
		text := fmt.Sprintf("# Phase %d: P\n\n## Context\n\nc\n\n## Contracts\n\n- GET /%d/1 → 200\n- GET /%d/2 → 404\n", n, n, n)
		if err := os.WriteFile(fmt.Sprintf("%s/phase%d.md", dir, n), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, problems := spec.LoadDir(dir)
	if len(set.UpTo(phases)) != phases {
		t.Fatal(problems)
	}
	return set
}

func TestReplayDecides(t *testing.T) {
	refutes := failedspecs.Render([]failedspecs.Entry{{Spec: "GET /1/1 → 200", Input: "GET /1/1", Observed: "500"}})
	for _, c := range []struct {
		name string
		says map[string][]string
		file string
		want string
	}{
		{"a pass", map[string][]string{"app": {suite(1, "++")}, "no app": {suite(1, "--")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "",
			"pass; 500, app, empty, no app"},
		{"tests that pass against nothing", map[string][]string{"app": {suite(1, "++")}, "no app": {suite(1, "+-")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "",
			"unverified: P1.C1 is vacuous"},
		{"a contract without a test", map[string][]string{"app": {suite(1, "+.")}, "no app": {suite(1, "--")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "",
			"unverified: P1.C2 is missing"},
		{"a silent Verifier whose tests fail", map[string][]string{"app": {suite(1, "+-")}, "no app": {suite(1, "--")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "",
			"unverified: P1.C2 is disputed"},
		{"now so, now so", map[string][]string{"app": {suite(1, "-+"), suite(1, "++")}, "no app": {suite(1, "--")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "", "fail: 1 entries by replay"},
		{"a refutation that replays ok", map[string][]string{"app": {suite(1, "++")}}, string(refutes), "fail: 1 entries, not reproduced"},
		{"a refutation that replays", map[string][]string{"app": {suite(1, "-+")}}, string(refutes), "fail: 1 entries"},
		{"an app that starts no second time", map[string][]string{"app": {"app: exit code 1"}, "no app": {suite(1, "--")}, "empty": {suite(1, "--")}, "500": {suite(1, "--")}}, "", "unverified: the app did not start for the replay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-build-1.1": {class: outcome.Done, report: true}, "p1-verify-1.1": {class: outcome.Done, report: true, failed: c.file}})
			l := w.loop()
			replays := &tests{t: t, says: c.says}
			l.Replay, l.Specs = replays, HeldSpecs{Set: twoEach(t, 1)}
			this, _ := l.Specs.Set.Phase(1)
			p := state.Phase{Status: state.Verified, Step: 1, Attempt: 1, Iteration: 1, Class: string(outcome.Done), HeldTo: state.HeldTo{SpecSHA: this.SHA256, SpecSize: len(this.Text)}}
			f, err := w.judged(l, &p)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(f, replays); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestWitnessDecides checks that the recorded exchanges are compared with the contracts, regardless of
// the tests' output.
func TestWitnessDecides(t *testing.T) {
	got := func(target string, status int) witness.Exchange {
		return witness.Exchange{Method: "GET", Target: target, Status: status}
	}
	for _, c := range []struct {
		name string
		seen []witness.Exchange
		want string
		by   string // which exchange each contract is shown
	}{
		{"both requests", []witness.Exchange{got("/1/1", 200), got("/1/2", 404)}, "pass", "GET /1/1 → 200, GET /1/2 → 404"},
		{"no request", nil, "unverified: P1.C1 is vacuous: the tests sent the app no request", ", "},
		{"one request", []witness.Exchange{got("/1/1", 200)},
			"unverified: P1.C2 is not witnessed: the tests never sent this request", "GET /1/1 → 200, "},
		{"another answer", []witness.Exchange{got("/1/1", 200), got("/1/2", 200)},
			"unverified: P1.C2 is not witnessed: every response to this request differs from the contract: 200", "GET /1/1 → 200, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
			replays := &tests{t: t, says: map[string][]string{"app": {suite(1, "++")}, "no app": {suite(1, "--")}}}
			replays.watch = func(replay.Job) []witness.Exchange { return c.seen }
			l, p := w.toJudge(replays)
			w.commits["src"], p.SrcCommit = []string{"a 1111"}, "1111"
			f, err := w.judged(l, p)
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(replays.from, func(c string) bool { return c != p.SrcCommit }); i >= 0 {
				t.Errorf("commit of the app in a replay: got %q, want %q", replays.from[i], p.SrcCommit)
			}
			if got := shown(f, replays); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			f.Held = l.requirements()
			var by []string
			for _, k := range recordOf(f, evidence.Finding{}).Contracts {
				by = append(by, k.Witness)
			}
			if got := strings.Join(by, ", "); got != c.by {
				t.Errorf("witness: got %q, want %q", got, c.by)
			}
		})
	}
}

// TestWeakIsAskedAgainOnce checks that the Verifier of a weak test is called once more, with the
// undetected alterations.
func TestWeakIsAskedAgainOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		allow []string
		want  string
	}{
		{"still weak", nil, "unverified after p1-build-1.1 p1-verify-1.1 p1-verify-1.2"},
		{"allowed", []string{"P1.C2"}, "passed after p1-build-1.1 p1-verify-1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good, "p1-verify-1.2": good})
			l, _ := w.toJudge(watchedTests(t, "--", "10"))
			l.NoNull, l.NoVerdict, l.Allow.Weak = "", 2, c.allow
			l.StrengthTime = func(time.Duration) time.Duration { return time.Hour }
			p, err := l.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s after %s", p.Status, strings.Join(w.done, " ")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			why := "P1.C2 is weak: its test stays ok when the 404 to GET /1/2 becomes 200"
			if named := strings.Contains(strings.Join(p.Why, "\n"), why); named != (c.allow == nil) {
				t.Errorf("reasons for the Verifier: got %q, want %q in them: %t", p.Why, why, c.allow == nil)
			}
		})
	}
}

// TestKilledAmidAlteredReplays checks that an abl that continues after a kill repeats all altered
// replays.
func TestKilledAmidAlteredReplays(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
	replays := watchedTests(t, "--", "12")
	l, p := w.toJudge(endsAt{replays, "replay-altered-2"})
	l.NoNull = ""
	l.StrengthTime = func(time.Duration) time.Duration { return time.Hour }
	if _, err := w.judged(l, p); err == nil || replays.runs["altered"] != 1 {
		t.Fatalf("killed abl: got %v after %d altered replays, want an error after 1", err, replays.runs["altered"])
	}
	left := filepath.Join(w.project.Call("p1-verify-1.1"), "replay-altered-7")
	if err := errors.Join(os.MkdirAll(left, 0o755), os.WriteFile(filepath.Join(left, "replay.json"), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	replays.runs["altered"] = 0
	l.Replay = replays
	f, err := w.judged(l, p)
	if err != nil {
		t.Fatal(err)
	}
	if want := "shown for 2 of 2 contracts"; f.Verdict != Pass || f.Evidence.Strength != want || replays.runs["altered"] != 2 {
		t.Errorf("result: got %s, strength %s after %d altered replays, want %s, %s after 2",
			f.Verdict, f.Evidence.Strength, replays.runs["altered"], Pass, want)
	}
	if _, err := os.Stat(filepath.Join(left, "replay.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("note of the killed abl: got error %v, want %v", err, os.ErrNotExist)
	}
}

// endsAt fails at a replay.
type endsAt struct {
	*tests
	at string
}

func (d endsAt) Run(ctx context.Context, r replay.Job) (replay.Result, error) {
	if strings.HasSuffix(r.Key, d.at) {
		return replay.Result{}, errors.New("killed")
	}
	return d.tests.Run(ctx, r)
}

// toJudge returns a phase of two contracts whose Verifier has just ended.
func (w *world) toJudge(replays Replays) (*Loop, *state.Phase) {
	w.Helper()
	l := w.loop()
	l.Replay, l.NoNull, l.Specs = replays, "no null app", HeldSpecs{Set: twoEach(w.T, 1)}
	held := state.HeldTo{SpecSHA: l.spec().SHA256, SpecSize: len(l.spec().Text)}
	return l, &state.Phase{Status: state.Verified, Step: 1, Attempt: 1, Iteration: 1, Class: string(outcome.Done), HeldTo: held}
}

// TestLateFilesChangeNothing checks that files that appear in the Verifier's workspace after the
// verdict change nothing: an abl that continues uses the recorded verdict.
func TestLateFilesChangeNothing(t *testing.T) {
	refutes := string(failedspecs.Render([]failedspecs.Entry{{Spec: "GET /1/1 → 200", Input: "GET /1/1", Observed: "500"}}))
	for _, c := range []struct{ name, says, file, late, want string }{
		{"a failure after a pass", "++", "", refutes, "pass"},
		{"a failure that is taken away again", "-+", refutes, "", "fail"},
		{"other words after a malformed file", "++", "SPEC: half", refutes, "unverified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true, failed: c.file}})
			l := w.loop()
			l.NoNull = "no null app"
			l.Replay, l.Specs = &tests{t: t, says: map[string][]string{"app": {suite(1, c.says)}, "no app": {suite(1, "--")}}}, HeldSpecs{Set: twoEach(t, 1)}
			this, _ := l.Specs.Set.Phase(1)
			p := state.Phase{Status: state.Verified, Step: 1, Attempt: 1, Iteration: 1, Class: string(outcome.Done), HeldTo: state.HeldTo{SpecSHA: this.SHA256, SpecSize: len(this.Text)}}
			first, err := w.judged(l, &p)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(w.project.Tests, failedspecs.FileName)
			os.Remove(path)
			if c.late != "" {
				if err := os.WriteFile(path, []byte(c.late), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			l = w.loop()
			l.Replay = &tests{t: t} // which must not be used
			again, err := l.turn(roles.Verifier, &p).finding(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if string(first.Verdict) != c.want || again.Verdict != first.Verdict || len(again.Entries) != len(first.Entries) {
				t.Errorf("verdicts: got %s with %d entries, then %s with %d, want %s twice with the same entries",
					first.Verdict, len(first.Entries), again.Verdict, len(again.Entries), c.want)
			}
		})
	}
}

// judged returns the finding for a call that ended as the world says.
func (w *world) judged(l *Loop, p *state.Phase) (Finding, error) {
	w.Helper()
	if _, err := l.Calls.Run(w.Context(), call.Job{Role: roles.Verifier, Call: agent.Call{ID: l.turn(roles.Verifier, p).key}}); err != nil {
		return Finding{}, err
	}
	return l.turn(roles.Verifier, p).finding(w.Context())
}

func shown(f Finding, s *tests) string {
	switch f.Verdict {
	case Pass:
		return "pass; " + strings.Join(s.order, ", ")
	case Fail:
		text := fmt.Sprintf("fail: %d entries", len(f.Entries))
		if f.ByReplay {
			text += " by replay"
		}
		if f.Entries[0].Note != "" {
			text += ", " + f.Entries[0].Note
		}
		return text
	}
	return "unverified: " + strings.Join(f.Missing, "; ")
}

// TestRegressionCostsNoVerifier checks that a regression is found without a Verifier call, and is a
// failed spec with the text of the contract.
func TestRegressionCostsNoVerifier(t *testing.T) {
	for _, c := range []struct {
		name, says, want string
	}{
		{"it holds", suite(1, "++"), "0 entries; phase1/passed"},
		{"it is broken", suite(1, "+-"), "1 entries: GET /1/2 → 404, GET /2, 500; phase1/passed phase1/passed"},
		{"it is broken, and a fault ends the second replay, always", suite(1, "+-") + "then fault: killed", "0 entries; phase1/passed phase1/passed phase1/passed phase1/passed; not shown"},
		{"its tests do not run any more", "1..0\n", "0 entries; phase1/passed; not shown"},
		{"the app does not start", "app: exit code 1", "0 entries: app: exit code 1; phase1/passed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			l := w.loop()
			replays := &tests{t: t, says: map[string][]string{"phase1/passed": strings.Split(c.says, "then ")}}
			l.Number, l.Replay, l.Specs = 2, replays, HeldSpecs{Set: twoEach(t, 2)}
			entries, failed, err := l.turn(roles.Verifier, &state.Phase{Step: 1, Attempt: 1}).regress(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d entries", len(entries))
			for _, e := range entries {
				got += fmt.Sprintf(": %s, %s, %s", e.Spec, e.Input, e.Observed)
			}
			if failed != "" {
				got += ": app: " + failed
			}
			got += "; " + strings.Join(replays.order, " ")
			for _, e := range w.events {
				if e.Kind == state.Note && strings.HasPrefix(e.Text, "the replay of earlier phases is not conclusive") {
					got += "; not shown"
					break
				}
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
