//go:build linux

package probe

import (
	"strings"

	"abl/internal/sandbox"
)

// status checks /proc/self/status: who the program is, and that it can become
// nobody else.
func status(text, user string) sandbox.Proof {
	field := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		field[key] = strings.Join(strings.Fields(value), " ")
	}
	uid, gid, _ := strings.Cut(user, ":")
	who := sandbox.Same("user inside", four(uid), field["Uid"])
	if strings.Trim(uid, "0") == "" {
		who.Want, who.OK = "not root", false
	}
	groups := field["Groups"]
	if groups == gid {
		groups = ""
	}
	var caps []string
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if value := field[set]; value == "" || strings.Trim(value, "0") != "" {
			caps = append(caps, set+" "+value)
		}
	}
	return sandbox.Proof{
		who,
		sandbox.Same("group inside", four(gid), field["Gid"]),
		sandbox.Same("further groups inside", "", groups),
		sandbox.Same("capabilities inside", "", strings.Join(caps, ", ")),
		sandbox.Same("no new privileges", "1", field["NoNewPrivs"]),
		sandbox.Same("system calls filtered", "2", field["Seccomp"]),
	}
}

// four is one id as the real, the effective, the saved and the file system's.
func four(id string) string { return strings.Join([]string{id, id, id, id}, " ") }
