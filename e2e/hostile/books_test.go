package hostile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// Group G: a second abl on the same project while the first works.
func TestTwoAtOnce(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	s.script(builds(run("touch begun; i=0; while [ ! -e go ] && [ $i -lt 2400 ]; do sleep 0.1; i=$((i + 1)); done")), verifies())
	var out bytes.Buffer
	first := s.command("phase", "1", "--json")
	first.Stdout, first.Stderr = &out, &out
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Process.Kill() }) // should the test end before
	s.until("src/begun")
	t.Run("G15", func(t *testing.T) {
		for _, args := range [][]string{{"phase", "1", "--json"}, {"run"}, {"clean"}} {
			if r := s.abl(args...); r.Code != 11 || !strings.Contains(r.Stderr, ".abl/lock") {
				t.Errorf("abl %v beside another ends with %d: %s", args, r.Code, r.Stderr)
			}
		}
	})
	s.Write("src/go", "")
	giveAway(s)
	if err := first.Wait(); err != nil {
		t.Errorf("the first was disturbed: %v: %s", err, lastLines(out.String(), 5))
	}
	s.recovers()
}

// until waits for a file of the project that a call makes.
func (s *scene) until(name string) {
	s.Helper()
	for range 1200 {
		if s.Exists(name) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Fatalf("%s did not come", name)
}

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
