package phase

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// rounds is a configuration with this many iterations a round.
func rounds(n string) string {
	return strings.Replace(scripted, "loop: {", "loop: {max_verifier_iterations: "+n+", ", 1) + nodeApp
}

// Silence is never a pass: a Verifier without a report, or with a file that
// cannot be read as entries, is asked once more and then there is no verdict. What
// else may be in that file's place is e2e/hostile's (TestRulings).
func TestNoVerdict(t *testing.T) {
	lab.Long(t)
	half := write("failed_specs.md", "SPEC: GET / → 200\n")
	// There is nothing to mend, so the next iteration is a Verifier alone.
	const all = "p1-build-1.1 p1-verify-1.1 p1-verify-1.2 p1-verify-2.1 p1-verify-2.2 "
	for _, c := range []struct {
		name  string
		calls []agent.ScriptCall
		why   string
		limit string
		want  string // calls
	}{
		{"no report", []agent.ScriptCall{call("verifier", 0, write("run.sh", suite, "0755"))}, "the run report of this call is missing", "{unverified: 0}", all},
		{"an earlier report", []agent.ScriptCall{call("verifier", 0, run("mkdir -p verifier_reports; test -e verifier_reports/phase1_v2_x.md || echo x > verifier_reports/phase1_v2_x.md"))}, "the run report of this call is missing", "{failed: 1, unverified: 3}", "p1-build-1.1 p1-verify-1.1 p1-verify-1.2 p1-verify-2.1 "},
		{"malformed", []agent.ScriptCall{call("verifier", 0, half, report())}, "holds no complete entry", "0", "p1-build-1.1 p1-verify-1.1 p1-verify-1.2 "},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			p := newProject(t, "", append(c.calls, builds(write("server.mjs", server)))...)
			p.Write(".abl/config.yaml", strings.Replace(rounds("2"), "loop: {", "loop: {no_progress: "+c.limit+", ", 1))
			r := p.Must(4, "phase", "1", "--json")
			all := events(t, r)
			starts := ""
			for _, e := range of(all, state.CallStart) {
				starts += e.Call + " "
			}
			if starts != c.want {
				t.Errorf("calls %s", starts)
			}
			if got := verdicts(all); got != strings.TrimSpace(strings.Repeat("unverified ", strings.Count(c.want, "verify"))) {
				t.Errorf("verdicts %q", got)
			}
			wants(t, "the reason", of(all, state.Verdict)[0].Text, c.why)
			wants(t, "what the Verifier is told", p.Read(".abl/logs/calls/p1-verify-1.2/in/prompt.md"), c.why)
			wants(t, "the end", r.Stderr, "unverified", "--again")
			noLeftovers(p)
		})
	}
}

// All that keeps a verdict from being believed is told at once, contracts with
// their words. The same answer given again is the last one that is paid.
func TestAllThatIsMissingIsToldAtOnce(t *testing.T) {
	lab.Long(t)
	lines := strings.Replace(honest, "echo 1..1", "echo 1..2; echo 'ok 2 - P1.C9 something else'", 1)
	p := newProject(t, evidence, builds(write("server.mjs", server)), verifies(write("run.sh", lines, "0755")))
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "the text ok\n", "the text ok\nGET /two → 200 with the text two\nGET /three → 404\n", 1))
	r := p.Must(4, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "unverified unverified" {
		t.Errorf("verdicts %q", got)
	}
	want := []string{
		"P1.C2 is missing: no test line names it (the contract: GET /two → 200 with the text two)",
		"P1.C3 is missing: no test line names it (the contract: GET /three → 404)",
		"line 2 of its output names P1.C9, which no spec has",
	}
	wants(t, "what the Verifier is told", p.Read(".abl/logs/calls/p1-verify-1.2/in/prompt.md"), want...)
	wants(t, "what the person is told", r.Stdout, append(want, "loop.no_progress.unverified is 2")...)
	wants(t, "the end", r.Stderr, "after 1 iteration;")
	wants(t, "abl report 1", p.Must(0, "report", "1").Stdout, want...)
	noLeftovers(p)
}

