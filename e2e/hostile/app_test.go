package hostile

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The Builder's app runs next to the Verifier. It attacks the kernel and the mounts like a role
// does, and makes the attacks that only an app can make.
func TestAppHolds(t *testing.T) {
	s := newScene(t, usual+"app: {command: sh attack.sh, port: 3000, ready: {path: /, timeout: 120s}, env: "+
		"{FLAVOUR: sweet}}\n")
	attacks := appAttacks()
	s.script(builds(write("attack.sh", inOneScript(t, attacks))), verifies())
	s.play(0)
	log := s.Read(".abl/logs/calls/p1-verify-1.1/app/app.log")
	for _, a := range attacks {
		t.Run("app-"+a.id, func(t *testing.T) { checkHeld(t, a, "app", log) })
	}
}

// inOneScript returns the command of an app that makes these attacks before it serves.
func inOneScript(t *testing.T, attacks []attack) string {
	t.Helper()
	return writeLib(t) + inOrder(t, attacks) + "exec node server.mjs\n"
}

// appAttacks returns the role attacks that an app can make, and its own.
func appAttacks() (attacks []attack) {
	own := []attack{
		{id: "F08", what: "signs of a test that an app could detect"},
		{id: "F10", what: "files for the next call to read"},
		{id: "B12-app", what: "the source, the specs and the tests"},
		{id: "F09-app", what: "the app's own prompts and configuration"},
	}
	attacks = own
	for _, a := range append(kernelAttacks(), mountAttacks()...) {
		switch a.id {
		case "B12", "F09", "F14", "F14-tests": // an app has none of what these attack
		default:
			if a.by == "both" {
				attacks = append(attacks, a)
			}
		}
	}
	return attacks
}

// Group F: attacks by the Verifier through the commands that it may call.
func TestCommandsHold(t *testing.T) {
	s := newScene(t, usual+nodeApp+`
verifier_commands:
  hidden: {command: "cat lib/secret.mjs; cat lib/secret.mjs >&2; exit 5", description: "prints the source"}
  seed: {command: "cat > seeded", description: "accepts any input"}
builder_commands:
  build: {command: "echo built", description: "builds"}
`)
	s.playAttacks(t, []attack{
		{id: "F01", by: "verifier", what: "commands with more than a name"},
		{id: "F01-args", by: "verifier", what: "arguments, options, and a megabyte of arguments"},
		{id: "F02", by: "verifier", what: "the source in the output of a command"},
		{id: "F15", by: "verifier", what: "the app's start with other settings"},
		{id: "F01-api", by: "verifier", what: "the broker itself, with its token"},
		{id: "F01-flood", by: "verifier", what: "more requests and more input than the broker can take"},
		{id: "F01-builder", by: "builder", what: "the Verifier's commands, and the broker"},
	})
	lacks(t, "the Verifier's record", s.Printed("p1-verify-1.1"), s.canaries.Src)
}

// Groups F and G: misbehaving apps. At most they get a failed contract or a failed run.
func TestMisbehavingApps(t *testing.T) {
	lab.Long(t)
	cases := []struct{ id, what, verdict string }{ // the program is testdata/apps/ID.mjs
		{"F06", "a probe response that never ends, then claims that all passed", "pass"},
		{"F06-head", "a response header that never ends", "fail"},
		{"F06-away", "a redirect of the probe to another service", "pass"},
		{"F06-words", "a status line with control sequences for a terminal", "fail"},
		{"G08-app", "an endless log", "pass"},
		{"G10-app", "more memory than the container has", "fail"},
		{"F16", "killing the broker next to the app", "no pass"},
		{"F16-events", "events of the app in the broker's name", "fail"},
	}
	s := newScene(t, "limits: {memory: 256m, pids: 100, output: 16m}\n"+
		"loop: {call_timeout: 60s, max_verifier_iterations: 1}\n")
	for round, c := range cases {
		s.appReadyIn(map[bool]string{true: "60s", false: "3s"}[c.verdict == "pass"])
		s.newRound(round)
		s.script(call("builder", write("server.mjs", lab.File(t, "apps/"+c.id+".mjs")), report()),
			call("verifier", write("run.sh", suite, "0755"), report()))
		r := s.abl("phase", "1", "--json", "--again")
		s.oracle(r)
		t.Run(c.id, func(t *testing.T) { checkRun(t, c.what, c.verdict, r) })
	}
	s.appReadyIn("60s")
	s.recovers()
}

// appReadyIn sets how long the app may take to respond.
func (s *scene) appReadyIn(timeout string) {
	s.Helper()
	config, _, _ := strings.Cut(s.Read(".abl/config.yaml"), "app:")
	s.Write(".abl/config.yaml", config+"app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: "+timeout+"}}\n")
}

// Group F: an app that stops its watching broker does not make abl wait for ever.
func TestAppStopsItsBroker(t *testing.T) {
	lab.Long(t)
	s := newScene(t, "limits: {memory: 256m}\nloop: {call_timeout: 60s, max_verifier_iterations: 1}\n")
	s.appReadyIn("1s")
	s.script(call("builder", write("server.mjs", lab.File(t, "apps/F16-stop.mjs")), report()), verifies())
	var r lab.Result
	s.waits(func() { r = s.play(3) })
	t.Run("F16-stop", func(t *testing.T) { checkRun(t, "a stopped broker", "fail", r) })
	s.appReadyIn("60s")
	s.recovers()
}

func checkRun(t *testing.T, what, want string, r lab.Result) {
	t.Helper()
	got := ""
	for _, e := range of(events(t, r), state.Verdict) {
		got = e.Verdict
	}
	switch {
	case want == "no pass" && got == "pass", want != "no pass" && got != want:
		t.Errorf("%s: got verdict %q, want %s (exit %d): %s", what, got, want, r.Code, r.Stderr)
	case r.Code == 1 || r.Code == 2 || got != "pass" && r.Code == 0:
		t.Errorf("%s: got exit code %d, want one that fits the verdict %q: %s", what, r.Code, got, r.Stderr)
	}
}
