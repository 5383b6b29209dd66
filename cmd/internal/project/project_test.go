package project

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"abl/internal/state"
	"abl/roles/environment"
)

// A moved project keeps its id on the engine. A copy gets another one, and its runs do not touch the
// original's containers.
func TestCopyIsAnotherProject(t *testing.T) {
	top, err := state.Real(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) *Project {
		p := state.NewProject(filepath.Join(top, name), "src", ".abl/tests")
		if err := os.MkdirAll(filepath.Dir(p.State()), 0o755); err != nil {
			t.Fatal(err)
		}
		return &Project{Folder: Folder{Paths: p}}
	}
	load := func(name string) *state.File {
		f, err := at(name).State()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	original := state.New(at("original").Paths.Root)
	for _, name := range []string{"original", "copy", "moved"} {
		f := *original
		if name == "moved" {
			f.Root = filepath.Join(top, "gone")
		}
		if err := state.Save(at(name).Paths.State(), &f); err != nil {
			t.Fatal(err)
		}
	}
	if got := load("original"); got.Project != original.Project {
		t.Errorf("id of the original: got %s, want %s", got.Project, original.Project)
	}
	if got := load("moved"); got.Project != original.Project || got.Root != at("moved").Paths.Root {
		t.Errorf("moved project: got %s in %q, want %s in %q",
			got.Project, got.Root, original.Project, at("moved").Paths.Root)
	}
	copied := load("copy")
	if copied.Project == original.Project || copied.Root != at("copy").Paths.Root {
		t.Errorf("copy: got %s in %q, want an id other than %s in %q",
			copied.Project, copied.Root, original.Project, at("copy").Paths.Root)
	}
	// A saved id stays the same.
	if err := state.Save(at("copy").Paths.State(), copied); err != nil {
		t.Fatal(err)
	}
	if got := load("copy"); got.Project != copied.Project {
		t.Errorf("id of the copy: got %s, want %s", got.Project, copied.Project)
	}
}

// A Dockerfile may be anywhere in the project except where an agent writes, also by a link.
func TestDockerfileOfAWorkspace(t *testing.T) {
	top, err := state.Real(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &Project{Folder: Folder{Paths: state.NewProject(top, "src", ".abl/tests")}}
	for _, name := range []string{"src/Dockerfile", ".abl/tests/Dockerfile", "box/Dockerfile", "srcs/Dockerfile", "other/Dockerfile"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(top, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("FROM x\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := errors.Join(os.Symlink("src", filepath.Join(top, "link")), os.Symlink("../.abl/tests/Dockerfile", filepath.Join(top, "other/Linked"))); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"": true, "box/Dockerfile": true, "srcs/Dockerfile": true, "none/Dockerfile": true,
		"src/Dockerfile": false, "link/Dockerfile": false, "other/Linked": false, ".abl/tests/Dockerfile": false,
	} {
		if file, err := s.dockerfile(name); (err == nil) != ok || ok && file != environment.Path(s.Paths.Root, name) {
			t.Errorf("dockerfile(%q): got %q, error %v, want ok %t", name, file, err, ok)
		}
	}
}
