package roles

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/rolestest"

	"golang.org/x/sys/unix"
)

// shown returns a project with the mounts of a call.
func shown(t *testing.T, role Role) (state.Project, []sandbox.Mount) {
	t.Helper()
	root, err := state.Real(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := state.NewProject(root, "code/src", ".abl/tests")
	rec := Record{Dir: p.Call("p1-build-1.1")}
	for _, dir := range []string{p.Src + "/.git", p.Tests + "/.git", p.Specs(), rec.In(), p.Empty()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rolestest.Write(t, rec.Stdout(), "")
	rolestest.Write(t, rec.Stderr(), "")
	return p, Mounts(role, p, rec)
}

// Each source is replaced by something else, which abl shows to no role.
func TestSources(t *testing.T) {
	outside := t.TempDir()
	// become replaces a path with a link to target.
	become := func(target string, steps ...string) func(*testing.T, state.Project) {
		return func(t *testing.T, p state.Project) {
			path := filepath.Join(append([]string{p.Root}, steps...)...)
			if err := errors.Join(os.RemoveAll(path), os.Symlink(target, path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := func(path string) func(*testing.T, state.Project) {
		return func(t *testing.T, p state.Project) {
			if err := os.RemoveAll(filepath.Join(p.Root, path)); err != nil {
				t.Fatal(err)
			}
			rolestest.Write(t, filepath.Join(p.Root, path), "gitdir: ../.git")
		}
	}
	const call = ".abl/logs/calls/p1-build-1.1/"
	for name, c := range map[string]struct {
		plant func(*testing.T, state.Project)
		says  string
	}{
		"a linked workspace":         {become(outside, "code", "src"), `"code/src" is a link`},
		"a link on the way":          {become(outside, "code"), `"code" is a link`},
		"a linked .git":              {become("/etc", "code/src/.git"), `"code/src/.git" is a link`},
		"a .git file":                {file("code/src/.git"), "not a directory"},
		"linked specs":               {become(outside, ".abl/specs"), `".abl/specs" is a link`},
		"a linked other workspace":   {become("../code/src", ".abl/tests"), `".abl/tests" is a link`},
		"a linked record":            {become(outside, call+"in"), `is a link`},
		"a linked output":            {become("/etc/passwd", call+"stdout"), `is a link`},
		"an output that is a FIFO":   {func(t *testing.T, p state.Project) { fifo(t, p.Root+"/"+call+"stderr") }, "not a plain file"},
		"an output that is a folder": {become(".", call+"stdout"), "is a link"},
		"no specs":                   {func(t *testing.T, p state.Project) { os.RemoveAll(p.Specs()) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			p, mounts := shown(t, Builder)
			if err := CheckSources(p, mounts); err != nil {
				t.Fatalf("error of valid sources: got %v, want none", err)
			}
			c.plant(t, p)
			if err := CheckSources(p, mounts); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error: got %v, want %v with %q", err, ErrSource, c.says)
			}
		})
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// A source must not be the project itself or outside of it.
func TestSourcesElsewhere(t *testing.T) {
	p, _ := shown(t, Builder)
	for _, path := range []string{"/", "/etc", p.Root, filepath.Dir(p.Root), p.Root + "/.abl", p.Root + "2"} {
		m := []sandbox.Mount{{What: sandbox.Workspace, Source: path, Target: helper.Src}}
		if err := CheckSources(p, m); !errors.Is(err, ErrSource) {
			t.Errorf("error of %s: got %v, want %v", path, err, ErrSource)
		}
	}
	t.Setenv("HOME", p.Src)
	if err := CheckSources(p, []sandbox.Mount{{What: sandbox.Workspace, Source: p.Src}}); !errors.Is(err, ErrSource) {
		t.Errorf("error of the home directory: got %v, want %v", err, ErrSource)
	}
}

func TestSourcesOverlap(t *testing.T) {
	p, mounts := shown(t, Verifier)
	for _, c := range []struct{ src, tests string }{{"x", "x"}, {"x", "x/y"}, {"x/y", "x"}, {".abl/specs/x", "x"}, {".abl/logs", "x"}, {"x", ".abl/logs/calls/p"}} {
		q := state.NewProject(p.Root, c.src, c.tests)
		for _, dir := range []string{q.Src, q.Tests} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := CheckSources(q, nil); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "it is, or is inside of") {
			t.Errorf("error of %+v: got %v, want %v about a directory inside of another", c, err, ErrSource)
		}
	}
	if err := CheckSources(p, mounts); err != nil {
		t.Error(err)
	}
}

// A directory that root has bind-mounted over a source is not the source.
func TestSourcesBound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can bind a directory over another")
		return
	}
	for name, c := range map[string]struct{ from, over string }{
		"the project over src": {".", "code/src"}, "src over tests": {"code/src", ".abl/tests"}, "root over tests": {"/", ".abl/tests"},
		"above src over tests": {"code", ".abl/tests"},
	} {
		t.Run(name, func(t *testing.T) {
			p, mounts := shown(t, Verifier)
			from, over := filepath.Join(p.Root, c.from), filepath.Join(p.Root, c.over)
			if filepath.IsAbs(c.from) {
				from = c.from
			}
			if err := os.MkdirAll(over, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command("mount", "--bind", from, over).Run(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = exec.Command("umount", "-l", over).Run() })
			if err := CheckSources(p, mounts); !errors.Is(err, ErrSource) {
				t.Errorf("error: got %v, want %v", err, ErrSource)
			}
		})
	}
}
