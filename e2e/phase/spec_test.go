package phase

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The user edits the spec while the Builder works: the call ends and is committed, no other call
// starts, and the next run is a new round on the new text. Then the user changes the source
// during the Verifier's call: a verdict is about the commit, so abl gives no verdict until the
// user has decided what to test.
func TestEditsWhileCallsRun(t *testing.T) {
	lab.Long(t)
	twice := strings.Replace(suite, "1..1\n", "1..2\necho 'ok 2 - P1.C2'\n", 1)
	tests := verifies(write("run.sh", twice, "0755"), runsScript(t, "wait-for-go.sh"), run("rm go"))
	tests.Attempt = 1
	waitsFirst := runsScript(t, "wait-once-for-go.sh")
	p := newProject(t, "", builds(waitsFirst, write("server.mjs", server)), tests,
		verifies(write("run.sh", twice, "0755")))
	p.Write(".abl/config.yaml", rounds("1"))

	code, all, stderr := whileCalled(p, func() {
		p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "GET / →", "GET /again → 200 with the text ok\nGET / →", 1))
		p.Write("src/go", "")
	})
	if code != 9 || len(of(all, state.CallEnd)) != 1 || len(of(all, state.Commit)) != 1 {
		t.Errorf("got exit %d, %d ended calls and %d commits, want 9, 1 and 1",
			code, len(of(all, state.CallEnd)), len(of(all, state.Commit)))
	}
	wants(t, "the end", stderr, "the spec of phase 1 was changed while phase 1 runs",
		"hint: run abl phase 1 again, and a new round begins")

	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.AppReady {
			p.Write("src/server.mjs", server+"// by the user\n")
			p.Write(".abl/tests/go", "")
		}
	}, "phase", "1")
	second := events(t, r)
	if got, want := verdicts(second), "unverified"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	for _, e := range of(second, state.Verdict) {
		wants(t, "the reason", e.Text, "the source changed while it was tested", "server.mjs")
	}
	if r.Code != 9 {
		t.Errorf("got exit %d, want 9: %s", r.Code, r.Stderr)
	}
	wants(t, "the end", r.Stderr, "server.mjs")
	wants(t, "the user's changes", p.Read("src/server.mjs"), "by the user")
	wants(t, "the prompt of the new round", promptOf(p, "p1-build-2.1"),
		"- P1.C2: GET /again → 200 with the text ok\n- P1.C1: GET / → 200 with the text ok\n")

	p.Git("src", "checkout", "-q", "server.mjs")
	if got, want := verdicts(events(t, p.Must(0, "phase", "1", "--json"))), "pass"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	wants(t, "the ids", p.Read(".abl/specs/contract-ids.txt"),
		"P1.C1 = GET / → 200 with the text ok\nP1.C2 = GET /again → 200 with the text ok\n")
	wants(t, "abl spec list", p.Must(0, "spec", "list").Stdout, "P1.C2  10    pass", "P1.C1  11    pass")
	checkNothingLeft(p)
}

// whileCalled runs phase 1 and calls do while its first call runs.
func whileCalled(p *lab.Project, do func()) (code int, all []state.Event, stderr string) {
	p.Helper()
	cmd := p.Cmd("phase", "1", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e state.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			p.Errorf("line of the output: got error %v, want an event: %s", err, lines.Text())
		}
		if all = append(all, e); e.Kind == state.CallStart {
			do()
		}
	}
	_ = cmd.Wait() // the caller checks the exit code
	return cmd.ProcessState.ExitCode(), all, said.String()
}
