package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// Group G: no room for abl's own records. What was there stays as it was, the
// error names what could not be written, and with room the next run goes on.
func TestNoRoom(t *testing.T) {
	lab.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("making a disk that is full takes root")
	}
	s := newScene(t, usual+nodeApp)
	s.script(builds(), verifies())
	s.play(0)
	logs := filepath.Join(s.Dir, ".abl/logs")
	for round, c := range []struct{ id, size string }{{"G20", "size=4k"}, {"G20-names", "nr_inodes=4"}, {"G20-later", "size=48k"}} {
		s.newRound(round)
		s.script(builds(), verifies())
		state := s.Read(".abl/state.json")
		if err := exec.Command("mount", "-t", "tmpfs", "-o", "nosuid,nodev,mode=777,"+c.size, "tmpfs", logs).Run(); err != nil {
			t.Fatal(err)
		}
		r := s.abl("phase", "1", "--json", "--again")
		if err := exec.Command("umount", "-l", logs).Run(); err != nil {
			t.Fatal(err)
		}
		t.Run(c.id, func(t *testing.T) {
			s.saysNothingOdd(r)
			if r.Code <= 2 || !strings.Contains(r.Stderr, "abl: ") {
				t.Errorf("abl ended with %d: %s", r.Code, r.Stderr)
			}
			s.state()
			if s.Read(".abl/state.json") == "" || state == "" {
				t.Error("state.json is gone")
			}
			t.Log(r.Code, r.Stderr)
		})
		if r := s.abl("clean"); r.Code != 0 {
			t.Errorf("abl clean: %d: %s", r.Code, r.Stderr)
		}
	}
	s.recovers()
}
