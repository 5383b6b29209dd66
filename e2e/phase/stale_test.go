package phase

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// route is a request to a project's service, with its contract.
type route struct{ id, path, text string }

// serves returns a step that writes a service with these routes.
func serves(t *testing.T, routes ...route) agent.Step {
	t.Helper()
	texts := map[string]string{}
	for _, r := range routes {
		texts[r.path] = r.text
	}
	data, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	return write("server.mjs", strings.Replace(lab.File(t, "apps/serves-routes.mjs"), "= ROUTES", "= "+string(data), 1))
}

// checks returns a step that writes a suite for these routes.
func checks(t *testing.T, routes ...route) agent.Step {
	t.Helper()
	suite := fmt.Sprintf("%secho 1..%d\n", lab.File(t, "suites/check.sh"), len(routes))
	for i, r := range routes {
		suite += fmt.Sprintf("check %d %s %s %s\n", i+1, r.id, r.path, r.text)
	}
	return write("run.sh", suite, "0755")
}

func (r route) contract() string {
	return fmt.Sprintf("\n- GET %s → 200 with the text %s\n", r.path, r.text)
}

// abl replays the tests of phase 1 before it pays for a Verifier of phase 2. If an earlier phase
// passes on a new source, the later phases become stale: abl replays their tests on the source.
// If they pass, this costs nothing. Otherwise the phase starts again, with the observations.
func TestLaterPassIsStale(t *testing.T) {
	root, two := route{"P1.C1", "/", "ok"}, route{"P2.C1", "/two", "second"}
	more, last := route{"P1.C2", "/more", "further"}, route{"P1.C3", "/last", "final"}
	p := newProject(t, evidence, builds(serves(t, root)), verifies(checks(t, root)))
	phaseOne := func() lab.Result { // in make test without replays: those of phase 2 matter
		if env := p.Env; testing.Short() {
			p.Env = append(env[:len(env):len(env)], "ABL_VERIFY_EVIDENCE=off")
			defer func() { p.Env = env }()
		}
		return p.Must(0, "phase", "1", "--json")
	}
	phaseOne()
	p.Write(".abl/specs/phase2.md", "# Phase 2: Second\n\n## Context\n\nThe same service.\n\n## Contracts\n"+two.contract())
	breaksPhaseOne(p, builds(serves(t, two)), builds(serves(t, root, two)), verifies(checks(t, root, two)))

	p.Write(".abl/specs/phase1.md", oneSpec+more.contract())
	wants(t, "phase 2 on an unverified text", p.Must(2, "phase", "2").Stderr,
		"the spec of phase 1 changed since it passed")
	script(p, builds(serves(t, root, two, more)), verifies(checks(t, root, more)))
	wants(t, "the pass of phase 1", notesOf(t, phaseOne().Stdout),
		"phase 2 is stale since phase 1 passed on another source")
	wants(t, "abl status", p.Must(0, "status").Stdout, "2      stale ", "abl phase 2 replays its tests")
	checkStalePass(p)
	if testing.Short() {
		checkNothingLeft(p)
		return // abl finds a phase that no longer passes like the first one
	}

	p.Write(".abl/specs/phase1.md", p.Read(".abl/specs/phase1.md")+last.contract())
	script(p, builds(serves(t, root, more, last)), verifies(checks(t, root, more, last)))
	phaseOne()
	script(p, builds(serves(t, root, two, more, last)), verifies(checks(t, root, two, more, last)))
	all := events(t, p.Must(0, "phase", "2", "--json"))
	if got := verdicts(all) + ", " + called(all); got != "fail pass, p2-build-5.1 p2-verify-5.1" {
		t.Errorf("broken phase: got %s, want %q", got, "fail pass, p2-build-5.1 p2-verify-5.1")
	}
	wants(t, "the Builder's prompt", p.Read(".abl/logs/calls/p2-build-5.1/in/prompt.md"),
		"SPEC: GET /two → 200 with the text second", "INPUT: GET /two", "OBSERVED: nothing")
	wants(t, "the finding", p.Read(".abl/logs/calls/p2-verify-4.1/finding.json"), `"contract": "P2.C1"`,
		`"by_replay": true`)
	wants(t, "the tests' history", p.Git(".abl/tests", "log", "--format=%s"), "phase2/verify/step-4")

	all = events(t, p.Must(0, "phase", "1", "--again", "--json"))
	if got := verdicts(all) + ", " + called(all); got != "pass, " {
		t.Errorf("second run: got %s, want %q", got, "pass, ")
	}
	if got, want := p.Git("src", "rev-parse", "phase1/passed"), p.Git("src", "rev-parse", "HEAD"); got != want {
		t.Errorf("the tag of phase 1: got %s, want the replayed source %s", got, want)
	}
	lacks(t, "abl status", p.Must(0, "status").Stdout, "stale")
	checkNothingLeft(p)
}

