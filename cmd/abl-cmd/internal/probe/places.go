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

// plainDevices is what an engine puts into /dev of a container without devices of its own.
var plainDevices = []string{
	"console", "core", "fd", "full", "init", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}

// places checks what is to be seen, and what is not.
func places(spec helper.ProbeSpec) (p sandbox.Proof) {
	for _, folder := range slices.Sorted(maps.Keys(spec.Folders)) {
		want := slices.Sorted(slices.Values(spec.Folders[folder]))
		p = append(p, sandbox.Same("all in "+folder, strings.Join(want, " "), names(folder, nil)))
	}
	var engines []string
	for _, name := range sockets {
		engines = append(engines, "/run/"+name, "/var/run/"+name)
	}
	return append(p,
		sandbox.Same("what must be absent", "", there(spec.Absent)),
		sandbox.Same("sockets of engines", "", there(engines)),
		sandbox.Same("further devices", "", names("/dev", plainDevices)),
		sandbox.Same("processes of others", "", strangers()),
	)
}

// names lists a folder, without some names.
func names(folder string, without []string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		if !slices.Contains(without, e.Name()) {
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

// openFiles checks that nothing was left open for this program but its three
// streams: a descriptor of a folder of the host is a way out of the container.
func openFiles() sandbox.Check {
	const name = "open files"
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return sandbox.Same(name, "", err.Error())
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
	return sandbox.Same(name, "", strings.Join(left, ", "))
}

// runtimes tells the files of the control group that Go's runtime keeps open, to
// know how many processors there are.
func runtimes(file string) bool {
	return strings.HasPrefix(file, "/sys/fs/cgroup/") && slices.Contains([]string{"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}, filepath.Base(file))
}

// strangers are processes that are neither the container's init nor this one.
func strangers() string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		if pid := e.Name(); strings.Trim(pid, "0123456789") == "" && pid != "1" && pid != fmt.Sprint(os.Getpid()) {
			all = append(all, pid)
		}
	}
	if len(all) > 5 {
		all = append(all[:5], "…")
	}
	return strings.Join(all, " ")
}

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
