package crash

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"abl/internal/state"
)

//go:embed testdata/gate.sh
var gateProgram string

// gate is a step that makes the agent wait until the test opens the gate. It leaves no file.
var gate = fmt.Sprintf("{run: %q, expect: 0}", gateProgram)

// folder maps a role to its workspace, relative to the project.
var folder = map[string]string{"builder": "src", "verifier": ".abl/tests"}

// until waits for something that another process does. It fails only when that can no longer
// happen.
func (s *scene) until(what string, seen func() bool) {
	s.Helper()
	for range 3000 {
		if seen() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Fatalf("waiting for %s: got nothing in a minute, want it", what)
}

func (s *scene) exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// atGate waits until the role's agent is at its gate.
func (s *scene) atGate(role string) {
	s.Helper()
	s.until("the "+role+" at its gate", func() bool { return s.exists(filepath.Join(s.Dir, folder[role], "at")) })
}

// open opens the role's gate.
func (s *scene) open(role string) { s.Write(filepath.Join(folder[role], "go"), "") }

// atPause waits until abl is paused at a failpoint.
func (s *scene) atPause(point string) {
	s.Helper()
	s.until("abl at "+point, func() bool { return s.exists(filepath.Join(s.points, point+".here")) })
}

// release ends a pause.
func (s *scene) release(point string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.points, point+".go"), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// containers returns the ids of the project's containers of a kind.
func (s *scene) containers(kind string) string {
	s.Helper()
	var state struct{ Project string }
	if err := json.Unmarshal([]byte(s.Read(".abl/state.json")), &state); err != nil {
		s.Fatal(err)
	}
	out, err := exec.Command("docker", "ps", "-q", "--no-trunc", "--filter", "label=abl.project="+state.Project,
		"--filter", "label=abl.kind="+kind).Output()
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// running is a started abl.
type running struct {
	*exec.Cmd
	s        *scene
	out, err bytes.Buffer
}

// start starts a run of the phase.
func (s *scene) start(points string) *running {
	s.Helper()
	r := &running{Cmd: s.command(points, "phase", "1", "--json", "--progress", "json"), s: s}
	r.Stdout, r.Stderr = &r.out, &r.err
	if err := r.Start(); err != nil {
		s.Fatal(err)
	}
	return r
}

// kill kills the run.
func (r *running) kill() {
	r.s.Helper()
	r.signal(syscall.SIGKILL)
	r.end(-1)
}

// signal sends a signal to the run.
func (r *running) signal(sig os.Signal) {
	r.s.Helper()
	if err := r.Process.Signal(sig); err != nil {
		r.s.Fatal(err)
	}
}

// end waits for the run's end and checks its exit code; -1 means killed.
func (r *running) end(code int) []state.Event {
	r.s.Helper()
	r.Wait()
	if got := r.ProcessState.ExitCode(); got != code {
		r.s.Fatalf("got exit code %d, want %d: %s%s", got, code, r.out.String(), r.err.String())
	}
	return r.s.events(r.out.String())
}

func (s *scene) events(text string) (all []state.Event) {
	s.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var e state.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.Fatalf("event %q: got error %v, want valid JSON", lines.Text(), err)
		}
		all = append(all, e)
	}
	return all
}

// calls returns the ids of the calls in the events of a kind.
func calls(events []state.Event, kind state.Kind) string {
	var ids []string
	for _, e := range events {
		if e.Kind == kind {
			ids = append(ids, e.Call)
		}
	}
	return strings.Join(ids, " ")
}
