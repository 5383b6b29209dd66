package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// An app that ends by itself while it is tested has broken a contract, whatever
// the tests say, unless its code is 0; what abl or a declared command ends has not.
func TestAppThatEndsByItself(t *testing.T) {
	lab.Long(t)
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
	const dead = "while [ -d /proc/$(cat /tmp/pid) ]; do sleep 0.05; done" // until its end was seen
	p := newProject(t, evidence+"verifier_commands:\n  dead: {command: '"+dead+"', description: waits until it has ended}\n"+
		"  crash: {command: 'kill -9 $(cat /tmp/pid); "+dead+"', description: ends it}\n",
		quits(1, "7"), session(1, "honest.sh", "curl -s $ABL_APP_URL/quit", "abl-cmd dead", "abl-cmd restart", "curl -s $ABL_APP_URL/others", gone),
		quits(2, "8"), session(2, quitting),
		quits(3, "0"), session(3, quitting, "abl-cmd restart", "abl-cmd crash", gone, "abl-cmd restart"))
	r := p.Must(0, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "fail fail pass" {
		t.Errorf("verdicts %q", got)
	}
	prompt := func(n string) string { return p.Read(".abl/logs/calls/p1-build-" + n + ".1/in/prompt.md") }
	wants(t, "the second Builder's prompt", prompt("2"), "SPEC: run the app → it goes on until it is stopped", "the app ended by itself with exit code 7, ", "its container ended by itself with exit code 137")
	wants(t, "the third Builder's prompt", prompt("3"), "INPUT: the requests of the saved tests", "the app ended by itself with exit code 8, ")
	wants(t, "the tests' history", p.Git(".abl/tests", "show", "HEAD~1:failed_specs.md"), "the app ended by itself with exit code 8, ")
	wants(t, "the notes", notesOf(t, r.Stdout), "the app ended by itself with exit code 0, ", "a declared command ended the app with exit code 137")
	noLeftovers(p)
}
