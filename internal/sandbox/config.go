// Package sandbox describes containers independently of the engine: their settings, mounts,
// networks and results. Package docker implements it.
package sandbox

import (
	"io"
	"net/netip"
	"os"
	"time"
)

// ContainerConfig describes a container. The engine adapter adds the hardening profile
// (docs/security.md).
type ContainerConfig struct {
	Name   string            // unique on the engine: creating a second one fails, like taking a mutex
	Image  string            // reference or id of an image on the engine
	Labels map[string]string // with at least LabelProject and LabelKind
	User   string            // "uid:gid", never uid 0
	Argv   []string
	Env    []string // KEY=value
	Dir    string   // working directory inside
	Mounts []Mount
	Tmpfs  []Tmpfs
	Shm    int64 // size of /dev/shm in bytes, 0 for the adapter's small default
	Reach  Reach
	Limits Limits

	Publish int // port that is published on 127.0.0.1, 0 for none

	Term  bool // the user's terminal is attached (abl shell): TTY and open stdin
	Stdin bool // standard input stays open between calls of Feed
	Seals bool // a holder: its program starts as root, closes its network namespace and switches to User
	Below bool // shares the PID namespace of the holder, so the kernel ends its processes with the holder
	Loose bool // a service that the user chose: writable root, and the capabilities that official images need
}

// Mount is a mount of a container.
type Mount struct {
	What     What
	Source   string // absolute path on the engine's host, or the name of a volume
	Target   string // absolute path in the container
	ReadOnly bool
}

// What is the purpose of a mount. It determines the engine's mount type.
type What string

const (
	Workspace What = "workspace" // the role's own directory, read-write (bind)
	GitDir    What = "git"       // its .git, read-only over the workspace (bind)
	Specs     What = "specs"     // read-only (bind)
	CallIn    What = "call-in"   // files from abl for this call, read-only (bind)
	CallOut   What = "call-out"  // a file that abl reads (bind of a file)
	Empty     What = "empty"     // an empty read-only directory over a hidden one (bind)
	Scratch   What = "scratch"   // storage for one call (volume)
	Tree      What = "tree"      // temporary view of the committed files (volume)
	Sockets   What = "sockets"   // sockets between abl's programs in two network namespaces (volume)
)

// Tmpfs is a tmpfs mount. Size is in bytes, Inodes a count. 0 means the engine's default.
type Tmpfs struct {
	Target string
	Size   int64
	Inodes int64
	Mode   string // octal, as "0700"
	Owned  bool   // owned by the container's user
	Exec   bool
}

// Limits are the limits of a container. 0 means no limit. Memory and FileSize are in bytes.
type Limits struct {
	Memory   int64
	CPUs     float64
	Pids     int64
	FileSize int64
	OpenFile int64
}

// IsVolume reports whether the mount is a volume of the engine.
func (w What) IsVolume() bool { return w == Scratch || w == Tree || w == Sockets }

// Reach describes the network of a container. At most one of Host, Join and Endpoints is set.
type Reach struct {
	Host      bool       // the network of the engine's machine
	Join      string     // name of a running holder whose network namespace it shares
	Endpoints []Endpoint // networks; without Host, Join and Endpoints it has no network
	Through   []Endpoint // networks of the holder, for Prove; nil if unknown
	Self      []string   // names of 127.0.0.1 in addition to localhost; with Join those of the holder
	Resolve   bool       // the engine's DNS resolves outside names, which an egress needs
}

// Endpoint attaches a container to a network under the aliases.
type Endpoint struct {
	Network string
	Aliases []string
	Foreign bool // not the project's: the user named it (network.egress)
}

// Network is a bridge network of abl.
type Network struct {
	Name   string
	Labels map[string]string
	Egress bool   // an ordinary bridge with access to the outside; otherwise isolated, also from the host
	Pool   string // CIDR from which the network gets a /28
}

// Subnet is a range of addresses of a network.
type Subnet struct {
	Range string     // in CIDR notation
	Host  netip.Addr // address of the engine's machine, invalid on an isolated network
}

// Apart is a method to isolate a network from the engine's host. Which one works depends on the
// engine, and an engine may accept one without applying it.
type Apart string

// The methods.
const (
	NoAddress       Apart = "no-address"       // the bridge has no address (inhibit_ipv4)
	IsolatedGateway Apart = "isolated-gateway" // the engine's own mode, from API 1.48 on
)

// Volume is a volume that lives for one call.
type Volume struct {
	Name   string
	Labels map[string]string
	// Lower, if set, makes the volume a copy-on-write view of these directories of the engine's
	// host, the first one on top. Upper receives the writes. The view has the owner and the mode
	// of the first directory.
	Lower []string
	Upper string // name of the scratch volume for the writes
	Image string // with Upper: an image for a helper container that never starts
}

// State is the state of a container.
type State string

const (
	Created State = "created" // never started: its exit code means nothing
	Running State = "running"
	Exited  State = "exited"
)

// Status is the status of a container on the engine.
type Status struct {
	ID, Name   string
	State      State
	Labels     map[string]string
	ExitCode   int
	OOMKilled  bool   // the engine's flag; exit code 137 may have other reasons
	Error      string // the engine's error if the start failed
	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	Env        map[string]string // including the environment of its image
	Addresses  []string          // IP addresses, sorted
}

// Load is the CPU time and traffic of a container since its start. Net is 0 if it joins another
// network namespace.
type Load struct {
	CPU time.Duration
	Net int64 // bytes received and sent
}

// Exit is the result of a container.
type Exit struct {
	Code      int
	OOMKilled bool
	Forced    string // the engine's error if it could not stop the container and abl killed the processes
}

// Info describes an engine.
type Info struct {
	Version, API, OS, Arch, ID string
	Rootless, UserNS           bool
	SELinux                    bool // confines containers with SELinux
	Podman                     bool // Podman with Docker's API
	Local                      bool // runs on this machine and sees its files under the same paths
	// Near is set if it runs on this machine or in a VM on it, so that containers can connect here.
	Near        bool
	Contained   bool // abl itself runs in a container
	Host        string
	DataDir     string // data directory on the engine's host
	NoSwapLimit bool   // the kernel cannot limit swap
	CPUs        int
	BuildKit    bool  // builds images with BuildKit
	Apart       Apart // method of its version to isolate networks from its host
}

// ImageBuild describes an image to build.
type ImageBuild struct {
	Ref      string
	Network  string // network mode of its steps, "" for the engine's default
	Args     map[string]string
	Images   []string // references of the images in the Dockerfile
	BuildKit bool     // use BuildKit if the engine has it, else the classic builder
}

// Terminal is the user's terminal in raw mode.
type Terminal struct {
	In      io.Reader // a pending Read outlives Attach
	Out     io.Writer
	Size    func() (width, height int)
	Resized <-chan os.Signal
}
