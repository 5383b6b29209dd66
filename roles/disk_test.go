package roles

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// smallDisk is a file system of 64 MiB, "" where only root could make one.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root can make a small disk")
		return ""
	}
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).Run(); err != nil {
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
	if o := r.run(); o.Class != outcome.Disk || !strings.Contains(o.Reason, "have to stay free") {
		t.Errorf("ended %s", show(o))
	}
}
