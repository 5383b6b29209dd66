package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/sandbox"
)

func TestConform(t *testing.T) {
	Conform(t, func(t *testing.T) Subject {
		e := &Engine{Images: []string{"here"}}
		e.Scripts = map[string]Script{"": func(b sandbox.ContainerConfig) sandbox.Exit { return act(t, e, b) }}
		return Subject{
			Engine:  e,
			Image:   "here",
			Missing: "missing",
			Project: "p",
			User:    "1000:1000",
			Pool:    "10.213.0.0/16",
			Exit:    func(code string) []string { return []string{"exit", code} },
			Print:   func(text string) []string { return []string{"print", text} },
			Block:   []string{"block"},
		}
	})
}

func act(t *testing.T, e *Engine, b sandbox.ContainerConfig) sandbox.Exit {
	switch b.Argv[0] {
	case "print":
		e.Print(b.Name, b.Argv[1])
	case "block":
		<-t.Context().Done()
	case "exit":
		code, err := strconv.Atoi(b.Argv[1])
		if err != nil {
			return sandbox.Exit{Code: 127}
		}
		return sandbox.Exit{Code: code}
	}
	return sandbox.Exit{}
}

func role(name string, mounts ...sandbox.Mount) sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name:   name,
		Image:  "i",
		User:   "1:1",
		Argv:   []string{"x"},
		Mounts: mounts,
		Labels: map[string]string{sandbox.LabelProject: "p", sandbox.LabelKind: "role", sandbox.LabelRole: "builder"},
	}
}

func TestScriptWritesOnTheHost(t *testing.T) {
	dir := t.TempDir()
	e := &Engine{Sync: true, Scripts: map[string]Script{"builder": func(b sandbox.ContainerConfig) sandbox.Exit {
		e := os.WriteFile(Host(b, "/workspace/src/a"), []byte("made"), 0o644)
		return sandbox.Exit{Code: map[bool]int{true: 3, false: 1}[e == nil]}
	}}}
	container := role("b-1", sandbox.Mount{What: sandbox.Workspace, Source: dir, Target: "/workspace/src"})
	if _, err := e.Create(t.Context(), container); err != nil {
		t.Fatal(err)
	}
	must(t, e.Start(t.Context(), "b-1"))
	if exit, err := e.Wait(t.Context(), "b-1"); err != nil || exit.Code != 3 {
		t.Errorf("exit of the script: got %+v, error %v, want code 3", exit, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "made" {
		t.Errorf("file of the script: got %q, error %v, want %q", got, err, "made")
	}
	want := "Create b-1\nStart b-1\nWait b-1\n"
	if diff := cmp.Diff(want, e.Journal()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestFailFailsTheNthCall(t *testing.T) {
	lost := errors.New("lost")
	e := &Engine{}
	e.Fail("Create", 1, lost)
	e.FailAfter("Create", 2, lost)
	for i, left := range []int{0, 1} {
		_, err := e.Create(t.Context(), role("a"))
		wantErr(t, err, lost)
		if got := len(e.Left()); got != left {
			t.Errorf("containers after failing call %d: got %d, want %d", i+1, got, left)
		}
	}
	_, err := e.Create(t.Context(), role("a"))
	wantErr(t, err, sandbox.ErrExists)
}

func TestHostMapsPathsThroughMounts(t *testing.T) {
	container := role("a",
		sandbox.Mount{What: sandbox.Workspace, Source: "/p/src", Target: "/workspace/src"},
		sandbox.Mount{What: sandbox.GitDir, Source: "/p/git", Target: "/workspace/src/.git"},
		sandbox.Mount{What: sandbox.Tree, Source: "tree", Target: "/app"})
	for inside, want := range map[string]string{
		"/workspace/src":           "/p/src",
		"/workspace/src/a/b":       "/p/src/a/b",
		"/workspace/src/.git/HEAD": "/p/git/HEAD",
		"/workspace/srcs":          "",
		"/app/a":                   "",
		"/etc":                     "",
	} {
		t.Run(inside, func(t *testing.T) {
			if got := Host(container, inside); got != want {
				t.Errorf("Host(%q): got %q, want %q", inside, got, want)
			}
		})
	}
}
