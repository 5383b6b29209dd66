package hostile

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// The app is the Builder's program beside the Verifier: it tries the kernel and
// the mounts as a role does, and what an app alone can try.
func TestAppHolds(t *testing.T) {
	s := newScene(t, usual+"app: {command: sh attack.sh, port: 3000, ready: {path: /, timeout: 120s}, env: {FLAVOUR: sweet}}\n")
	attacks := appAttacks()
	s.script(builds(write("attack.sh", inOneScript(t, attacks))), verifies())
	s.play(0)
	log := s.Read(".abl/logs/calls/p1-verify-1.1/app/app.log")
	for _, a := range attacks {
		t.Run("app-"+a.id, func(t *testing.T) { held(t, a, "app", log) })
	}
}

// inOneScript is the command of an app that tries these before it serves.
func inOneScript(t *testing.T, attacks []attack) string {
	t.Helper()
	return writeLib(t) + inOrder(t, attacks) + "exec node server.mjs\n"
}

// appAttacks are what an app can try of the others' list, and more of its own.
func appAttacks() (attacks []attack) {
	own := []attack{
		{id: "F08", what: "signs by which an app could know that it is tested"},
		{id: "F10", what: "what is left for the next one to read"},
		{id: "B12-app", what: "the source, the specs and the tests"},
		{id: "F09-app", what: "its own orders"},
	}
	attacks = own
	for _, a := range append(kernelAttacks(), mountAttacks()...) {
		switch a.id {
		case "B12", "F09", "F14", "F14-tests": // about what an app does not have at all
		default:
			if a.by == "both" {
				attacks = append(attacks, a)
			}
		}
	}
	return attacks
}

// Group F: what the Verifier can make the commands do that it may call.
func TestCommandsHold(t *testing.T) {
	s := newScene(t, usual+nodeApp+`
verifier_commands:
  hidden: {command: "cat lib/secret.mjs; cat lib/secret.mjs >&2; exit 5", description: "prints the source"}
  seed: {command: "cat > seeded", description: "takes what it is given"}
builder_commands:
  build: {command: "echo built", description: "builds"}
`)
	s.plays(t, []attack{
		{id: "F01", by: "verifier", what: "commands that are more than a name"},
		{id: "F01-args", by: "verifier", what: "arguments, options and a megabyte of them"},
		{id: "F02", by: "verifier", what: "the source in the output of a command"},
		{id: "F15", by: "verifier", what: "the app's start with other settings"},
		{id: "F01-api", by: "verifier", what: "the broker itself, with its token"},
		{id: "F01-flood", by: "verifier", what: "more requests and more input than the broker can take"},
		{id: "F01-builder", by: "builder", what: "the Verifier's commands, and the broker"},
	})
	lacks(t, "the Verifier's record", s.Printed("p1-verify-1.1"), s.canaries.Src)
}

// Group F and G: apps that do not behave. The worst that they win is a failed
// contract or a failed run.
func TestAppsThatDoNotBehave(t *testing.T) {
	lab.Long(t)
	cases := []struct{ id, what, verdict string }{ // the program is testdata/apps/ID.mjs
		{"F06", "an answer of the probe that never ends, then says that all has passed", "pass"},
		{"F06-head", "a head that never ends", "fail"},
		{"F06-away", "a redirect of the probe to somewhere else", "pass"},
		{"F06-words", "a status line that steers a terminal", "fail"},
		{"G08-app", "a log without end", "pass"},
		{"G10-app", "more memory than there is", "fail"},
		{"F16", "the end of the broker beside it", "no pass"},
		{"F16-events", "words of its own in the broker's name", "fail"},
	}
	s := newScene(t, "limits: {memory: 256m, pids: 100, output: 16m}\nloop: {call_timeout: 60s, max_verifier_iterations: 1}\n")
	for round, c := range cases {
		s.appReadyIn(map[bool]string{true: "60s", false: "3s"}[c.verdict == "pass"])
		s.newRound(round)
		s.script(call("builder", write("server.mjs", lab.File(t, "apps/"+c.id+".mjs")), report()), call("verifier", agent.Step{Write: "run.sh", Text: suite, Mode: "0755"}, report()))
		r := s.abl("phase", "1", "--json", "--again")
		s.oracle(r)
		t.Run(c.id, func(t *testing.T) { behaves(t, c.what, c.verdict, r) })
	}
	s.appReadyIn("60s")
	s.recovers()
}

// appReadyIn gives the app this long to answer.
func (s *scene) appReadyIn(timeout string) {
	s.Helper()
	config, _, _ := strings.Cut(s.Read(".abl/config.yaml"), "app:")
	s.Write(".abl/config.yaml", config+"app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: "+timeout+"}}\n")
}

// Group F: an app that stops what watches it keeps nobody waiting for ever.
func TestAppThatStopsItsBroker(t *testing.T) {
	lab.Long(t)
	s := newScene(t, "limits: {memory: 256m}\nloop: {call_timeout: 60s, max_verifier_iterations: 1}\n")
	s.appReadyIn("1s")
	s.script(call("builder", write("server.mjs", lab.File(t, "apps/F16-stop.mjs")), report()), verifies())
	var r lab.Result
	s.waits(func() { r = s.play(3) })
	t.Run("F16-stop", func(t *testing.T) { behaves(t, "a broker that is stopped", "fail", r) })
	s.appReadyIn("60s")
	s.recovers()
}

func behaves(t *testing.T, what, want string, r lab.Result) {
	t.Helper()
	got := ""
	for _, e := range of(events(t, r), state.Verdict) {
		got = e.Verdict
	}
	switch {
	case want == "no pass" && got == "pass", want != "no pass" && got != want:
		t.Errorf("%s: the verdict is %q, want %s (exit %d): %s", what, got, want, r.Code, r.Stderr)
	case r.Code == 1 || r.Code == 2 || got != "pass" && r.Code == 0:
		t.Errorf("%s: abl ended with %d: %s", what, r.Code, r.Stderr)
	}
}
