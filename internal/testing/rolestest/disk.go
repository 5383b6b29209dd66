package rolestest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// SmallDisk returns a file system of 64 MiB and 100 files. It returns "" if the user is not root.
func SmallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root can make a small disk")
		return ""
	}
	dir := t.TempDir()
	Must(t, exec.Command("mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=100", "tmpfs", dir).Run())
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// FullDisk returns a SmallDisk with less than 2 MiB left.
func FullDisk(t *testing.T) string {
	t.Helper()
	dir := SmallDisk(t)
	if dir != "" {
		Write(t, filepath.Join(dir, "x"), strings.Repeat("x", 62<<20))
	}
	return dir
}

// FullDisks calls test with disks that have too few bytes or too few inodes left, and with the
// message about each.
func FullDisks(t *testing.T, test func(t *testing.T, disk, why string)) {
	for why, files := range map[string]int{"MiB left on its disk": 1, "inodes left": 97} {
		t.Run(why, func(t *testing.T) {
			disk := SmallDisk(t)
			if disk == "" {
				return
			}
			text := ""
			if files == 1 {
				text = strings.Repeat("x", 62<<20)
			}
			for i := range files {
				Write(t, filepath.Join(disk, strconv.Itoa(i)), text)
			}
			test(t, disk, why)
		})
	}
}
