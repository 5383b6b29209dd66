package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// Group G: the disk has no room for abl's records. Existing files stay unchanged, the error names
// the file that could not be written, and the next run continues once there is room.
func TestFullDisk(t *testing.T) {
	lab.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a full disk")
	}
	s := newScene(t, usual+nodeApp)
	s.script(builds(), verifies())
	s.play(0)
	logs := filepath.Join(s.Dir, ".abl/logs")
	for round, c := range []struct{ id, size string }{
		{"G20", "size=4k"},
		{"G20-names", "nr_inodes=4"},
		{"G20-later", "size=48k"},
	} {
		s.newRound(round)
		s.script(builds(), verifies())
		state := s.Read(".abl/state.json")
		if err := exec.Command("mount", "-t", "tmpfs", "-o", "nosuid,nodev,mode=777,"+c.size, "tmpfs",
			logs).Run(); err != nil {
			t.Fatal(err)
		}
		r := s.abl("phase", "1", "--json", "--again")
		if err := exec.Command("umount", "-l", logs).Run(); err != nil {
			t.Fatal(err)
		}
		t.Run(c.id, func(t *testing.T) {
			s.checkOutput(r)
			if r.Code <= 2 || !strings.Contains(r.Stderr, "abl: ") {
				t.Errorf("abl phase: got exit code %d, want 3 or more and a message: %s", r.Code, r.Stderr)
			}
			s.state()
			if s.Read(".abl/state.json") == "" || state == "" {
				t.Error("state.json before and after the phase: got no content, want some")
			}
			t.Log(r.Code, r.Stderr)
		})
		if r := s.abl("clean"); r.Code != 0 {
			t.Errorf("abl clean: got exit code %d, want 0: %s", r.Code, r.Stderr)
		}
	}
	s.recovers()
}
