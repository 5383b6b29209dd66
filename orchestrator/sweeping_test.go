package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// The findings of each sweep are stored with its call and reported once per commit.
func TestFindingsAreKeptAndReported(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	w.finds = state.Found{
		Cleared: []state.Thing{{Path: "a\x1b[2J\nb", What: "a FIFO, removed"}},
		Ignored: state.Ignored{Files: 1, Bytes: 2, Listed: []string{"x.log"}},
	}
	for i := range 12 {
		w.finds.Control = append(w.finds.Control, state.Thing{Path: fmt.Sprint("GEMINI.md", i), What: "steers"})
	}
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes := w.notes()
	for _, want := range []string{
		`builder: found in its workspace and removed: "a\x1b[2J\nb" (a FIFO, removed)`, `verifier: found`, `"GEMINI.md9" (steers), and 2 more in swept.json`,
	} {
		if strings.Count(notes, want) < 1 {
			t.Errorf("notes: got\n%s\nwant %s in them", notes, want)
		}
	}
	if strings.Count(notes, "found in its workspace") != 2 {
		t.Errorf("notes: got\n%s\nwant two workspaces in them", notes)
	}
	for _, key := range []string{"p1-build-1.1", "p1-verify-1.1"} {
		var f state.Found
		data, err := os.ReadFile(filepath.Join(w.project.Call(key), roles.FoundFile))
		if err == nil {
			err = json.Unmarshal(data, &f)
		}
		if err != nil || len(f.Cleared) != 1 || len(f.Control) != 12 || f.Ignored.Files != 1 || f.Ignored.Listed[0] != "x.log" {
			t.Errorf("%s of %s: got %+v, %v, want 1 removed, 12 that steer, x.log ignored",
				roles.FoundFile, key, f, err)
		}
	}
	if len(w.sweeps) > 0 {
		t.Errorf("sweeps without a commit: got %v, want none", w.sweeps)
	}
}

// abl also sweeps after a call without a commit.
func TestSweepWithoutACommit(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": {class: outcome.Interrupted}, "p1-build-1.2": good, "p1-verify-1.1": good})
	if err := w.after(t.Context()); err != nil || strings.Join(w.sweeps, " ") != "src" {
		t.Errorf("sweeps after an interrupted call: got %v, %v, want src and no error", w.sweeps, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w = newWorld(t, map[string]play{})
	w.play["p1-build-1.1"] = play{class: outcome.Done, report: true, during: cancel}
	if err := w.after(ctx); err == nil || strings.Join(w.sweeps, " ") != "src" {
		t.Errorf("sweeps after a run stopped at its call: got %v, %v, want src and an error", w.sweeps, err)
	}
}

// Files in the source after a stopped call are recorded only for the Builder, because the next call
// may start with them.
func TestLeftFilesAreTheBuilders(t *testing.T) {
	for _, c := range []struct {
		name, stopped string // the call that is stopped
		want          bool
	}{
		{"the Builder", "p1-build-1.1", true},
		{"the Verifier", "p1-verify-1.1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
			w.play[c.stopped] = play{class: outcome.Done, report: true, during: cancel}
			if err := os.MkdirAll(w.project.Logs(), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := w.after(ctx); err == nil {
				t.Fatal("stopped run: got no error, want one")
			}
			_, got, err := roles.Read[string](roles.Record{Dir: w.project.Logs()}, leftFile)
			if err != nil || got != c.want {
				t.Errorf("%s: got %t, %v, want %t", leftFile, got, err, c.want)
			}
		})
	}
}
