//go:build linux

package probe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// sockets of container engines, below /run or /var/run: whoever reaches one has the host.
var sockets = []string{
	"docker.sock", "containerd/containerd.sock", "docker/containerd/containerd.sock", "containerd/s", "dockershim.sock",
	"podman/podman.sock", "crio/crio.sock", "buildkit/buildkitd.sock", "k3s/containerd/containerd.sock", "balena-engine.sock",
}

// plainDevices are the files that an engine creates in /dev of every container.
var plainDevices = []string{
	"console", "core", "fd", "full", "init", "mqueue", "null", "ptmx", "pts",
	"random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}

// places checks what is to be seen, and what is not.
func places(spec helper.ProbeSpec) (p sandbox.Proof) {
	for _, folder := range slices.Sorted(maps.Keys(spec.Folders)) {
		want := slices.Sorted(slices.Values(spec.Folders[folder]))
		all := names(folder, func(string) bool { return false })
		p = append(p, sandbox.Same("all in "+folder, strings.Join(want, " "), all))
	}
	own := map[string]bool{}
	for _, m := range spec.Mounts {
		own[m.Target] = true
	}
	for _, folder := range spec.Sealed {
		p = append(p, sandbox.Same("writing in "+folder, refused, write(folder, own)))
	}
	var engines []string
	for _, name := range sockets {
		engines = append(engines, "/run/"+name, "/var/run/"+name)
	}
	return append(p,
		sandbox.Same("what must be absent", "", there(spec.Absent)),
		sandbox.Same("sockets of engines", "", there(engines)),
		sandbox.Same("further devices", "", names("/dev", func(name string) bool {
			return slices.Contains(plainDevices, name)
		})),
		sandbox.Same("processes of others", "", names("/proc", known)),
	)
}

// names lists a folder, without those that are to be there.
func names(folder string, meant func(name string) bool) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		if !meant(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return strings.Join(all, " ")
}

// there are the paths where something is. What cannot be looked at for want of
// permission is out of the agent's sight too; any other trouble is shown.
func there(paths []string) string {
	var all []string
	for _, path := range paths {
		_, err := os.Lstat(path)
		switch {
		case err == nil:
			all = append(all, path)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ENOTDIR):
			all = append(all, err.Error())
		}
	}
	return strings.Join(all, ", ")
}

// openFiles are what was left open for this program but its three streams: a
// descriptor of a folder of the host is a way out of the container.
func openFiles() string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err.Error()
	}
	var left []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || len(e.Name()) == 1 && e.Name() <= "2" { // the first is the look itself, closed by now
			continue
		}
		if !strings.HasPrefix(to, "anon_inode:") && !runtimes(to) {
			left = append(left, to)
		}
	}
	if at, err := os.Readlink("/proc/self/cwd"); err != nil || !filepath.IsAbs(at) || strings.HasSuffix(at, " (deleted)") {
		left = append(left, fmt.Sprintf("working folder %q", at))
	}
	return strings.Join(left, ", ")
}

// runtimes tells the files of the control group that Go's runtime keeps open, to
// know how many processors there are.
func runtimes(file string) bool {
	kept := []string{"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}
	return strings.HasPrefix(file, "/sys/fs/cgroup/") && slices.Contains(kept, filepath.Base(file))
}

// known tells what in /proc is no process, or is the container's init or this one.
func known(name string) bool {
	return strings.Trim(name, "0123456789") != "" || name == "1" || name == fmt.Sprint(os.Getpid())
}

// refused is what every try in a sealed folder must come to.
const refused = "refused"

// write tries to write where nothing may be written: a new file in a folder, and the
// first files that are there, but for those that are mounts of their own. What should
// succeed after all is taken back.
func write(folder string, own map[string]bool) string {
	const most = 16
	fresh := filepath.Join(folder, ".abl-probe-"+rand.Text())
	if got := open(fresh, unix.O_CREAT|unix.O_EXCL); got != refused {
		_ = os.Remove(fresh) // who may make it may remove it
		return "a new file " + got
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, unix.EACCES) {
		return err.Error()
	}
	for _, e := range entries[:min(len(entries), most)] {
		path := filepath.Join(folder, e.Name())
		if !e.Type().IsRegular() || own[path] {
			continue
		}
		if got := open(path, unix.O_NONBLOCK); got != refused {
			return fmt.Sprintf("%q %s", e.Name(), got)
		}
	}
	return refused
}

// open tries to open a file for writing. A refusal differs from trouble of another kind, by
// which nothing is known. A program that runs from a file makes it busy, which keeps
// writers out as well.
func open(path string, flags int) string {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0o600)
	switch err {
	case nil:
		unix.Close(fd)
		return "could be opened for writing"
	case unix.EROFS, unix.EACCES, unix.EPERM, unix.ETXTBSY:
		return refused
	}
	return "gave no answer: " + err.Error()
}
