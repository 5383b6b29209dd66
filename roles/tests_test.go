package roles

import (
	"os"
	"path/filepath"
	"testing"

	"abl/internal/state"
)

func TestTakeFailedSpecs(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	file := filepath.Join(p.Tests, "f.md")
	take := func(key string) string {
		t.Helper()
		must(t, os.MkdirAll(p.Call(key), 0o755))
		data, err := TakeFailedSpecs(p, key, "f.md", 10, nil)
		must(t, err)
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
		return string(data)
	}
	write(t, file, "before")
	if got := take("k1"); got != "before" {
		t.Errorf("taken: %q", got)
	}
	if got := take("k1"); got != "before" { // by an abl that was killed right afterwards
		t.Errorf("taken twice: %q", got)
	}
	if got := take("k2"); got != "" {
		t.Errorf("of another call: %q", got)
	}
	write(t, file, "far too long to be read")
	if got := take("k3"); got != "" {
		t.Errorf("too long: %q", got)
	}
	outside := filepath.Join(p.Root, "outside")
	write(t, outside, "kept")
	must(t, os.Symlink(outside, file))
	if got := take("k4"); got != "" {
		t.Errorf("through a link: %q", got)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "kept" {
		t.Errorf("outside: %q, %v", data, err)
	}
	write(t, filepath.Join(file, "in a folder"), "x")
	if got := take("k5"); got != "" {
		t.Errorf("a folder: %q", got)
	}
}

func TestWriteTestsReplacesWhateverIsThere(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	outside := filepath.Join(p.Root, "outside")
	write(t, outside, "kept")
	must(t, os.MkdirAll(p.Tests, 0o755))
	must(t, os.Symlink(outside, filepath.Join(p.Tests, "f.md")))
	must(t, WriteTests(p, "f.md", []byte("new")))
	must(t, WriteTests(p, "f.md", []byte("newer")))
	for path, want := range map[string]string{outside: "kept", filepath.Join(p.Tests, "f.md"): "newer"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

func TestLastStep(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if n, err := LastStep(p, 1); err != nil || n != 0 {
		t.Errorf("nothing there: %d, %v", n, err)
	}
	for _, name := range []string{"p1-build-3.1", "p1-verify-12.2", "p2-build-40.1", "p11-build-50.1", ".empty", "shell-builder", "p1-build-x", "p1-mend-90.1"} {
		must(t, os.MkdirAll(p.Call(name), 0o755))
	}
	if n, err := LastStep(p, 1); err != nil || n != 12 {
		t.Errorf("got %d, %v, want 12", n, err)
	}
}

func TestTornRecordIsNoOutcome(t *testing.T) {
	rec := Record{t.TempDir()}
	write(t, filepath.Join(rec.Dir, "outcome.json"), `{"class":"done"`)
	if _, ok, err := rec.Outcome(); ok || err == nil {
		t.Errorf("a torn record: %t, %v", ok, err)
	}
}
