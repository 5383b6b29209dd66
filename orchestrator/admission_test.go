package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"abl/internal/spec"
	"abl/internal/state"
)

// specs returns phases 1 to n, with tails at the end of their texts.
func specs(t *testing.T, tails ...string) spec.Set {
	t.Helper()
	dir := t.TempDir()
	for i, tail := range tails {
		text := fmt.Sprintf("# Phase %d: T\n\n- do %d → done\n%s", i+1, i+1, tail)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", i+1)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, problems := spec.LoadDir(dir)
	for _, p := range problems {
		if p.Fatal {
			t.Fatal(p)
		}
	}
	return set
}

// phase returns a phase that used this spec.
func phase(set spec.Set, n int, status state.Status) *state.Phase {
	s, _ := set.Phase(n)
	return &state.Phase{Status: status, HeldTo: state.HeldTo{SpecSHA: s.SHA256, SpecSize: len(s.Text)}, Iteration: 2}
}

func TestAdmit(t *testing.T) {
	old := specs(t, "", "")
	edited := specs(t, "\nnow other\n", "")
	for _, c := range []struct {
		name   string
		status state.Status
		now    spec.Set
		again  bool
		goes   bool
		open   state.Status
	}{
		{"never-run", "", old, false, true, state.Ready},
		{"ready", state.Ready, old, false, true, state.Ready},
		{"amid-a-call", state.Building, old, false, true, state.Building},
		{"amid-a-call-and-edited", state.Verifying, edited, false, true, state.Verifying},
		{"amid-a-call-and-again", state.Refuted, old, true, true, state.Refuted},
		{"passed", state.Passed, old, false, false, state.Passed},
		{"passed-and-again", state.Passed, old, true, true, state.Stale},
		{"stale", state.Stale, old, false, true, state.Stale},
		{"stale-and-edited", state.Stale, edited, false, true, state.Ready},
		{"passed-and-edited", state.Passed, edited, false, true, state.Ready},
		{"stuck", state.Stuck, old, false, false, state.Stuck},
		{"stuck-and-again", state.Stuck, old, true, true, state.Ready},
		{"stuck-and-edited", state.Stuck, edited, false, true, state.Ready},
		{"unverified", state.Unverified, old, false, false, state.Unverified},
		{"unverified-and-again", state.Unverified, old, true, true, state.Ready},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := state.New(t.TempDir())
			if c.status != "" {
				f.Phases["1"] = phase(old, 1, c.status)
			}
			a, err := Admit(f, c.now, 1, Asked{Again: c.again})
			if err != nil || a.Go != c.goes || a.Open.Status != c.open || a.Why == "" {
				t.Errorf("got %+v, %v, want go %t, open as %s, and why", a, err, c.goes, c.open)
			}
			if c.status != "" && f.Phases["1"].Status != c.status {
				t.Errorf("status after Admit: got %s, want %s", f.Phases["1"].Status, c.status)
			}
		})
	}
}

func TestAdmitInOrder(t *testing.T) {
	set := specs(t, "", "", "")
	f := state.New(t.TempDir())
	f.Phases["1"] = phase(set, 1, state.Passed)
	f.Phases["2"] = phase(set, 2, state.Stuck)
	if _, err := Admit(f, set, 2, Asked{Again: true}); err != nil {
		t.Errorf("Admit(phase 2): got error %v, want none", err)
	}
	var not Refused
	if _, err := Admit(f, specs(t, "- more → done\n", "", ""), 2, Asked{Again: true}); !errors.As(err, &not) || not != drifted(1) {
		t.Errorf("Admit(phase 2) on another text of phase 1: got error %v, want %v", err, drifted(1))
	}
	if _, err := Admit(f, set, 3, Asked{}); !errors.As(err, &not) || not.Do != "run abl phase 2 first" {
		t.Errorf("Admit(phase 3): got error %v, hint %q, want the hint to run abl phase 2 first", err, not.Do)
	}
}

