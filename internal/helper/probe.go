package helper

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"abl/internal/sandbox"
)

// ProbeSpec lists the conditions that a container must meet before its program starts. The
// container's first program, which is abl's, reads it from Probe.
type ProbeSpec struct {
	User string `json:"user,omitempty"` // uid:gid
	// Env lists all variables: name to Digest of the value, "" for any value.
	Env    map[string]string `json:"env,omitempty"`
	Mounts []ProbeMount      `json:"mounts,omitempty"`
	// Sealed lists directories in which no file can be created or opened for writing.
	Sealed  []string            `json:"sealed,omitempty"`
	Folders map[string][]string `json:"folders,omitempty"` // directory to all of its entries
	Absent  []string            `json:"absent,omitempty"`  // paths that must not exist
	Net     *ProbeNet           `json:"net,omitempty"`
}

// ProbeMount is an expected mount, in addition to the engine's.
type ProbeMount struct {
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Memory   bool   `json:"memory,omitempty"`
	Exec     bool   `json:"exec,omitempty"` // without noexec
	Device   uint64 `json:"device,omitempty"`
	// Inode identifies the mounted file or directory together with Device. 0 means unknown.
	Inode uint64 `json:"inode,omitempty"`
}

// ProbeNet lists addresses that must be reachable and addresses that must not.
type ProbeNet struct {
	Word string   `json:"word,omitempty"` // the greeting of abl's server on the engine's host
	TCP  []string `json:"tcp,omitempty"`  // addresses that must not respond
	UDP  []string `json:"udp,omitempty"`  // addresses that must not respond to Word
	// Port is a TCP port of the host that must not be reachable on the container's networks.
	Port string `json:"port,omitempty"`
	Asks string `json:"asks,omitempty"` // the same for UDP
	// Shout is a port for broadcasts, which the kernel must reject.
	Shout string   `json:"shout,omitempty"`
	Names []string `json:"names,omitempty"` // that must not resolve
	// Own lists the subnets (CIDR) that must contain all addresses of the container.
	Own []string `json:"own,omitempty"`
	// Peers lists addresses that must respond. Their response time determines how long to wait
	// for others.
	Peers  []ProbePeer `json:"peers,omitempty"`
	WaitMS int64       `json:"wait_ms"`        // minimum waiting time for responses
	Weak   bool        `json:"weak,omitempty"` // the user allows that the host is reachable
}

// ProbePeer is an address that must respond.
type ProbePeer struct {
	At  string `json:"at"`
	Say string `json:"say,omitempty"` // expected greeting, "" for any
}

// Probed is the first line of output of the container's first program: the results.
type Probed struct {
	Proof sandbox.Proof `json:"probe"`
	Error string        `json:"probe_error,omitempty"` // why the probe failed
	MS    int64         `json:"probe_ms"`
}

// Listening is the first line of output of the listener on the engine's machine.
type Listening struct {
	Word  string   `json:"word"`  // sent to each client; the listener counts the datagrams with it
	Hosts []string `json:"hosts"` // addresses of the machine, without loopback addresses
	TCP   string   `json:"tcp"`   // port
	UDP   string   `json:"udp"`   // port
}

// Digest returns the hash of a value that must not be stored.
func Digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// Checks returns the names of all checks that the response to a probe must contain.
func (s ProbeSpec) Checks() []string {
	names := []string{
		"open files", "user inside", "group inside", "supplementary groups inside", "capabilities inside", "no new privileges",
		"system calls filtered", "system calls refused", "memory of process 1", "other mounts", "environment inside",
		"what must be absent", "sockets of engines",
		"other devices", "processes of others",
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
			"addresses on other networks": len(n.Own) > 0, "resolver inside": len(n.Names) > 0,
			"datagrams beyond its networks": n.Shout != "",
		} {
			if asked {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
