package helper

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"abl/internal/sandbox"
)

// ProbeSpec is what has to hold in a box before its program is started. It is
// read at Probe by the box's first program, which is abl's own.
type ProbeSpec struct {
	User string `json:"user,omitempty"` // uid:gid
	// All variables: name → Digest of the value, "" for any value.
	Env    map[string]string `json:"env,omitempty"`
	Mounts []ProbeMount      `json:"mounts,omitempty"`
	// Folders in which nothing can be made or opened for writing.
	Sealed  []string            `json:"sealed,omitempty"`
	Folders map[string][]string `json:"folders,omitempty"` // folder → all that it holds
	Absent  []string            `json:"absent,omitempty"`  // paths where nothing is
	Net     *ProbeNet           `json:"net,omitempty"`
}

// ProbeMount is one mount that is meant; the engine's own are known.
type ProbeMount struct {
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Memory   bool   `json:"memory,omitempty"`
	Exec     bool   `json:"exec,omitempty"` // programs in memory may be run
	Device   uint64 `json:"device,omitempty"`
	// With Device: of the very directory or file that is meant; 0 is not known.
	Inode uint64 `json:"inode,omitempty"`
}

// ProbeNet is what can be reached and what cannot.
type ProbeNet struct {
	Word string   `json:"word,omitempty"` // what a server of abl's on the engine's host says
	TCP  []string `json:"tcp,omitempty"`  // addresses that have to stay silent
	UDP  []string `json:"udp,omitempty"`  // likewise, asked with Word
	// Of the host, to be looked for at every address of the box's own networks.
	Port string `json:"port,omitempty"`
	Asks string `json:"asks,omitempty"` // likewise, for datagrams
	// Port for datagrams to everybody, which the kernel has to refuse.
	Shout string   `json:"shout,omitempty"`
	Names []string `json:"names,omitempty"` // that must not resolve
	// Ranges of the networks that the box may be on, as CIDR; it has no address beyond them.
	Own []string `json:"own,omitempty"`
	// That have to answer: by them it is known how long silence must last.
	Peers  []ProbePeer `json:"peers,omitempty"`
	WaitMS int64       `json:"wait_ms"`        // the least time for which silence is listened to
	Weak   bool        `json:"weak,omitempty"` // the person allows that the host is in reach
}

// ProbePeer is an address that has to answer.
type ProbePeer struct {
	At  string `json:"at"`
	Say string `json:"say,omitempty"` // what it says; "" asks for a connection alone
}

// Probed is the first line that the box's first program prints: what it found.
type Probed struct {
	Proof sandbox.Proof `json:"probe"`
	Error string        `json:"probe_error,omitempty"` // why nothing could be looked at
	MS    int64         `json:"probe_ms"`
}

// Digest stands for a value that a box may hold and a record must not.
func Digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// Checks are the names of all that the answer to a probe has to tell.
func (s ProbeSpec) Checks() []string {
	names := []string{
		"open files", "user inside", "group inside", "further groups inside", "capabilities inside", "no new privileges",
		"system calls filtered", "system calls refused", "memory of process 1", "further mounts", "environment inside", "what must be absent", "sockets of engines",
		"further devices", "processes of others",
	}
	for _, m := range s.Mounts {
		names = append(names, "mount "+m.Target+" inside")
		if m.Inode != 0 {
			names = append(names, "identity of "+m.Target)
		}
	}
	for folder := range s.Folders {
		names = append(names, "all in "+folder)
	}
	for _, folder := range s.Sealed {
		names = append(names, "writing in "+folder)
	}
	if n := s.Net; n != nil {
		names = append(names, "the host by tcp", "the host by udp", "IPv6 addresses", "next hops that answer")
		for _, p := range n.Peers {
			names = append(names, "peer "+p.At)
		}
		for _, name := range n.Names {
			names = append(names, "name "+name)
		}
		for name, asked := range map[string]bool{
			"addresses on other networks": len(n.Own) > 0, "resolver inside": len(n.Names) > 0, "datagrams beyond its networks": n.Shout != "",
		} {
			if asked {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