// Text that was added to a spec after its phase passed may change until it passes, too.
func TestAddedTextIsFree(t *testing.T) {
	old, grown, other := specs(t, "", ""), specs(t, "- more → done\n", ""), specs(t, "- something else → done\n", "")
	f := state.New(t.TempDir())
	f.Phases["1"], f.Phases["2"] = phase(grown, 1, state.Stuck), phase(old, 2, state.Passed)
	was := phase(old, 1, state.Passed)
	f.Phases["1"].PassedSHA, f.Phases["1"].PassedSize = was.SpecSHA, was.SpecSize
	for name, now := range map[string]spec.Set{"edited": other, "put-back": old} {
		t.Run(name, func(t *testing.T) {
			if a, err := Admit(f, now, 1, Asked{}); err != nil || a.Open.Status != state.Ready {
				t.Errorf("got %+v, %v, want open as %s", a, err, state.Ready)
			}
		})
	}
}

// A spec may change until it is approved or a later phase has begun. Then text may only be added at
// its end.
func TestFrozenRunMissesNothing(t *testing.T) {
	old := specs(t, "", "")
	grown, cut := specs(t, "- more → done\n", ""), specs(t, "", "")
	edited := func() spec.Set {
		dir := t.TempDir()
		for n, text := range map[int]string{1: "# Phase 1: Other\n\n- do 1 → done\n", 2: "# Phase 2: T\n\n- do 2 → done\n"} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", n)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		set, _ := spec.LoadDir(dir)
		return set
	}()
	for _, c := range []struct {
		name     string
		approved bool
		later    state.Status
		round    int // of the later one
		now      spec.Set
		frozen   bool
	}{
		{"approved-and-its-last-contract-goes-on", true, "", 0, specs(t, "  and more\n", ""), true},
		{"free-and-edited", false, "", 0, edited, false},
		{"approved-the-same", true, "", 0, cut, false},
		{"approved-and-grown", true, "", 0, grown, false},
		{"approved-and-edited", true, "", 0, edited, true},
		{"a-later-one-is-ready-and-edited", false, state.Ready, 0, edited, false},
		{"a-later-one-is-about-to-reopen-and-edited", false, state.Ready, 1, edited, true},
		{"a-later-one-has-begun-and-edited", false, state.Building, 0, edited, true},
		{"a-later-one-has-begun-and-grown", false, state.Passed, 0, grown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := state.New(t.TempDir())
			f.Phases["1"] = phase(old, 1, state.Passed)
			f.Phases["1"].Approved = c.approved
			if c.later != "" {
				f.Phases["2"] = phase(old, 2, c.later)
				f.Phases["2"].Round = c.round
			}
			_, err := Admit(f, c.now, 1, Asked{})
			var frozen Frozen
			if errors.As(err, &frozen) != c.frozen || !c.frozen && err != nil {
				t.Error(err)
			}
		})
	}
}

// Changed settings begin a new round of a phase that ended without a pass, and of no other.
func TestAdmitOtherSettings(t *testing.T) {
	set := specs(t, "", "")
	for _, c := range []struct {
		name, held, now string
		status          state.Status
		goes            bool
	}{
		{"stuck", "a", "b", state.Stuck, true},
		{"unverified", "a", "b", state.Unverified, true},
		{"unchanged", "a", "a", state.Stuck, false},
		{"of-an-older-abl", "", "b", state.Stuck, false},
		{"passed", "a", "b", state.Passed, false},
		{"with-flags", "a", "a+x", state.Stuck, true},
		{"with-the-same-flags", "a+x", "a+x", state.Stuck, false},
		{"with-other-flags", "a+x", "a+y", state.Stuck, true},
		{"without-the-flags", "a+x", "a", state.Stuck, false},
		{"files-and-without-the-flags", "a+x", "b", state.Stuck, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := state.New(t.TempDir())
			f.Phases["1"] = phase(set, 1, c.status)
			f.Phases["1"].Settings = c.held
			if a, err := Admit(f, set, 1, Asked{Settings: c.now}); err != nil || a.Go != c.goes {
				t.Errorf("got %+v, %v, want go %t", a, err, c.goes)
			}
		})
	}
}
