package phase

import (
	"fmt"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// An app that does not start, or that ends while it is tested, breaks a contract. abl detects
// that without the tests, and the next Builder reads the observations. The last such iteration of
// a round leaves the phase stuck, until the user runs it again.
func TestAppDoesNotRun(t *testing.T) {
	at := func(iteration int, app string) agent.ScriptCall {
		return call("builder", iteration, hasApp(t, app), report())
	}
	apps := []agent.ScriptCall{at(1, "exits-with-7.mjs"), at(2, "never-listens.mjs"), at(3, "listens-on-loopback.mjs")}
	p := newProject(t, "", apps...)
	p.Write(".abl/config.yaml", strings.Replace(rounds("3"), "timeout: 20s", "timeout: 5s", 1))
	r := p.Must(3, "phase", "1", "--json")
	all := events(t, r)
	if got, want := verdicts(all), "fail fail fail"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	wants(t, "the end", r.Stderr, "stuck", "1 contract still fails", "3 iterations")
	wants(t, "the events", r.Stdout, `"text":"  SPEC: start the app`, `"text":"    OBSERVED: `)
	if got, want := called(all), "p1-build-1.1 p1-build-2.1 p1-build-3.1"; got != want {
		t.Errorf("calls: got %s, want %s", got, want)
	}
	wants(t, "abl logs app", p.Must(0, "logs", "app", "--iteration", "1").Stdout, "app │ SOURCE-AND-STACK\n")
	again := p.Must(3, "phase", "1", "--json")
	if got := called(events(t, again)); got != "" {
		t.Errorf("the stuck phase: got calls %s, want none", got)
	}
	settings := p.Read(".abl/config.yaml")
	p.Write(".abl/config.yaml", strings.Replace(settings, "timeout: 5s", "timeout: 6s", 1))
	wants(t, "after a change of settings", p.Must(0, "phase", "1", "--dry-run").Stdout,
		"settings, prompts or project.md changed since its last round: a new round begins")
	p.Write(".abl/config.yaml", settings)
	failed, commits := of(all, state.AppFailed), strings.Fields(p.Git(".abl/tests", "log", "--reverse", "--format=%H"))
	if len(failed) != 3 || len(commits) != 3 {
		t.Fatalf("got %d failed apps and %d commits, want 3: %+v", len(failed), len(commits), failed)
	}

	if testing.Short() {
		script(p, builds(write("server.mjs", server)), verifies())
		p.Must(0, "phase", "1", "--again")
	} else {
		appEndsWhileTested(t, p)
	}
	for i, want := range []string{"exit code 7", "connection refused", "127.0.0.1 only"} {
		t.Run(strings.ReplaceAll(want, " ", "-"), func(t *testing.T) {
			wants(t, "app_failed", failed[i].Text, want)
			specs := p.Git(".abl/tests", "show", commits[i]+":failed_specs.md")
			wants(t, "failed_specs.md", specs, "SPEC: start the app → ready on its port\n",
				"INPUT: the command of the app section", want)
			prompt := promptOf(p, fmt.Sprintf("p1-build-%d.1", i+2))
			wants(t, "the next Builder's prompt", prompt, "start the app → ready on its port", want)
			lacks(t, "failed_specs.md, which the Verifier sees", specs, "SOURCE-AND-STACK")
			if i == 0 {
				wants(t, "the next Builder's prompt", prompt, "## Output before the failure", "    SOURCE-AND-STACK")
				wants(t, "app_failed", failed[i].Output, "SOURCE-AND-STACK")
			}
		})
	}
	if got := p.Read(".abl/tests/failed_specs.md"); got != "" {
		t.Errorf("failed_specs.md after a pass: got %q, want nothing", got)
	}
	for _, row := range ledgerRows(p) {
		if row["role"] == "verifier" && row["step"] < "4" {
			t.Errorf("the ledger: got %v, want no call of a Verifier before step 4", row)
		}
	}
	wants(t, "the app's log", p.Read(".abl/logs/calls/p1-verify-1.1/app/app.log"), "SOURCE-AND-STACK")
	checkNothingLeft(p)
}

// appEndsWhileTested plays a second round, in which the app ends while it is tested. That breaks a
// contract, whatever the tests print, unless the exit code is 0 or a declared command ends the
// app.
func appEndsWhileTested(t *testing.T, p *lab.Project) {
	t.Helper()
	quits := func(iteration int, code string) agent.ScriptCall {
		app := strings.Replace(lab.File(t, "apps/ends-on-request.mjs"), "exit(CODE)", "exit("+code+")", 1)
		return call("builder", iteration, write("server.mjs", app), report())
	}
	session := func(iteration int, suite string, commands ...string) agent.ScriptCall {
		steps := []agent.Step{hasSuite(t, suite)}
		for _, c := range commands {
			steps = append(steps, run(c))
		}
		return call("verifier", iteration, append(steps, report())...)
	}
	gone := lab.File(t, "scripts/wait-for-the-app-to-go.sh")
	const quitting = "honest-and-ends-the-app.sh"
	config := strings.NewReplacer(unproven, "", nodeApp, evidence).Replace(rounds("3"))
	p.Write(".abl/config.yaml", config+lab.File(t, "ends-the-app.yaml"))
	script(p,
		quits(1, "7"), session(1, "honest.sh", "curl -s $ABL_APP_URL/quit", "abl-cmd dead", "abl-cmd restart",
			"curl -s $ABL_APP_URL/others", gone),
		quits(2, "8"), session(2, quitting),
		quits(3, "0"), session(3, quitting, "abl-cmd restart", "abl-cmd crash", gone, "abl-cmd restart"))
	r := p.Must(0, "phase", "1", "--again", "--json")
	if got, want := verdicts(events(t, r)), "fail fail pass"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	wants(t, "the fifth Builder's prompt", promptOf(p, "p1-build-5.1"),
		"SPEC: run the app → it runs until it is stopped",
		"the app ended on its own with exit code 7, ", "its container ended on its own with exit code 137")
	wants(t, "the sixth Builder's prompt", promptOf(p, "p1-build-6.1"), "INPUT: the requests of the saved tests",
		"the app ended on its own with exit code 8, ")
	wants(t, "the tests' history", p.Git(".abl/tests", "show", "HEAD~1:failed_specs.md"),
		"the app ended on its own with exit code 8, ")
	wants(t, "the notes", notesOf(t, r.Stdout), "the app ended on its own with exit code 0, ",
		"a declared command ended the app with exit code 137")
}

func checkNothingLeft(p *lab.Project) {
	p.Helper()
	if left := p.Left(); left != "" {
		p.Errorf("left on the engine: got %s, want nothing", left)
	}
}
