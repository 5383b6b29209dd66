//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// mounted is one line of the kernel's mount table.
type mounted struct {
	at, kind, root string
	options        []string
}

// table reads the form of /proc/self/mountinfo; a line that it cannot read is
// returned as a mount of no known kind, which no check lets pass.
func table(text string) (all []mounted) {
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(kind) < 1 {
			all = append(all, mounted{at: strings.TrimSpace(line), kind: "unreadable"})
			continue
		}
		all = append(all, mounted{at: unescape(f[4]), kind: kind[0], root: unescape(f[3]), options: strings.Split(f[5], ",")})
	}
	return all
}

// unescape undoes the kernel's octal escapes of spaces, tabs, newlines and backslashes.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

func (m mounted) has(option string) bool { return slices.Contains(m.options, option) }

// describe words how a mount can be used.
func (m mounted) describe() string {
	words := []string{"read and write"}
	if m.has("ro") {
		words[0] = "read-only"
	}
	if m.kind == "tmpfs" {
		words = append(words, "in memory")
		for _, o := range []string{"nosuid", "nodev", "noexec"} {
			if m.has(o) {
				words = append(words, o)
			}
		}
	}
	return strings.Join(words, ", ")
}

// mounts checks that what is meant is mounted, as it is meant, and nothing else.
func mounts(text string, meant []helper.ProbeMount) (p sandbox.Proof) {
	found := map[string][]mounted{}
	var others []string
	for _, m := range table(text) {
		found[m.at] = append(found[m.at], m)
		if !slices.ContainsFunc(meant, func(w helper.ProbeMount) bool { return w.Target == m.at }) && !engines(m) {
			others = append(others, fmt.Sprintf("%s (%s, %s, %s)", m.at, m.kind, m.root, m.describe()))
		}
	}
	for _, w := range meant {
		p = append(p, sandbox.Same("mount "+w.Target+" inside", wanted(w), describeAll(found[w.Target])))
	}
	for _, at := range []string{"/", "/proc/sys", "/sys"} {
		p = append(p, sandbox.Same(at+" inside", "read-only", describeAll(found[at])))
	}
	return append(p, sandbox.Same("further mounts", "", strings.Join(others, ", ")))
}

func wanted(w helper.ProbeMount) string {
	m := mounted{options: []string{"rw"}}
	if w.ReadOnly {
		m.options[0] = "ro"
	}
	if w.Memory {
		m.kind, m.options = "tmpfs", append(m.options, "nosuid", "nodev")
		if !w.Exec {
			m.options = append(m.options, "noexec")
		}
	}
	return m.describe()
}

// describeAll shows every mount at one place: a second one hides the first.
func describeAll(all []mounted) string {
	words := make([]string, 0, len(all))
	for _, m := range all {
		words = append(words, m.describe())
	}
	if len(words) == 0 {
		return "not mounted"
	}
	return strings.Join(words, "; ")
}

// engines tells the mounts that an engine makes in every container: the kernel's
// own file systems, and a few files for each container.
func engines(m mounted) bool {
	kernel := []string{"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2"}
	switch m.at {
	case "/":
		return true
	case "/etc/resolv.conf", "/etc/hostname", "/etc/hosts", "/sbin/docker-init", "/usr/sbin/docker-init", "/dev/init":
		return m.has("ro")
	}
	for _, top := range []string{"/proc", "/sys", "/dev"} {
		if m.at == top || strings.HasPrefix(m.at, top+"/") {
			return slices.Contains(kernel, m.kind)
		}
	}
	return false
}

// same checks, for mounts whose directory or file is known, that it is that very
// one: a path can be bent to another between the look and the mount.
func same(meant []helper.ProbeMount) (p sandbox.Proof) {
	for _, w := range meant {
		if w.Inode == 0 {
			continue
		}
		var st unix.Stat_t
		got := ""
		if err := unix.Lstat(w.Target, &st); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("inode %d of device %d", st.Ino, st.Dev)
		}
		p = append(p, sandbox.Same("identity of "+w.Target, fmt.Sprintf("inode %d of device %d", w.Inode, w.Device), got))
	}
	return p
}
