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

// A disk falls ill in the middle of a phase, once a role or a replay has done its
// work: the run ends and names the place, what was finished is kept, and once the disk
// is well the next run goes on and comes to the end, with no call made or paid twice.
func TestPhaseOnSickDisk(t *testing.T) {
	for _, after := range []string{"role p1-build-1.1", "role p1-verify-1.1", "role p1-build-2.1", "replay"} {
		for how, a := range ailments {
			t.Run(how+" after the "+after, func(t *testing.T) {
				dir := small(t)
				p := play.NewPlantIn(t, dir)
				var once sync.Once
				ill := make(chan struct{})
				p.Worked = func(b sandbox.Box) {
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
				if !errors.Is(err, a.errno) && !(errors.As(err, &torn) && a.errno == syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
					t.Errorf("it ended with %v, want %v and the place", err, a.errno)
				}
				if _, err := state.Load(filepath.Join(dir, ".abl/state.json")); err != nil {
					t.Errorf("the state is not whole: %v", err)
				}
				<-ill // the run may have met it before it was at its worst
				if err := a.mend(dir); err != nil {
					t.Fatal(err)
				}
				r, err := play.Phase{Root: dir, Engine: p.Engine}.Play(t.Context())
				if err != nil || r.Status != state.Passed || r.Iteration != 2 {
					t.Fatalf("with a disk that is well: %s in iteration %d, %v", r.Status, r.Iteration, err)
				}
				if left := p.Engine.Left(); len(left) > 0 {
					t.Errorf("left on the engine: %v", left)
				}
				wantOnce(t, dir)
			})
		}
	}
}

// wantOnce wants each of the four calls once in the ledger, in the history and at work.
func wantOnce(t *testing.T, dir string) {
	t.Helper()
	rows, err := os.ReadFile(filepath.Join(dir, ".abl/logs/tokens.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"p1-build-1.1", "p1-verify-1.1", "p1-build-2.1", "p1-verify-2.1"} {
		if n := strings.Count(string(rows), ","+call+","); n != 1 {
			t.Errorf("%d rows of call %s:\n%s", n, call, rows)
		}
	}
	for name, want := range map[string]string{"src": "builder 1\nbuilder 2\n", ".abl/tests": "verifier 1\nverifier 2\n"} {
		log, err := os.ReadFile(filepath.Join(dir, name, "log.txt"))
		if err != nil || string(log) != want {
			t.Errorf("in %s was worked: %q, %v", name, log, err)
		}
		git := exec.Command("git", "-C", filepath.Join(dir, name), "fsck", "--strict")
		if out, err := git.CombinedOutput(); err != nil {
			t.Errorf("the history of %s: %v: %s", name, err, out)
		}
	}
}
