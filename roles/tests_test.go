package roles

import (
	"os"
	"path/filepath"
	"testing"

	"abl/internal/state"
)

func TestLastStep(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if n, err := LastStep(p, 1); err != nil || n != 0 {
		t.Errorf("nothing there: %d, %v", n, err)
	}
	for _, name := range []string{"p1-build-3.1", "p1-verify-12.2", "p2-build-40.1", "p11-build-50.1", ".empty", "shell-builder", "p1-build-x", "p1-other-90.1"} {
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
