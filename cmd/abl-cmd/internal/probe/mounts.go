//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

func has(m *mountinfo.Info, option string) bool {
	return slices.Contains(strings.Split(m.Options, ","), option)
}

// describe returns how a mount can be used. A tmpfs that is bound from the host is not "in memory":
// it has a known inode, or its root is a folder.
func describe(m *mountinfo.Info, known bool) string {
	words := []string{"read and write"}
	if has(m, "ro") {
		words[0] = "read-only"
	}
	if m.FSType == "tmpfs" && m.Root == "/" && !known {
		options := []string{"nosuid", "nodev", "noexec"}
		options = slices.DeleteFunc(options, func(o string) bool { return !has(m, o) })
		words = slices.Concat(words, []string{"in memory"}, options)
	}
	return strings.Join(words, ", ")
}

// mounts checks that exactly the expected mounts exist, with the expected options.
func mounts(text string, expected []helper.ProbeMount) (p sandbox.Proof) {
	found := map[string][]string{} // by mount point; a second mount hides the first
	var others []string
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
	if err != nil {
		return sandbox.Proof{sandbox.Same("other mounts", "", err.Error())}
	}
	for _, m := range all {
		at := m.Mountpoint
		i := slices.IndexFunc(expected, func(w helper.ProbeMount) bool { return w.Target == at })
		words := describe(m, i >= 0 && expected[i].Inode != 0)
		found[at] = append(found[at], words)
		if i < 0 && !isEngines(m) {
			others = append(others, fmt.Sprintf("%s (%s, %s, %s)", at, m.FSType, m.Root, words))
		}
	}
	for _, w := range expected {
		p = append(p, sandbox.Same("mount "+w.Target+" inside", wanted(w), strings.Join(found[w.Target], "; ")))
		if w.Inode != 0 {
			p = append(p, sandbox.Same("identity of "+w.Target, numbered(w.Inode, w.Device), identity(w.Target)))
		}
	}
	for _, at := range []string{"/", "/proc/sys", "/sys"} {
		p = append(p, sandbox.Same(at+" inside", "read-only", strings.Join(found[at], "; ")))
	}
	return append(p, sandbox.Same("other mounts", "", strings.Join(others, ", ")))
}

// wanted describes the expected mount in the format of describe.
func wanted(w helper.ProbeMount) string {
	words := map[bool]string{false: "read and write", true: "read-only"}[w.ReadOnly]
	if w.Memory {
		words += ", in memory, nosuid, nodev"
	}
	if w.Memory && !w.Exec {
		words += ", noexec"
	}
	return words
}

// isEngines reports whether an engine creates a mount in every container: file systems of the
// kernel, and a few files.
func isEngines(m *mountinfo.Info) bool {
	kernel := []string{"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2"}
	switch m.Mountpoint {
	case "/":
		return true
	case "/etc/resolv.conf", "/etc/hostname", "/etc/hosts", "/sbin/docker-init", "/usr/sbin/docker-init", "/dev/init":
		return has(m, "ro")
	}
	for _, top := range []string{"/proc", "/sys", "/dev"} {
		if m.Mountpoint == top || strings.HasPrefix(m.Mountpoint, top+"/") {
			return slices.Contains(kernel, m.FSType)
		}
	}
	return false
}

// identity returns the inode and device of a path. They detect a path that was replaced between
// abl's check and the mount.
func identity(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	return numbered(st.Ino, uint64(st.Dev))
}

func numbered(inode, device uint64) string {
	return fmt.Sprintf("inode %d of device %d", inode, device)
}
