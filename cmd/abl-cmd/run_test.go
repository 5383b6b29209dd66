//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/helper"
)

// call is the files of one abl-run.
type call struct {
	t    *testing.T
	spec helper.RunSpec
}

func newCall(t *testing.T, argv ...string) *call {
	t.Helper()
	dir := t.TempDir()
	return &call{t, helper.RunSpec{
		Argv: argv, Dir: dir,
		Stdout: write(t, filepath.Join(dir, "stdout"), "before\n"),
		Stderr: write(t, filepath.Join(dir, "stderr"), ""),
	}}
}

func (c *call) run() (code int, end helper.RunEnd) {
	c.t.Helper()
	r := finish(c.t, helperCommand(c.t, helper.HelperRun, c.spec))
	return r.code, parseEnd(c.t, r.out)
}

func parseEnd(t *testing.T, line string) (end helper.RunEnd) {
	t.Helper()
	if strings.Count(line, "\n") != 1 {
		t.Fatalf("want one line, got %q", line)
	}
	if err := json.Unmarshal([]byte(line), &end); err != nil {
		t.Fatal(err)
	}
	return end
}

func TestRun(t *testing.T) {
	tests := []struct {
		name, script string
		edit         func(*helper.RunSpec)
		code         int
		end          helper.RunEnd
	}{
		{"ok", "true", nil, 0, helper.RunEnd{}},
		{"code", "exit 7", nil, 7, helper.RunEnd{Exit: 7}},
		{"signal", "kill -9 $$", nil, 137, helper.RunEnd{Exit: 137, Signal: "SIGKILL"}},
		{"in-time", "true", func(s *helper.RunSpec) { s.LimitMS = 60_000 }, 0, helper.RunEnd{}},
		{"limit", "sleep 1000 & exec sleep 1000", func(s *helper.RunSpec) { s.LimitMS = 1 }, 124, helper.RunEnd{Exit: 124, Late: true}},
		{"deadline", "exec sleep 1000", func(s *helper.RunSpec) { s.Deadline = 1 }, 124, helper.RunEnd{Exit: 124, Deadline: true, Signal: "SIGTERM"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCall(t, "sh", "-c", tt.script)
			if tt.edit != nil {
				tt.edit(&c.spec)
			}
			code, end := c.run()
			end.Ports = "" // what else listens on this machine is seen as well
			if code != tt.code || end != tt.end {
				t.Errorf("got %d, %+v; want %d, %+v", code, end, tt.code, tt.end)
			}
		})
	}
}

// A probe that fails or cannot be made keeps the agent from being started; what
// was found is the line before the last word.
func TestRunUnproven(t *testing.T) {
	good := write(t, filepath.Join(t.TempDir(), "probe.json"), `{"user":"4711:4711"}`)
	for file, want := range map[string]string{good: "user inside", good + ".gone": "cannot read the conditions of the probe"} {
		c := newCall(t, "sh", "-c", "echo started")
		c.spec.Probe = file
		r := finish(t, helperCommand(t, helper.HelperRun, c.spec))
		first, last, _ := strings.Cut(r.out, "\n")
		var found helper.Probed
		if err := json.Unmarshal([]byte(first), &found); err != nil {
			t.Fatal(err)
		}
		end := parseEnd(t, last)
		if r.code != 125 || !end.Unproven || end.Exit != 125 || !strings.Contains(end.Error, want) || found.Proof.Err() == nil {
			t.Errorf("%s: got exit %d, %+v, %+v, want 125, unproven: %s", file, r.code, end, found, want)
		}
		if got := read(t, c.spec.Stdout); got != "before\n" {
			t.Errorf("%s: got the output %q, want that the agent did not run", file, got)
		}
	}
}

func TestRunFiles(t *testing.T) {
	c := newCall(t, "sh", "-c", "pwd; cat; echo oops >&2")
	c.spec.Stdin = write(t, filepath.Join(t.TempDir(), "stdin"), "the prompt\n")
	c.run()
	if got, want := read(t, c.spec.Stdout), "before\n"+c.spec.Dir+"\nthe prompt\n"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got, want := read(t, c.spec.Stderr), "oops\n"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
}

