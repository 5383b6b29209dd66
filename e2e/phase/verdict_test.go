package phase

import (
	"slices"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// rounds returns a configuration with this many iterations per round.
func rounds(n string) string {
	return strings.Replace(scripted, "loop: {", "loop: {max_verifier_iterations: "+n+", ", 1) + nodeApp
}

// abl calls a role again if it does not report, and a Verifier if its failed_specs.md is invalid.
// The second call counts, and so does the work of a Builder that never reports. An entry stays a
// failure if its contract replays ok, with a note. If the same contract fails twice with the same
// observation, the phase ends if the settings say so.
func TestRolesAreCalledAgain(t *testing.T) {
	lab.Long(t)
	at := func(iteration, attempt int, c agent.ScriptCall) agent.ScriptCall {
		c.Iteration, c.Attempt = iteration, attempt
		return c
	}
	forgets := call("verifier", 0, run("rm -f run.sh"), write("failed_specs.md", "nothing that is an entry\n"))
	p := newProject(t, evidence,
		at(1, 1, call("builder", 0, write("server.mjs", server))),
		at(3, 0, call("builder", 0, write("two.txt", "x"))), // never reports
		builds(),
		at(1, 0, forgets),
		at(2, 1, call("verifier", 0, hasSuite(t, "honest.sh"), refute("a failure"), report())),
		at(3, 1, forgets),
		call("verifier", 0, refute("a failure"), report()))
	settings := "loop: {no_progress: {failed: 1, unverified: 0}, "
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", settings, 1))
	r := p.Must(3, "phase", "1", "--json")
	all := events(t, r)
	for what, has := range map[string][2]string{
		"verdicts": {verdicts(all), "unverified unverified fail unverified fail fail"},
		// Without a Builder, because nothing failed.
		"calls": {called(all), "p1-build-1.1 p1-build-1.2 p1-verify-1.1 p1-verify-1.2 p1-verify-2.1 " +
			"p1-build-3.1 p1-build-3.2 p1-verify-3.1 p1-verify-3.2 p1-build-4.1 p1-verify-4.1"},
	} {
		if has[0] != has[1] {
			t.Errorf("%s: got %s, want %s", what, has[0], has[1])
		}
	}
	checkSecondBuilderCall(p, r)
	wants(t, "the Verifier's second prompt", promptOf(p, "p1-verify-1.2"), noReport, "has no complete entry")
	wants(t, "the finding", p.Read(".abl/logs/calls/p1-verify-2.1/finding.json"), "not reproduced")
	wants(t, "the next Builder's prompt", promptOf(p, "p1-build-3.1"), "OBSERVED: a failure", "not reproduced")
	wants(t, "the notes", notesOf(t, r.Stdout), "no progress in step-4", "loop.no_progress: 1", "what was tried",
		"what you could change")
	if got, want := len(ledgerRows(p)), 11; got != want {
		t.Errorf("got %d rows in the ledger, want %d", got, want)
	}
	checkNothingLeft(p)
}

// checkSecondBuilderCall checks that abl calls a Builder without a report once more, and commits
// its work.
func checkSecondBuilderCall(p *lab.Project, r lab.Result) {
	p.Helper()
	wants(p, "the Builder's second prompt", promptOf(p, "p1-build-1.2"), noReport)
	var want []string
	for step, key := range map[string]string{"1": "1.1", "1.2": "1.2", "3": "3.1", "3.2": "3.2", "4": "4.1"} {
		want = append(want, "phase1/build/step-"+step+" p1-build-"+key)
	}
	slices.Sort(want)
	got := strings.Split(p.Git("src", "log", "--reverse",
		"--format=%s %(trailers:key=Abl-Call,valueonly,separator=)"), "\n")
	if !slices.Equal(got, want) {
		p.Errorf("commits of src: got %q, want %q", got, want)
	}
	if got := p.Git("src", "show", "--format=", "--name-only", "HEAD~4"); got != "server.mjs" {
		p.Errorf("the commit of the work without a report: got %q, want server.mjs", got)
	}
	notes := 0
	for _, e := range of(events(p, r), state.Note) {
		if e.Text == noReport {
			notes++
		}
	}
	if notes != 3 { // for calls 1.1, 3.1 and 3.2
		p.Errorf("notes of a missing report: got %d, want 3", notes)
	}
}

// The tests check which phases may run, and the effect of a changed spec.
func TestPhasesAndSpecs(t *testing.T) {
	p := newProject(t, "", builds(write("server.mjs", server)), verifies(refute("no")))
	p.Write(".abl/config.yaml", rounds("1"))
	two := strings.Replace(oneSpec, "Phase 1", "Phase 2", 1)
	p.Write(".abl/specs/phase2.md", two)
	wants(t, "phase 2 first", p.Must(2, "phase", "2").Stderr, "phase 1 has not passed", "abl phase 1")
	p.Must(3, "phase", "1")
	p.Must(3, "phase", "1") // no call, because the phase is stuck
	p.Must(3, "phase", "1", "--again")
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "A service that answers.",
		"A service that answers at once.", 1))
	script(p, builds(write("server.mjs", server)), verifies())
	p.Must(0, "phase", "1") // a changed spec starts the phase again
	if got := p.Git("src", "log", "--reverse",
		"--format=%s"); got != "phase1/build/step-1\nphase1/build/step-2\nphase1/build/step-3" {
		t.Errorf("commits of src over three rounds: got\n%s\nwant steps 1 to 3 of the Builder", got)
	}
	wants(t, "the first prompt of the round", p.Read(".abl/logs/calls/p1-build-3.1/in/prompt.md"), "OBSERVED: no")
	wants(t, "a passed phase", p.Must(0, "phase", "1").Stderr, "has already passed")

	refined := p.Read(".abl/specs/phase1.md") + "\nMore context.\n"
	p.Write(".abl/specs/phase1.md", refined)
	p.Must(0, "phase", "1")
	if got := p.Git("src", "tag"); !strings.Contains(got, "phase1/passed") || strings.Count(got, "\n") != 1 {
		t.Errorf("tags after two passes: got %q, want phase1/passed and one more", got)
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
		t.Errorf("HEAD of src after a spec was appended: got %s as before, want a new commit", before)
	}
	checkNothingLeft(p)
}
