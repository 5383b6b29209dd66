package roles

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// smallDisk is a file system of 64 MiB and 100 files, "" where only root could make one.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root can make a small disk")
		return ""
	}
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=100", "tmpfs", dir).Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

func fullDisk(t *testing.T) string {
	t.Helper()
	dir := smallDisk(t)
	if dir != "" {
		write(t, filepath.Join(dir, "x"), strings.Repeat("x", 62<<20))
	}
	return dir
}

// A disk that becomes full ends the call that runs, whoever fills it: a file
// without a name is in no folder, and takes room all the same.
func TestDiskFillsUp(t *testing.T) {
	disk := smallDisk(t)
	if disk == "" {
		return
	}
	r := newRig(t, nil)
	r.engine.Scripts = map[string]sandboxtest.Script{"role": func(b sandbox.Box) sandbox.Exit {
		prints(b, "in "+helper.Src+"\n") // before the disk is full, at which the call is ended
		f, err := os.Create(filepath.Join(disk, "x"))
		if err != nil || os.Remove(f.Name()) != nil {
			return sandbox.Exit{Code: 9}
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, 62<<20)); err != nil {
			return sandbox.Exit{Code: 9}
		}
		<-r.Context().Done()
		return sandbox.Exit{}
	}}
	r.runner.Quota = DiskQuota{Disks: []string{disk}, Every: 1}
	if o := r.run(); o.Class != outcome.Disk || !strings.Contains(o.Reason, "need at least") {
		t.Errorf("ended %s", show(o))
	}
}

// A disk without room, for bytes or for files, ends what runs on it. Whatever took the room, that
// is a fault of the machine: it breaks no contract, and no build is red for it.
func TestFullDiskIsNoVerdict(t *testing.T) {
	for name, fill := range map[string]func(disk string){
		"MiB left on its disk": func(disk string) { write(t, filepath.Join(disk, "x"), strings.Repeat("x", 62<<20)) },
		"inodes left": func(disk string) {
			for i := range 97 {
				write(t, filepath.Join(disk, strconv.Itoa(i)), "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t)
			if disk == "" {
				return
			}
			fill(disk)
			full := DiskQuota{Bytes: 60 << 20, Disks: []string{disk}, Every: time.Millisecond}
			hangs := func(sandbox.Box) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} }
			t.Run("an app", func(t *testing.T) {
				s := newStage(t, web, "")
				s.app.Disk, s.engine.Scripts["abl-id-app"] = full, hangs
				if up, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, sandbox.ErrKilled) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %+v, %v, want that it was ended since few %s", up, err, name)
				}
			})
			t.Run("an app that wrote too much", func(t *testing.T) {
				s := newStage(t, web, `{"event":"listening"}`+"\n")
				s.app.Disk = full
				s.engine.Used = func(string) int64 { return 61 << 20 }
				const want = "it wrote 61 MiB into its copy"
				if up, err := s.app.Up(t.Context(), "k", ""); err != nil || !strings.Contains(up.Failed, want) {
					t.Errorf("got %+v, %v, want %q", up, err, want)
				}
			})
			t.Run("tests", func(t *testing.T) {
				s, r := replayer(t)
				s.app.Disk, s.engine.Scripts["replay"] = full, hangs
				must(t, os.MkdirAll(s.runner.Project.Call("p1-verify-1.1"), 0o755))
				out, err := r.Run(t.Context(), Replay{Key: "p1-verify-1.1/replay-no app", Against: NoApp, Limit: time.Hour})
				if err != nil || !out.Fault || !strings.Contains(out.Gone, name) {
					t.Errorf("got %+v, %v, want a fault since few %s", out, err, name)
				}
			})
			t.Run("a build", func(t *testing.T) {
				b, _ := yard(t, hangs)
				b.Disk = full
				end, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard})
				if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %+v, %v, want an error since few %s", end, err, name)
				}
			})
		})
	}
}
