package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/play"
)

// A disk breaks during a phase, after a role or a replay has finished its work. The run fails
// with an error that names the file, and finished work is saved. After the repair the next run
// completes the phase, and no call is repeated or paid for twice.
func TestPhaseOnBrokenDisk(t *testing.T) {
	for _, after := range []string{"role p1-build-1.1", "role p1-verify-1.1", "role p1-build-2.1", "replay"} {
		for how, a := range ailments {
			t.Run(how+" after the "+after, func(t *testing.T) {
				dir := small(t)
				p := play.NewPlantIn(t, dir)
				var once sync.Once
				ill := make(chan struct{})
				p.Worked = func(b sandbox.ContainerConfig) {
					if strings.HasPrefix(b.Labels[sandbox.LabelKind]+" "+b.Labels[sandbox.LabelCall], after) {
						once.Do(func() {
							defer close(ill)
							if err := a.hurt(dir); err != nil {
								t.Error(err)
							}
						})
					}
				}
				_, err := play.Phase{Root: dir, Engine: p.Engine}.Play(t.Context())
				var torn *hostfs.ShortWrite
				if !errors.Is(err, a.errno) && !(errors.As(err, &torn) && a.errno == syscall.ENOSPC) ||
					!strings.Contains(err.Error(), dir) {
					t.Errorf("got error %v, want %v and the file", err, a.errno)
				}
				if _, err := state.Load(filepath.Join(dir, ".abl/state.json")); err != nil {
					t.Errorf("state.json: got error %v, want a readable state", err)
				}
				<-ill // the run may have seen the disk before it was fully broken
				if err := a.repair(dir); err != nil {
					t.Fatal(err)
				}
				r, err := play.Phase{Root: dir, Engine: p.Engine}.Play(t.Context())
				if err != nil || r.Status != state.Passed || r.Iteration != 2 {
					t.Fatalf("after the repair: got status %s in iteration %d, error %v, want %s in iteration 2",
						r.Status, r.Iteration, err, state.Passed)
				}
				if left := p.Engine.Left(); len(left) > 0 {
					t.Errorf("left on the engine: got %v, want nothing", left)
				}
				wantOnce(t, dir)
			})
		}
	}
}

// wantOnce checks that each of the four calls occurs once in the ledger, in the history and in
// the work.
func wantOnce(t *testing.T, dir string) {
	t.Helper()
	rows, err := os.ReadFile(filepath.Join(dir, ".abl/logs/tokens.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"p1-build-1.1", "p1-verify-1.1", "p1-build-2.1", "p1-verify-2.1"} {
		if n := strings.Count(string(rows), ","+call+","); n != 1 {
			t.Errorf("got %d rows of call %s, want 1:\n%s", n, call, rows)
		}
	}
	for name, want := range map[string]string{"src": "builder 1\nbuilder 2\n", ".abl/tests": "verifier 1\nverifier 2\n"} {
		log, err := os.ReadFile(filepath.Join(dir, name, "log.txt"))
		if err != nil || string(log) != want {
			t.Errorf("work in %s: got %q, error %v, want %q", name, log, err, want)
		}
		git := exec.Command("git", "-C", filepath.Join(dir, name), "fsck", "--strict")
		if out, err := git.CombinedOutput(); err != nil {
			t.Errorf("git fsck in %s: got error %v, want none: %s", name, err, out)
		}
	}
}
