package phase

import (
	"fmt"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// An app that does not start is a failed contract that abl sees without a Verifier, and the
// next Builder reads what was observed. The last such iteration of a round leaves the phase
// stuck, until the user runs it again.
func TestAppThatDoesNotStart(t *testing.T) {
	at := func(iteration int, app string) agent.ScriptCall {
		return call("builder", iteration, hasApp(t, app), report())
	}
	p := newProject(t, "", at(1, "exits-with-7.mjs"), at(2, "never-listens.mjs"), at(3, "listens-on-loopback.mjs"))
	p.Write(".abl/config.yaml", strings.Replace(rounds("3"), "timeout: 20s", "timeout: 5s", 1))
	r := p.Must(3, "phase", "1", "--json")
	all := events(t, r)
	if got, want := verdicts(all), "fail fail fail"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	wants(t, "what it says", r.Stderr, "stuck", "1 contract still fails", "3 iterations")
	wants(t, "its events", r.Stdout, `"text":"SPEC: start the app`, `"text":"OBSERVED: `)
	if got, want := called(all), "p1-build-1.1 p1-build-2.1 p1-build-3.1"; got != want {
		t.Errorf("calls: got %s, want %s", got, want)
	}
	again := p.Must(3, "phase", "1", "--json")
	if got := called(events(t, again)); got != "" {
		t.Errorf("the stuck phase: got calls %s, want none", got)
	}
	observations := []string{"exit code 7", "connection refused", "127.0.0.1 only"}
	failed, commits := of(all, state.AppFailed), strings.Fields(p.Git(".abl/tests", "log", "--reverse", "--format=%H"))
	if len(failed) != 3 || len(commits) != 3 {
		t.Fatalf("got %d failed apps and %d commits, want 3: %+v", len(failed), len(commits), failed)
	}

	script(p, builds(write("server.mjs", server)), verifies())
	p.Must(0, "phase", "1", "--again")
	for i, want := range observations {
		t.Run(strings.ReplaceAll(want, " ", "-"), func(t *testing.T) {
			wants(t, "app_failed", failed[i].Text, want)
			specs := p.Git(".abl/tests", "show", commits[i]+":failed_specs.md")
			wants(t, "failed_specs.md", specs, "SPEC: start the app → ready on its port\n", "INPUT: the command of the app section", want)
			prompt := promptOf(p, fmt.Sprintf("p1-build-%d.1", i+2))
			wants(t, "the next Builder's prompt", prompt, "start the app → ready on its port", want)
			lacks(t, "the next Builder's prompt", prompt, "SOURCE-AND-STACK")
		})
	}
	if got := p.Read(".abl/tests/failed_specs.md"); got != "" {
		t.Errorf("failed_specs.md after a pass: got %q, want nothing", got)
	}
	for _, row := range ledgerRows(p) {
		if row["role"] == "verifier" && row["step"] != "4" {
			t.Errorf("a Verifier was paid for: %v", row)
		}
	}
	wants(t, "the app's log", p.Read(".abl/logs/calls/p1-verify-1.1/app/app.log"), "SOURCE-AND-STACK")
	noLeftovers(p)
}

func noLeftovers(p *lab.Project) {
	p.Helper()
	if left := p.Left(); left != "" {
		p.Errorf("left on the engine: %s", left)
	}
}
