//go:build linux

package probe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// refused is what every try in a sealed folder must come to.
const refused = "refused"

// looked is how many files of a folder are tried.
const looked = 16

// sealed tries to write where nothing may be written: a new file in each folder,
// and the files that are there, but for those that are mounts of their own. What
// should succeed after all is taken back.
func sealed(folders []string, mounts []helper.ProbeMount) (p sandbox.Proof) {
	own := map[string]bool{}
	for _, m := range mounts {
		own[m.Target] = true
	}
	for _, folder := range folders {
		p = append(p, sandbox.Same("writing in "+folder, refused, try(folder, own)))
	}
	return p
}

func try(folder string, own map[string]bool) string {
	fresh := filepath.Join(folder, ".abl-probe-"+rand.Text())
	fd, err := unix.Open(fresh, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
		if err := os.Remove(fresh); err != nil {
			return fmt.Sprintf("a file could be made and not be removed: %v", err)
		}
		return "a file could be made"
	}
	if !denied(err) {
		return fmt.Sprintf("no answer to making a file: %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		if errors.Is(err, unix.EACCES) {
			return refused
		}
		return err.Error()
	}
	for _, e := range entries[:min(len(entries), looked)] {
		path := filepath.Join(folder, e.Name())
		if !e.Type().IsRegular() || own[path] {
			continue
		}
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
			return fmt.Sprintf("%q could be opened for writing", e.Name())
		}
		if !denied(err) {
			return fmt.Sprintf("no answer to opening %q: %v", e.Name(), err)
		}
	}
	return refused
}

// denied tells a refusal from trouble of another kind, by which nothing is known.
// A program that runs from a file makes it busy, which keeps writers out as well.
func denied(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ETXTBSY)
}

func notDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }
