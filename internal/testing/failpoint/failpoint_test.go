package failpoint

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain also runs as the child process that dies at a failpoint.
func TestMain(m *testing.M) {
	if os.Getenv("ABL_TEST_PLACES") == "" {
		os.Exit(m.Run())
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGTERM, unix.SIGINT)
	for name := range strings.SplitSeq(os.Getenv("ABL_TEST_PLACES"), " ") {
		fmt.Println("at", name)
		fmt.Println("past", Err(name))
	}
	if os.Getenv("ABL_TEST_WAIT") != "" {
		fmt.Println(<-caught)
	}
}

func child(t *testing.T, points, places string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "ABL_FAILPOINTS="+points, "ABL_TEST_PLACES="+places)...)
	return cmd
}

func TestActions(t *testing.T) {
	tests := []struct {
		points, places, out string
		code                int // -1: killed
	}{
		{"", "a", "at a|past <nil>", 0},
		{"b=kill", "a", "at a|past <nil>", 0},
		{"a=kill", "a", "at a", -1},
		{"a=exit(3)", "a", "at a", 3},
		{"a=2*off->exit(3)", "a a a", "at a|past <nil>|at a|past <nil>|at a", 3},
		{"a=1*error(no)->1*off->error(full disk)", "a a a a",
			"at a|past failpoint a: no|at a|past <nil>|at a|past failpoint a: full disk|at a|past failpoint a: full disk", 0},
		{"a=1*error(x)", "a a", "at a|past failpoint a: x|at a|past <nil>", 0},
		{"a=sleep(1);b=exit(0)", "a b", "at a|past <nil>|at b", 0},
		{"a=explode", "a", `at a|abl: cannot read ABL_FAILPOINTS: a: unknown action "explode"`, 2},
	}
	for _, tt := range tests {
		t.Run(tt.points+" at "+tt.places, func(t *testing.T) {
			out, err := child(t, tt.points, tt.places).CombinedOutput()
			var exit *exec.ExitError
			code := 0
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			if got := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "|"); got != tt.out || code != tt.code {
				t.Errorf("%s at %s: got %s, code %d, want %s, code %d", tt.points, tt.places, got, code, tt.out, tt.code)
			}
			if tt.code == -1 && exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Errorf("%s: got error %v, want SIGKILL", tt.points, err)
			}
		})
	}
}

func TestSignalsReachTheProcess(t *testing.T) {
	for what, sig := range map[string]string{"term": "terminated", "int": "interrupt"} {
		out, err := child(t, "a="+what, "a", "ABL_TEST_WAIT=1").CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), sig+"\n") {
			t.Errorf("%s: got output %q, error %v, want %q at its end and no error", what, out, err, sig)
		}
	}
}

func TestPauseWaitsForTheFile(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "a=pause", "a", "ABL_FAILPOINT_DIR="+dir)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "at a\n" || err != nil {
		t.Fatalf("first line: got %q, error %v, want %q", line, err, "at a\n")
	}
	for here := ""; here == ""; {
		if _, err := os.Stat(filepath.Join(dir, "a.here")); err == nil {
			here = "reached"
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); line != "past <nil>\n" || err != nil {
		t.Errorf("second line: got %q, error %v, want %q", line, err, "past <nil>\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestNoteCountsVisits(t *testing.T) {
	dir := t.TempDir()
	if out, err := child(t, "a=note;b=1*note", "a b a b", "ABL_FAILPOINT_DIR="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "visits")); err != nil || string(got) != "a\nb\na\n" {
		t.Errorf("visits: got %q, error %v, want %q", got, err, "a\nb\na\n")
	}
}

func TestHerePanicsWhereItCannotFail(t *testing.T) {
	old := plan
	defer func() {
		plan = old
		if recover() == nil {
			t.Error("Here with error(TEXT): got no panic, want one")
		}
	}()
	p, err := parse("a=error(x)")
	if err != nil {
		t.Fatal(err)
	}
	plan = func() *points { return p }
	Here("a")
}

func TestParseErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"a":              `a: unknown action ""`,
		"=kill":          `want PLACE=ACTION, got "=kill"`,
		"a=kill;":        `want PLACE=ACTION, got ""`,
		"A=kill":         `want PLACE=ACTION, got "A=kill"`,
		"a=kill;a=off":   "duplicate place a",
		"a=exit":         `a: exit needs a number, got ""`,
		"a=exit(-1)":     `a: exit needs a number, got "-1"`,
		"a=0*kill":       `a: unknown action "0*kill"`,
		"a=kill()":       "a: kill takes no argument",
		"a=off->":        `a: unknown action ""`,
		"a=error(x)x":    `a: unknown action "error(x)x"`,
		"a=sleep(1)->go": `a: unknown action "go"`,
	} {
		t.Run(spec, func(t *testing.T) {
			if _, err := parse(spec); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", spec, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a=kill", "a=2*off->exit(3);b=error(x y)", "a=->"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		p, err := parse(spec)
		if err != nil || p == nil {
			return
		}
		for name, actions := range p.left {
			if name == "" || len(actions) == 0 {
				t.Fatalf("parse(%q): got %v, want a name and actions for each place", spec, p.left)
			}
		}
	})
}

func BenchmarkOff(b *testing.B) {
	for b.Loop() {
		Here("a")
	}
}