func TestRunCannotStart(t *testing.T) {
	tests := []struct {
		name string
		edit func(*helper.RunSpec)
		code int
		want string
	}{
		{"not-found", func(s *helper.RunSpec) { s.Argv[0] = "no-such-program" }, 127, "no-such-program"},
		{"no-such-path", func(s *helper.RunSpec) { s.Argv[0] = "/does/not/exist" }, 127, "/does/not/exist"},
		{"not-executable", func(s *helper.RunSpec) { s.Argv[0] = s.Stdout }, 126, "permission denied"},
		{"nothing", func(s *helper.RunSpec) { s.Argv = nil }, 126, "empty command"},
		{"no-folder", func(s *helper.RunSpec) { s.Dir += "/gone" }, 126, "no such file"},
		{"no-stdin", func(s *helper.RunSpec) { s.Stdin = "/does/not/exist" }, 126, "cannot open a file of the call"},
		{"no-stdout", func(s *helper.RunSpec) { s.Stdout += "x" }, 126, "cannot open a file of the call"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCall(t, "true")
			tt.edit(&c.spec)
			code, end := c.run()
			if code != tt.code || end.Exit != tt.code || !strings.Contains(end.Error, tt.want) {
				t.Errorf("got %d, %+v; want %d, %q", code, end, tt.code, tt.want)
			}
		})
	}
	if r := finish(t, helperCommand(t, helper.HelperRun, nil)); r.code != 126 || !strings.Contains(parseEnd(t, r.out).Error, helper.Run) {
		t.Errorf("without a spec: got %+v, want exit 126 and %q in the error", r, helper.Run)
	}
}

// Processes that an agent leaves running, in any session, cannot write after the call's last line.
func TestRunLeavesNothingBehind(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	c := newCall(t, "sh", "-c", read(t, "testdata/leaves-a-process.sh"), "sh", pid)
	if code, end := c.run(); code != 3 || end.Exit != 3 {
		t.Errorf("got exit %d, %+v, want 3", code, end)
	}
	pid = strings.TrimSpace(read(t, pid))
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the process that the agent left: got %s, want that it ended", stat)
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo") // opens for reading when the script is ready for the signal
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCall(t, "sh", "-c", read(t, "testdata/catches-sigterm.sh"), "sh", path)
	cmd := helperCommand(t, helper.HelperRun, c.spec)
	lines := begin(t, cmd)
	read(t, path)
	cmd.Process.Signal(syscall.SIGTERM)
	lines.Scan()
	if end := parseEnd(t, lines.Text()+"\n"); end.Exit != 5 || !end.Stopped {
		t.Errorf("got %+v, want exit 5 and stopped", end)
	}
	cmd.Wait()
	if got, want := read(t, c.spec.Stdout), "before\ncaught\n"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
}

// The scripted agent under abl-run, as in a container.
func TestRunScriptedAgent(t *testing.T) {
	tests := []struct {
		name, call string
		code       int
		last       string
	}{
		{"ok", `{"role":"builder","phase":1,"iteration":1,"steps":[{"report":"done"}],"usage":[{"model":"m","input":5}]}`, 0,
			`{"type":"result","status":"success","usage":[{"model":"m","input":5,"cached":null,"candidates":null,"thoughts":null,"tool":null,"total":null}],"requests":1}`},
		{"crash", `{"role":"builder","steps":[{"say":"bye"}],"end":"crash"}`, 137, `{"type":"message","text":"bye"}`},
		{"not-a-call", `{"role":`, 2, "before"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "scenario.json"), tt.call)
			c := newCall(t, filepath.Join(bin, helper.HelperAgent), file)
			code, end := c.run()
			lines := strings.Split(strings.TrimSpace(read(t, c.spec.Stdout)), "\n")
			if code != tt.code || end.Exit != tt.code || lines[len(lines)-1] != tt.last {
				t.Errorf("got %d, %+v, last line %q; want %d, %q", code, end, lines[len(lines)-1], tt.code, tt.last)
			}
		})
	}
}
