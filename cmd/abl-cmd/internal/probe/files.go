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

// sockets are those of container engines, below /run or /var/run. Access to one is access to the
// host.
var sockets = []string{
	"docker.sock", "containerd/containerd.sock", "docker/containerd/containerd.sock", "containerd/s", "dockershim.sock",
	"podman/podman.sock", "crio/crio.sock", "buildkit/buildkitd.sock", "k3s/containerd/containerd.sock",
	"balena-engine.sock",
}

// plainDevices are the files that an engine creates in /dev of every container.
var plainDevices = []string{
	"console", "core", "fd", "full", "init", "mqueue", "null", "ptmx", "pts",
	"random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}

// checkFiles checks which files exist and which can be written.
func checkFiles(spec helper.ProbeSpec) (p sandbox.Proof) {
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
		p = append(p, sandbox.Same("writing in "+folder, refused, tryWrites(folder, own)))
	}
	var engines []string
	for _, name := range sockets {
		engines = append(engines, "/run/"+name, "/var/run/"+name)
	}
	return append(p,
		sandbox.Same("what must be absent", "", existing(spec.Absent)),
		sandbox.Same("sockets of engines", "", existing(engines)),
		sandbox.Same("other devices", "", names("/dev", func(name string) bool {
			return slices.Contains(plainDevices, name)
		})),
		sandbox.Same("processes of others", "", names("/proc", expectedInProc)),
	)
}

// names lists the entries of a folder that are not expected.
func names(folder string, expected func(name string) bool) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		if !expected(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return strings.Join(all, " ")
}

// existing returns the paths that exist. A path without permission counts as missing, because the
// agent cannot access it either. Other errors are in the result.
func existing(paths []string) string {
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

// openFiles returns the inherited descriptors except the three standard streams. A descriptor of a
// folder of the host would allow an escape from the container.
func openFiles() string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err.Error()
	}
	var left []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || len(e.Name()) == 1 && e.Name() <= "2" { // ReadDir's own descriptor is closed
			continue
		}
		if !strings.HasPrefix(to, "anon_inode:") && !isRuntimeFile(to) {
			left = append(left, to)
		}
	}
	if at, err := os.Readlink("/proc/self/cwd"); err != nil || !filepath.IsAbs(at) || strings.HasSuffix(at, " (deleted)") {
		left = append(left, fmt.Sprintf("working folder %q", at))
	}
	return strings.Join(left, ", ")
}

// isRuntimeFile reports whether Go's runtime keeps a file of the control group open, to read the
// number of processors.
func isRuntimeFile(file string) bool {
	kept := []string{"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}
	return strings.HasPrefix(file, "/sys/fs/cgroup/") && slices.Contains(kept, filepath.Base(file))
}

// expectedInProc reports whether an entry of /proc is not a process, is process 1, or is this
// process.
func expectedInProc(name string) bool {
	return strings.Trim(name, "0123456789") != "" || name == "1" || name == fmt.Sprint(os.Getpid())
}

// refused is the expected result of a write in a sealed folder.
const refused = "refused"

// tryWrites tries to create a file in a sealed folder and to open its first files for writing,
// except separate mounts. It removes a file that it could create.
func tryWrites(folder string, own map[string]bool) string {
	const most = 16
	fresh := filepath.Join(folder, ".abl-probe-"+rand.Text())
	if got := tryOpen(fresh, unix.O_CREAT|unix.O_EXCL); got != refused {
		_ = os.Remove(fresh)
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
		if got := tryOpen(path, unix.O_NONBLOCK); got != refused {
			return fmt.Sprintf("%q %s", e.Name(), got)
		}
	}
	return refused
}

// tryOpen tries to open a file for writing. It returns refused, or another result: errors other
// than a refusal prove nothing. ETXTBSY is a refusal: the file is a running program.
func tryOpen(path string, flags int) string {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0o600)
	switch err {
	case nil:
		unix.Close(fd)
		return "could be opened for writing"
	case unix.EROFS, unix.EACCES, unix.EPERM, unix.ETXTBSY:
		return refused
	}
	return "could not be checked: " + err.Error()
}
