package phase

import (
	"testing"

	"abl/internal/testing/lab"
)

// Without an app section the app's container starts idle, and a declared background command
// starts the system.
func TestBackgroundCommandStartsTheSystem(t *testing.T) {
	lab.Long(t)
	p := newProject(t, `
verifier_commands:
  start: {command: node server.mjs, background: true, description: "start the service"}
`,
		builds(write("server.mjs", server)),
		verifies(
			must(7, "curl -s http://app:3000/"),
			must(0, "abl-cmd list"),
			must(2, "abl-cmd restart"),
			must(0, "abl-cmd start"),
			must(0, "until curl -sf http://app:3000/; do sleep 0.02; done"),
			run("echo address=$ABL_APP_URL."),
		))
	p.Must(0, "phase", "1")
	out := printed(p, "p1-verify-1.1")
	wants(t, "the Verifier's call", out, "start       start the service", "has no app section", "address=.")
	checkNothingLeft(p)
}

// The Verifier calls declared commands by name, and they run next to the app. It gets their exit
// codes, and their output only if the configuration permits.
func TestDeclaredCommands(t *testing.T) {
	p := newProject(t, lab.File(t, "declared-commands.yaml"),
		builds(hasApp(t, "counts-requests.mjs"),
			must(4, "abl-cmd health_check"), must(2, "abl-cmd query"), must(2, "abl-cmd restart"),
			must(0, "abl-cmd get-spec 1"), must(0, "abl-cmd list"), must(1, "abl-cmd check")),
		verifies(
			must(0, "abl-cmd list"), must(0, "abl-cmd get-spec 1"), must(2, "abl-cmd get-spec 2"), must(2,
				"abl-cmd get-spec ../x"),
			must(2, "abl-cmd nothing"), must(2, "abl-cmd query extra"), must(2, "abl-cmd health_check"),
			must(5, "abl-cmd secret"), must(6, "echo FROM-STDIN | abl-cmd query"),
			must(0, "abl-cmd long > /tmp/long"), must(0, "wc -c < /tmp/long"), must(124, "abl-cmd slow"),
			must(0, lab.File(t, "steps/restarts-between-requests.sh")),
			must(1, "abl-cmd check"), report(), must(0, "abl-cmd check"),
			write("failed_specs.md", "SPEC: half an entry\n"), must(1, "abl-cmd check"), run("rm failed_specs.md"),
		))
	p.Must(0, "phase", "1")

	built := printed(p, "p1-build-1.1")
	wants(t, "the Builder's call", built, "BUILDERS-OUTPUT", "# Phase 1: Answer", "health_check",
		"missing: the run report of this call")
	lacks(t, "the Builder's list", built, "hidden output")

	out := printed(p, "p1-verify-1.1")
	wants(t, "the Verifier's call", out, "SHOWN-OUTPUT\nFROM-STDIN\n/workspace/src plain\n", "# Phase 1: Answer",
		`unknown command "nothing"`, "takes no arguments", "slow", "16384", "only its beginning is shown",
		"OBSERVED", "ok: nothing is missing",
		"ok plain 1ok plain 2ok plain 1\n")
	lacks(t, "the Verifier's call", out, "HIDDEN-OUTPUT", "createServer", "BUILDERS-OUTPUT", "\n  checks")
	in := p.Read(".abl/logs/calls/p1-verify-1.1/in/commands.json")
	wants(t, "commands.json of the Verifier", in, "hidden output")
	lacks(t, "commands.json of the Verifier", in, "HIDDEN-OUTPUT", "cat server.mjs")
	wants(t, "the app's log", p.Read(".abl/logs/calls/p1-verify-1.1/app/app.log"), "HIDDEN-OUTPUT",
		"secret ended with exit code 5")
	checkNothingLeft(p)
}
