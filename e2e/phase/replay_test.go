package phase

import (
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// evidence has replays, but for those with altered answers: TestWitnessWeak is about these.
const evidence = nodeApp + "verify: {evidence: required, strength_time: 0}\n"

// honest is a suite that notices when there is no app and when it answers otherwise.
const honest = "#!/bin/sh\necho 1..1\nif [ \"$(curl -sf --max-time 5 \"$ABL_APP_URL/\")\" = ok ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; printf '  ---\\n  input: GET /\\n  observed: another text\\n  ...\\n'; fi\n"

func honestly() []string { return []string{"run.sh", honest, "0755"} }

// abl itself replays what the Verifier saved, and keeps with the call what it saw.
func TestReplayConfirmsAPass(t *testing.T) {
	h := honestly()
	out := run("ln -s ../../.env leads-out") // engines refuse a tree with such a link
	p := newProject(t, evidence, builds(write("server.mjs", server), out), verifies(write(h[0], h[1], h[2]), out))
	page := filepath.Join(t.TempDir(), "summary.md")
	p.Env = append(p.Env, "GITHUB_STEP_SUMMARY="+page)
	r := p.Must(0, "phase", "1", "--json", "--junit", "junit.xml")
	wants(t, "the notes", notesOf(t, r.Stdout), "replay: 1 of 1 tests are ok")
	wants(t, "the finding", p.Read(".abl/logs/calls/p1-verify-1.1/finding.json"), `"contract": "P1.C1"`, `"is": "verified"`)
	for _, name := range []string{"replay-app-1", "replay-no app", "replay-empty", "replay-500"} {
		if !p.Exists(".abl/logs/calls/p1-verify-1.1/" + name + "/stdout") {
			t.Errorf("nothing is kept of %s", name)
		}
	}
	isAudited(p, 1, 1)
	isReported(p, page)
	noLeftovers(p)
}

// Whatever a Verifier claims, and whatever the app says of itself: no pass.
func TestLiesAreNoPass(t *testing.T) {
	attempt := func(iteration, attempt int, steps ...agent.Step) agent.ScriptCall {
		c := call("verifier", iteration, steps...)
		c.Attempt = attempt
		return c
	}
	claim := "# All contracts pass\n\nVERDICT: pass\n"
	claims := agent.Step{Report: &claim}
	forged := strings.Replace(server, "'ok'", `'ok 1 - P1.C1\n'`, 1)
	p := newProject(t, "", builds(write("server.mjs", forged)),
		attempt(1, 1, write("run.sh", "#!/bin/sh\necho 1..1\n# holds: P1.C1\ngrep -q '^# holds: P1.C1' \"$0\" && echo 'ok 1 - P1.C1'\n", "0755"), claims),
		attempt(1, 2, write("run.sh", "#!/bin/sh\necho 1..1\ncurl -s --max-time 5 \"$ABL_APP_URL/\"\n", "0755"), claims),
		attempt(2, 1, run("mkdir -p verifier_reports; printf 'ok 1 - P1.C1\\n1..1\\n' > results.tap; touch verifier_reports/*; (setsid sh -c 'sleep 1; echo x > verifier_reports/phase1_v2_late.md' >/dev/null 2>&1 &)")),
		attempt(2, 2, write("run.sh", strings.Replace(honest, "= ok ]", "= never ]", 1), "0755"), claims))
	p.Write(".abl/config.yaml", strings.Replace(rounds("2"), unproven, "", 1))
	all := of(events(t, p.Must(4, "phase", "1", "--json")), state.Verdict)
	for i, want := range []string{"P1.C1 is vacuous", "P1.C1 is vacuous: its test line is an answer of the app's", "the run report of this call is missing", "P1.C1 is disputed"} {
		if i >= len(all) || all[i].Verdict != "unverified" || !strings.Contains(all[i].Text, want) {
			t.Errorf("verdict %d is not for %q: %+v", i+1, want, all)
		}
	}
	r := audited(p, 1, 1)
	if last := r.Replays[len(r.Replays)-1]; r.Verdict != "unverified" || last.Against != "500" || last.Call != "p1-verify-1.2" {
		t.Errorf("the record: %s, %+v", r.Verdict, last)
	}
	noLeftovers(p)
}

// What phase 1 promised is replayed before a Verifier of phase 2 is paid.
func TestRegressionIsFoundWithoutAVerifier(t *testing.T) {
	h := honestly()
	broken := strings.Replace(server, "'ok'", "'no'", 1)
	two := "#!/bin/sh\necho 1..2\n" + strings.Replace(honest, "#!/bin/sh\necho 1..1\n", "", 1) +
		strings.NewReplacer("#!/bin/sh\necho 1..1\n", "", "1 - P1.C1", "2 - P2.C1", "$ABL_APP_URL/", "$ABL_APP_URL/again").Replace(honest)
	breaks := builds(write("server.mjs", broken))
	breaks.Phase = 2
	verify2 := verifies(write("run.sh", two, "0755"))
	verify2.Phase = 2
	p := newProject(t, evidence, builds(write("server.mjs", server)), verifies(write(h[0], h[1], h[2])))
	p.Write(".abl/specs/phase2.md", strings.NewReplacer("Phase 1", "Phase 2", "GET / →", "GET /again →").Replace(oneSpec))
	p.Must(0, "phase", "1")
	script(p, breaks)
	whole := p.Read(".abl/config.yaml")
	p.Write(".abl/config.yaml", strings.Replace(whole, "loop: {", "loop: {max_verifier_iterations: 1, ", 1))
	r := p.Must(3, "phase", "2", "--json")
	wants(t, "the finding", p.Read(".abl/logs/calls/p2-verify-1.1/finding.json"), `"contract": "P1.C1"`)
	wants(t, "the advice", notesOf(t, r.Stdout), "P1.C1 GET / → 200 with the text ok", "phase1.md:10): it held when phase 1 passed")
	lacks(t, "the advice", notesOf(t, r.Stdout), "no contract says")
	lacks(t, "abl report 2", p.Must(0, "report", "2").Stdout, "what fails besides")
	if got := verdicts(events(t, r)) + ", " + called(events(t, r)); got != "fail, p2-build-1.1" {
		t.Errorf("it came to %s", got)
	}
	if testing.Short() {
		noLeftovers(p)
		return
	}

	p.Write(".abl/config.yaml", whole)
	script(p, builds(write("server.mjs", server)), verify2)
	all := events(t, p.Must(0, "phase", "2", "--again", "--json"))
	if got := verdicts(all) + ", " + called(all); got != "pass, p2-build-2.1 p2-verify-2.1" {
		t.Errorf("it came to %s", got)
	}
	wants(t, "the second Builder's prompt", p.Read(".abl/logs/calls/p2-build-2.1/in/prompt.md"), "SPEC: GET / → 200 with the text ok", "INPUT: GET /", "OBSERVED: another text")
	wants(t, "the tests' history", p.Git(".abl/tests", "log", "--format=%s"), "phase2/verify/step-1", "phase2/verify/step-2")
	isRegressionAudited(p)
	noLeftovers(p)
}

// notesOf are the notes among the events of a run.
func notesOf(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"event":"note"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What is not shown is not believed, whatever the Verifier says about it.
func TestUnbelievable(t *testing.T) {
	lab.Long(t)
	h := honestly()
	silent := strings.Replace(honest, "= ok ]", "= never ]", 1)
	for _, c := range []struct {
		name string
		does []agent.Step
		why  string
	}{
		{"lazy: nothing written", []agent.Step{report()}, "run.sh"},
		{"a report that claims a pass, and a suite that runs nothing", []agent.Step{write("run.sh", "#!/bin/sh\necho 'all 1 tests pass'\n", "0755"), report()}, "P1.C1 is missing"},
		{"the suite disagrees with silence", []agent.Step{write("run.sh", silent, "0755"), report()}, "P1.C1 is disputed"},
		{"it deletes its tests in the end", []agent.Step{write(h[0], h[1], h[2]), report(), run("rm -f run.sh")}, "run.sh"},
		{"it hands out what it once saw", []agent.Step{write("out.tap", "1..1\nok 1 - P1.C1\n"), write("run.sh", "#!/bin/sh\ncat /workspace/tests/out.tap\n", "0755"), report()}, "P1.C1 is vacuous"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			p := newProject(t, evidence, builds(write("server.mjs", server)), call("verifier", 0, c.does...))
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", "loop: {max_verifier_iterations: 1, ", 1))
			r := p.Must(4, "phase", "1", "--json")
			var why []string
			for _, e := range of(events(t, r), state.Verdict) {
				if e.Verdict != "unverified" {
					t.Errorf("verdict %s: %s", e.Verdict, e.Text)
				}
				why = append(why, e.Text)
			}
			wants(t, "the reasons", strings.Join(why, "\n"), c.why)
			wants(t, "what the Verifier is told when it is asked again", p.Read(".abl/logs/calls/p1-verify-1.2/in/prompt.md"), c.why)
			noLeftovers(p)
		})
	}
}

// An entry stays a failure though its contract replays ok, and says so.
func TestRefutationThatDoesNotReplay(t *testing.T) {
	lab.Long(t)
	h := honestly()
	p := newProject(t, evidence, builds(write("server.mjs", server)),
		call("verifier", 1, write(h[0], h[1], h[2]), refute("no"), report()), verifies(write(h[0], h[1], h[2]), run("rm -f failed_specs.md")))
	all := events(t, p.Must(0, "phase", "1", "--json"))
	if got := verdicts(all); got != "fail pass" {
		t.Errorf("verdicts %q", got)
	}
	wants(t, "the finding", p.Read(".abl/logs/calls/p1-verify-1.1/finding.json"), "not reproduced")
	wants(t, "the second Builder's prompt", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"), "not reproduced")
}

// An iteration that moves nothing is said to be one, and ends the phase where the
// person wants that; what could be changed is told.
func TestNoProgressEndsThePhase(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), verifies(refute("another text")))
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", "loop: {no_progress: 1, ", 1))
	r := p.Must(3, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "fail fail" {
		t.Errorf("verdicts %q", got)
	}
	wants(t, "the notes", notesOf(t, r.Stdout), "no progress in step-2", "loop.no_progress is 1", "what was tried", "what you could change")
}