// breaksPhaseOne runs phase 2, whose first Builder breaks phase 1. abl calls no Verifier, and the
// second Builder reads what broke.
func breaksPhaseOne(p *lab.Project, breaks agent.ScriptCall, fixes ...agent.ScriptCall) {
	p.Helper()
	whole := p.Read(".abl/config.yaml")
	p.Write(".abl/config.yaml", strings.Replace(whole, "loop: {", "loop: {max_verifier_iterations: 1, ", 1))
	script(p, breaks)
	all := events(p, p.Must(3, "phase", "2", "--json"))
	if got, want := verdicts(all)+", "+called(all), "fail, p2-build-1.1"; got != want {
		p.Errorf("verdicts and calls: got %s, want %s", got, want)
	}
	wants(p, "the finding", p.Read(".abl/logs/calls/p2-verify-1.1/finding.json"), `"contract": "P1.C1"`)
	wants(p, "the advice", noteTexts(all), "P1.C1 GET / → 200 with the text ok",
		"phase1.md:10): it held when phase 1 passed")
	lacks(p, "the advice", noteTexts(all), "no contract says")
	lacks(p, "abl report 2", p.Must(0, "report", "2").Stdout, "other failures")

	p.Write(".abl/config.yaml", whole)
	script(p, fixes...)
	all = events(p, p.Must(0, "phase", "2", "--again", "--json"))
	if got, want := verdicts(all)+", "+called(all), "pass, p2-build-2.1 p2-verify-2.1"; got != want {
		p.Errorf("verdicts and calls: got %s, want %s", got, want)
	}
	wants(p, "the second Builder's prompt", p.Read(".abl/logs/calls/p2-build-2.1/in/prompt.md"),
		"SPEC: GET / → 200 with the text ok", "INPUT: GET /", "OBSERVED: nothing")
	wants(p, "the tests' history", p.Git(".abl/tests", "log", "--format=%s"), "phase2/verify/step-1",
		"phase2/verify/step-2")
	checkRegressionAudit(p)
}

// checkStalePass checks that the second phase passes on the unchanged source, without a call.
func checkStalePass(p *lab.Project) {
	p.Helper()
	spent, tests := p.Read(".abl/logs/tokens.csv"), p.Git(".abl/tests", "rev-parse", "phase2/passed")
	all := events(p, p.Must(0, "run", "--json"))
	if got := verdicts(all) + ", " + called(all); got != "pass, " {
		p.Errorf("stale phase: got %s, want %q", got, "pass, ")
	}
	if p.Read(".abl/logs/tokens.csv") != spent {
		p.Error("got a cost of the replay, want none")
	}
	if p.Git("src", "rev-parse", "phase2/passed") != p.Git("src", "rev-parse", "HEAD") ||
		p.Git(".abl/tests", "rev-parse", "phase2/passed") != tests {
		p.Error("the tags of phase 2: got another source or other tests, want the replayed ones")
	}
	r := auditRecord(p, 2, 3)
	if r.Verdict != "pass" || !r.ByReplay || r.Iteration != 0 || len(r.Calls) != 0 || r.Commits.Tests != tests ||
		r.Commits.Source != p.Git("src", "rev-parse", "HEAD") {
		p.Errorf("record of the replay: got %+v, want a pass by replay without calls", r)
	}
	var shown []string
	for _, c := range r.Contracts {
		shown = append(shown, c.ID+" "+c.Result+" "+c.By)
	}
	if got := strings.Join(shown, ", "); got != "P1.C1 pass replay, P1.C2 pass replay, P2.C1 pass replay" {
		p.Errorf("contracts of the record: got %s, want P1.C1, P1.C2 and P2.C1 passed by replay", got)
	}
	wants(p, "abl report 2", p.Must(0, "report", "2").Stdout, "step-3: PASS",
		"replays by abl: app, stopped app, null app (empty 200), null app (500); no agent was called")
	lacks(p, "abl status", p.Must(0, "status").Stdout, "stale")
	wants(p, "a passed phase", p.Must(0, "phase", "2").Stderr, "has already passed")
}