// A Verifier that does it right when it is asked again has given its verdict.
func TestAskedAgain(t *testing.T) {
	lab.Long(t)
	forgets := func(c agent.ScriptCall, attempt int) agent.ScriptCall { c.Attempt = attempt; return c }
	p := newProject(t, nodeApp,
		forgets(call("builder", 1, write("server.mjs", server)), 1),
		builds(),
		forgets(call("verifier", 1, write("failed_specs.md", "nothing that is an entry\n")), 1),
		forgets(call("verifier", 1, refute("a failure"), report()), 2),
		verifies())
	r := p.Must(0, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "unverified fail pass" {
		t.Errorf("verdicts %q", got)
	}
	if got := p.Git("src", "log", "--reverse", "--format=%s %(trailers:key=Abl-Call,valueonly)"); got != "phase1/build/step-1 p1-build-1.1\n\nphase1/build/step-1.2 p1-build-1.2\n\nphase1/build/step-2 p1-build-2.1" {
		t.Errorf("commits of src:\n%s", got)
	}
	if got := p.Git("src", "show", "--format=", "--name-only", "HEAD~2"); got != "server.mjs" {
		t.Errorf("the work without a report was committed as %q", got)
	}
	wants(t, "what the Builder is told", p.Read(".abl/logs/calls/p1-build-1.2/in/prompt.md"), "the run report of this call is missing")
	wants(t, "what the next Builder is told", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"), "OBSERVED: a failure")
	if n := len(ledgerRows(p)); n != 6 {
		t.Errorf("%d rows in the ledger for 6 calls", n)
	}
	noLeftovers(p)
}

// A Builder that never reports is asked once; its work counts all the same.
func TestBuilderWithoutReport(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, call("builder", 0, write("server.mjs", server)), verifies())
	r := p.Must(0, "phase", "1")
	if n := strings.Count(p.Git("src", "log", "--format=%s"), "phase1/build/step-1"); n != 2 {
		t.Errorf("%d Builder calls were committed", n)
	}
	if n := strings.Count(r.Stdout+r.Stderr, "the run report of this call is missing"); n != 2 {
		t.Errorf("the missing report was shown %d times:\n%s", n, r.Stderr)
	}
	wants(t, "abl status", p.Must(0, "status").Stdout, "report")
}

// Which phases may run, and what a change of a spec means.
func TestPhasesAndSpecs(t *testing.T) {
	p := newProject(t, "", builds(write("server.mjs", server)), verifies(refute("no")))
	p.Write(".abl/config.yaml", rounds("1"))
	two := strings.Replace(oneSpec, "Phase 1", "Phase 2", 1)
	p.Write(".abl/specs/phase2.md", two)
	wants(t, "phase 2 first", p.Must(2, "phase", "2").Stderr, "phase 1 has not passed", "abl phase 1")
	p.Must(3, "phase", "1")
	p.Must(3, "phase", "1") // no call: it is stuck
	p.Must(3, "phase", "1", "--again")
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "A service that answers.", "A service that answers at once.", 1))
	script(p, builds(write("server.mjs", server)), verifies())
	p.Must(0, "phase", "1") // a changed spec opens the phase again
	if got := p.Git("src", "log", "--reverse", "--format=%s"); got != "phase1/build/step-1\nphase1/build/step-2\nphase1/build/step-3" {
		t.Errorf("commits of src over three rounds:\n%s", got)
	}
	wants(t, "the first prompt of the round", p.Read(".abl/logs/calls/p1-build-3.1/in/prompt.md"), "OBSERVED: no")
	wants(t, "a passed phase", p.Must(0, "phase", "1").Stderr, "nothing to do")

	refined := p.Read(".abl/specs/phase1.md") + "\nMore context.\n"
	p.Write(".abl/specs/phase1.md", refined)
	p.Must(0, "phase", "1")
	if got := p.Git("src", "tag"); !strings.Contains(got, "phase1/passed") || strings.Count(got, "\n") != 1 {
		t.Errorf("tags after two passes: %q", got)
	}
	p.Must(0, "phase", "2")
	before := p.Git("src", "rev-parse", "HEAD")
	p.Write(".abl/specs/phase1.md", strings.Replace(refined, "at once", "at leisure", 1))
	for _, n := range []string{"1", "2"} {
		wants(t, "a frozen spec that was edited", p.Must(2, "phase", n).Stderr, "phase 1", "frozen", "phase1.md")
	}
	p.Write(".abl/specs/phase1.md", refined+"\nAppended.\n")
	p.Must(0, "phase", "1")
	if p.Git("src", "rev-parse", "HEAD") == before {
		t.Error("an appended spec did not open the phase again")
	}
	noLeftovers(p)
}
