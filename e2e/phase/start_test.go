package phase

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// An app that does not start is a failed contract that abl sees by itself: no
// Verifier is paid for it, and the next Builder is told what was observed.
func TestAppThatDoesNotStart(t *testing.T) {
	local := strings.ReplaceAll(server, "0.0.0.0", "127.0.0.1")
	at := func(iteration int, text string) agent.ScriptCall {
		return call("builder", iteration, write("server.mjs", text), report())
	}
	p := newProject(t, "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 3s}}\n",
		at(1, "console.error('SOURCE-AND-STACK'); process.exit(7)\n"),
		at(2, "setInterval(() => {}, 1000)\n"),
		at(3, local),
		at(4, server),
		verifies(),
	)
	r := p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	if got := verdicts(all); got != "fail fail fail pass" {
		t.Errorf("verdicts %q", got)
	}
	for i, want := range []string{"exit code 7", "connection refused", "127.0.0.1 only"} {
		if failed := of(all, state.AppFailed); len(failed) != 3 || !strings.Contains(failed[i].Text, want) {
			t.Errorf("app_failed: %v, want %q", failed, want)
		}
		file := p.Git(".abl/tests", "log", "--reverse", "--format=%H")
		commit := strings.Fields(file)[i]
		specs := p.Git(".abl/tests", "show", commit+":failed_specs.md")
		wants(t, "failed_specs.md", specs, "SPEC: start the app → ready on its port\n", "INPUT: the command of the app section", want)
		prompt := p.Read(".abl/logs/calls/p1-build-" + string(rune('2'+i)) + ".1/in/prompt.md")
		wants(t, "the next Builder's prompt", prompt, "start the app → ready on its port", want)
		lacks(t, "the next Builder's prompt", prompt, "SOURCE-AND-STACK")
	}
	for _, row := range ledgerRows(p) {
		if row["role"] == "verifier" && row["step"] != "4" {
			t.Errorf("a Verifier was paid for: %v", row)
		}
	}
	wants(t, "the app's log", p.Read(".abl/logs/calls/p1-verify-1.1/app/app.log"), "SOURCE-AND-STACK")
}

// Five such iterations are stuck, and so it stays until a person acts.
func TestAppThatNeverStarts(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", "process.exit(3)\n")))
	r := p.Must(3, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "fail fail fail fail fail" {
		t.Errorf("verdicts %q", got)
	}
	wants(t, "what it says", r.Stderr, "stuck", "1 contract still fails", "5 iterations")
	wants(t, "its events", r.Stdout, `"text":"SPEC: start the app`, `"text":"OBSERVED: `)
	wants(t, "failed_specs.md", p.Read(".abl/tests/failed_specs.md"), "exit code 3")
	if strings.Contains(calls(p), "started") {
		t.Error("a Verifier was started")
	}
	again := p.Must(3, "phase", "1", "--json")
	if n := len(of(events(t, again), state.CallStart)); n != 0 {
		t.Errorf("%d calls were made for a stuck phase", n)
	}
	script(p, builds(write("server.mjs", server)), verifies())
	p.Must(0, "phase", "1", "--again")
	if got := p.Read(".abl/tests/failed_specs.md"); got != "" {
		t.Errorf("failed_specs.md after a pass: %s", got)
	}
	wants(t, "the first prompt of the new round", p.Read(".abl/logs/calls/p1-build-6.1/in/prompt.md"), "start the app", "exit code 3")
	noLeftovers(p)
}

func noLeftovers(p *lab.Project) {
	p.Helper()
	if left := p.Left(); left != "" {
		p.Errorf("left on the engine: %s", left)
	}
}
