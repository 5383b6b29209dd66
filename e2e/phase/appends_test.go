package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// ending is a server that ends when it is asked to, in several ways.
const ending = `import http from 'node:http';
import fs from 'node:fs';
fs.writeFileSync('/tmp/pid', String(process.pid));
const others = () => { for (const p of fs.readdirSync('/proc')) if (p > 1 && p != process.pid) try { process.kill(+p, 'SIGKILL'); } catch {} };
http.createServer((req, res) => {
  res.end('ok');
  if (req.url === '/quit') setTimeout(() => process.exit(CODE), 10);
  if (req.url === '/others') setTimeout(others, 10);
}).listen(3000, '0.0.0.0');
`

// An app that ends by itself while it is tested has broken a contract, whatever
// the tests say, unless its code is 0; what abl or a declared command ends has not.
func TestAppThatEndsByItself(t *testing.T) {
	lab.Long(t)
	quits := func(code string) string { return strings.Replace(ending, "CODE", code, 1) }
	session := func(iteration int, suite string, commands ...string) agent.ScriptCall {
		steps := []agent.Step{write("run.sh", suite, "0755")}
		for _, c := range commands {
			steps = append(steps, run(c))
		}
		return call("verifier", iteration, append(steps, report())...)
	}
	gone := "for i in $(seq 100); do curl -s -m 1 $ABL_APP_URL/ >/dev/null || exit 0; sleep 0.1; done; exit 1"
	quitting := honest + "curl -s \"$ABL_APP_URL/quit\" >/dev/null; for i in 1 2 3 4 5 6 7 8; do curl -s -m 1 \"$ABL_APP_URL/\" >/dev/null || break; sleep 0.1; done\n"
	const dead = "while [ -d /proc/$(cat /tmp/pid) ]; do sleep 0.05; done" // until its end was seen
	p := newProject(t, evidence+"verifier_commands:\n  dead: {command: '"+dead+"', description: waits until it has ended}\n"+
		"  crash: {command: 'kill -9 $(cat /tmp/pid); "+dead+"', description: ends it}\n",
		call("builder", 1, write("server.mjs", quits("7")), report()), session(1, honest, "curl -s $ABL_APP_URL/quit", "abl-cmd dead", "abl-cmd restart", "curl -s $ABL_APP_URL/others", gone),
		call("builder", 2, write("server.mjs", quits("8")), report()), session(2, quitting),
		call("builder", 3, write("server.mjs", quits("0")), report()), session(3, quitting, "abl-cmd restart", "abl-cmd crash", gone, "abl-cmd restart"))
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
