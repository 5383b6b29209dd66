package phase

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// looking is an abl that shows a project during a phase.
type looking struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func look(p *lab.Project, args ...string) *looking {
	p.Helper()
	l := &looking{cmd: p.Cmd(args...)}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	if err := l.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = l.cmd.Process.Kill() })
	return l
}

// end waits until it ends, and returns its output.
func (l *looking) end(p *lab.Project) string {
	p.Helper()
	if err := l.cmd.Wait(); err != nil {
		p.Fatalf("abl %v: got error %v, want none: %s", l.cmd.Args[1:], err, l.out.String())
	}
	return l.out.String()
}

// Other commands follow two iterations from the first call on, until the phase passes.
func TestOtherCommandsFollowAPhase(t *testing.T) {
	say := func(words string) agent.Step { return agent.Step{Say: &words} }
	p := newProject(t, nodeApp,
		builds(say("I begin.\nIt is small."), write("server.mjs", server), run("seq 20")),
		call("verifier", 1, write("run.sh", suite, "0755"), refute("no answer"), report()),
		call("verifier", 2, write("run.sh", suite, "0755"), run("rm failed_specs.md"), say("All is well."), report()))
	var logs, builder, status *looking
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallStart && logs == nil {
			logs, builder, status = look(p, "logs", "-f"), look(p, "logs", "builder", "-f"), look(p, "status", "--watch",
				"--json")
		}
	}, "phase", "1")
	if r.Code != 0 {
		t.Fatalf("got exit %d, want 0: %s%s", r.Code, r.Stdout, r.Stderr)
	}

	all := logs.end(p)
	at := -1
	for _, want := range []string{
		"── builder, phase 1, iteration 1: scripted (scripted), ", "builder │ I begin.\nbuilder │ It is small.\n", "builder │ > write server.mjs\n",
		"builder │ > run seq 20\nbuilder │     1\n", "builder │     … 14 more lines\n", "── done after ",
		"── verifier, phase 1, iteration 1: ", "── done after ", "── builder, phase 1, iteration 2: ", "── done after ",
		"── verifier, phase 1, iteration 2: ", "verifier │ All is well.\n", "── done after ",
	} {
		next := strings.Index(all[at+1:], want)
		if next < 0 {
			t.Fatalf("abl logs -f: got no %q after position %d, want one:\n%s", want, at, all)
		}
		at += 1 + next
	}
	of := builder.end(p)
	if strings.Count(of, "── builder, phase 1, iteration") != 2 || strings.Contains(of, "verifier") {
		t.Errorf("abl logs builder -f: got\n%s\nwant two iterations of the Builder only", of)
	}
	checkStatusWatch(t, status.end(p))
	screen := onTerminal(p, 0, "status", "--watch")
	wants(t, "abl status --watch on a terminal", screen, "\x1b[HPHASE ", "1      \x1b[32mpassed\x1b[0m  ")
	checkNothingLeft(p)
}

// checkStatusWatch checks the output of `abl status --watch --json` for a phase that passed.
func checkStatusWatch(t *testing.T, shown string) {
	t.Helper()
	var roles []string
	var last struct {
		Phases []struct {
			Status string
			Now    *struct{ Role, Call string }
			Tokens *struct{ Missing int }
		}
	}
	for line := range strings.Lines(shown) {
		last.Phases = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil || len(last.Phases) != 1 {
			t.Fatalf("line of abl status: got %d phases, error %v, want 1 phase: %s", len(last.Phases), err, line)
		}
		if now := last.Phases[0].Now; now != nil && now.Role != "" {
			roles = append(roles, now.Role+" "+now.Call)
		}
	}
	if len(roles) == 0 || roles[0] != "builder p1-build-1.1" {
		t.Errorf("running roles: got %q, want builder p1-build-1.1 first in\n%s", roles, shown)
	}
	if end := last.Phases[0]; end.Status != "passed" || end.Now != nil || end.Tokens == nil || end.Tokens.Missing != 4 {
		t.Errorf("last status: got %+v, want passed with 4 missing counts in\n%s", end, shown)
	}
}
