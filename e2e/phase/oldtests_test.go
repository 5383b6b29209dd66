package phase

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// A refuted source does not pass unchanged because its tests were changed: abl also replays the
// tests that refuted it. Only the user can overrule them.
func TestRefutedSourceFailsItsOldTests(t *testing.T) {
	wrong := strings.Replace(server, "'ok'", "'no'", 1)
	loosened := strings.Replace(honest, "= ok ]", "= no ]", 1)
	p := newProject(t, evidence, builds(write("server.mjs", wrong)),
		call("verifier", 1, write("run.sh", honest, "0755"),
			write("greets.test.mjs", "it('greets each stranger kindly', () => {});\n"),
			refute("no, in greets each stranger kindly"), report()),
		call("verifier", 0, write("run.sh", loosened, "0755"), report()))
	// abl cannot compare this result, so only the tests decide.
	spec := strings.Replace(oneSpec, "with the text ok", "with a word", 1)
	p.Write(".abl/specs/phase1.md", spec)
	p.Write("scenario.yaml", strings.ReplaceAll(p.Read("scenario.yaml"), "with the text ok", "with a word"))
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {",
		"loop: {no_progress: {unverified: 1}, ", 1))
	r := p.Must(4, "phase", "1", "--json")
	all := events(t, r)
	if got := verdicts(all); got != "fail unverified" {
		t.Errorf("got verdicts %q, want %q", got, "fail unverified")
	}
	want := []string{
		"P1.C1", "step-1 refuted the same source, and its test is still not ok: another text",
		"changed since: run.sh",
	}
	wants(t, "the verdict", of(all, state.Verdict)[1].Text, want...)
	wants(t, "abl report 1", p.Must(0, "report", "1").Stdout, append(want, "step-1-app-1")...)

	prompt := promptOf(p, "p1-build-2.1")
	wants(t, "the Builder's prompt", prompt, "OBSERVED: no, in [left out: the name of a test]")
	lacks(t, "the Builder's prompt", prompt, "stranger")

	if testing.Short() {
		checkNothingLeft(p)
		return
	}
	p.Must(4, "phase", "1", "--again") // does not help
	p.Write(".abl/specs/phase1.md", strings.Replace(spec, "A service that answers.",
		"A service that answers, if only with no.", 1))
	script(p, builds(write("server.mjs", wrong)), verifies(write("run.sh", loosened, "0755")))
	p.Must(0, "phase", "1")
	checkNothingLeft(p)
}

// A refuting test that passes without an app was wrong. abl reports it.
func TestWrongRefutingTestIsReported(t *testing.T) {
	lab.Long(t)
	upside := strings.NewReplacer("= ok ]", "!= ok ]").Replace(honest)
	p := newProject(t, evidence, builds(write("server.mjs", server)),
		call("verifier", 1, write("run.sh", upside, "0755"), refute("another text"),
			report()), verifies(write("run.sh", honest, "0755")))
	r := p.Must(0, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "fail pass" {
		t.Errorf("got verdicts %q, want %q", got, "fail pass")
	}
	wants(t, "the notes", notesOf(t, r.Stdout),
		"the test of P1.C1 with which step-1 refuted the same source was wrong: its test is ok without the app")
	checkNothingLeft(p)
}
