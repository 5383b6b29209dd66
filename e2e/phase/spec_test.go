package phase

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// A person edits the spec while the Builder works: the call ends and is
// committed, no further one begins, and the next run is a new round on the new text.
func TestSpecEditedMeanwhile(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp,
		builds(write("server.mjs", server), must(0, "i=0; until test -e go; do i=$((i+1)); test $i -lt 600 || exit 1; sleep 0.05; done")),
		verifies(write("run.sh", strings.Replace(suite, "1..1\n", "1..2\necho 'ok 2 - P1.C2'\n", 1), "0755")))
	edited := strings.Replace(oneSpec, "GET / →", "GET /again → 200 with the text ok\nGET / →", 1)

	code, all, voice := whileCalled(p, func() {
		p.Write(".abl/specs/phase1.md", edited)
		p.Write("src/go", "")
	})
	if code != 9 || len(of(all, state.CallEnd)) != 1 || len(of(all, state.Commit)) != 1 {
		t.Errorf("exit %d, %d calls ended, %d commits", code, len(of(all, state.CallEnd)), len(of(all, state.Commit)))
	}
	wants(t, "the end", voice, "the spec of phase 1 was changed while phase 1 runs", "hint: run abl phase 1 again, and a new round begins")

	second := events(t, p.Must(0, "phase", "1", "--json"))
	if got := verdicts(second); got != "pass" {
		t.Errorf("verdicts %q", got)
	}
	wants(t, "the prompt of the new round", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"),
		"- P1.C2: GET /again → 200 with the text ok\n- P1.C1: GET / → 200 with the text ok\n")
	wants(t, "the ids", p.Read(".abl/specs/contract-ids.txt"), "P1.C1 = GET / → 200 with the text ok\nP1.C2 = GET /again → 200 with the text ok\n")
	wants(t, "abl spec list", p.Must(0, "spec", "list").Stdout, "P1.C2  10    pass", "P1.C1  11    pass")
	noLeftovers(p)
}

// whileCalled runs phase 1 and does something while its first call runs.
func whileCalled(p *lab.Project, do func()) (code int, all []state.Event, voice string) {
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
			p.Errorf("not an event: %v: %s", err, lines.Text())
		}
		if all = append(all, e); e.Kind == state.CallStart {
			do()
		}
	}
	_ = cmd.Wait() // its exit code says it
	return cmd.ProcessState.ExitCode(), all, said.String()
}
