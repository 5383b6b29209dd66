package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Prune deletes the images of earlier versions that no project used in the last 30 days.
func TestPrune(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	state, project, gone := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	var used []string
	m.Used = func(refs []string) { used = append(used, refs...) }
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ensure := func(w Want) string {
		t.Helper()
		used = nil
		ref, err := m.Ensure(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	note := func(root string, at time.Time) {
		t.Helper()
		if err := NoteUse(state, root, used, at); err != nil {
			t.Fatal(err)
		}
	}
	kept := ensure(Want{Agent: "codex", Version: "0.180.0"})
	if len(used) != 4 || used[3] != kept {
		t.Errorf("used images: got %v, want four with %s as the last one", used, kept)
	}
	note(project, now)
	lost := []string{ensure(Want{Agent: "codex", Version: "0.179.0"})}
	note(project, now.Add(-31*24*time.Hour))
	lost = append(lost, ensure(Want{Agent: Tools, NPM: "a@1.0.0"}))
	note(gone, now)
	current := ensure(Want{Agent: "codex"})

	inUse, err := InUse(state, now)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := m.Prune(t.Context(), inUse)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range lost {
		if e.images[ref] != nil || !strings.Contains(strings.Join(removed, " "), ref) {
			t.Errorf("image %s: got labels %v on the engine, removed %v, want it removed", ref, e.images[ref], removed)
		}
	}
	for _, ref := range []string{kept, current} {
		if e.images[ref] == nil {
			t.Errorf("image %s: got it removed, want it on the engine", ref)
		}
	}
	if again, err := m.Prune(t.Context(), inUse); err != nil || len(again) > 0 {
		t.Errorf("second prune: got %v removed, error %v, want none", again, err)
	}
	if err := os.WriteFile(filepath.Join(state, useFolder, "x.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := InUse(state, now); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("a damaged record: got %v, want an error with its name", err)
	}
}
