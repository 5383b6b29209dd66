// Package sandbox holds the words in which abl speaks of containers: what a
// box is, what it may see, where it may reach and how it ended. It knows no
// engine; sandbox/docker turns these words into containers.
package sandbox

import (
	"io"
	"os"
	"time"
)

// Box is one container as abl intends it: nothing is implied, and an engine
// adapter adds the hardening profile (docs/architecture.md) to every one.
type Box struct {
	Name   string            // unique on the engine; creating it twice is refused, so it doubles as a mutex
	Image  string            // reference or id that the engine already has
	Labels map[string]string // see LabelProject; every box carries it and LabelKind
	User   string            // "uid:gid", never uid 0
	Argv   []string
	Env    []string // KEY=value
	Dir    string   // working directory inside
	Mounts []Mount
	Tmpfs  []Tmpfs
	Shm    int64 // bytes of /dev/shm, 0 for the adapter's own small size
	Reach  Reach
	Limits Limits

	Publish int // port at which it listens, and at which this machine's 127.0.0.1 reaches it; 0 for none

	Term  bool // a person's terminal is attached (abl shell): TTY and open stdin
	Stdin bool // standard input stays open for whoever feeds it, again and again
	Seals bool // a holder: it begins as root, closes its network namespace and becomes User by itself
	Below bool // its processes are among those of the holder that it joins: the kernel ends them with it
	Loose bool // a service of the person's choosing: writable root, and what official images need to drop root
}

// Mount is one thing that the box sees.
type Mount struct {
	What     What
	Source   string // absolute path on the engine's host, or a volume's name for a volume
	Target   string // absolute path inside
	ReadOnly bool
}

// What says what a mount is for; the adapter derives the engine's mount type from it.
type What string

const (
	Workspace What = "workspace" // the role's own directory, read-write (bind)
	GitDir    What = "git"       // its .git, read-only over the workspace (bind)
	Specs     What = "specs"     // read-only (bind)
	CallIn    What = "call-in"   // what abl hands to this call, read-only (bind)
	CallOut   What = "call-out"  // one file that abl has open and reads (bind of a file)
	Empty     What = "empty"     // an empty read-only directory that covers what must not be seen (bind)
	Scratch   What = "scratch"   // engine volume made for one call (volume)
	Tree      What = "tree"      // throw-away view of the committed tree (volume)
	Door      What = "door"      // sockets by which abl's programs in two network namespaces meet (volume)
)

// Tmpfs is memory mounted inside. Size is in bytes, Inodes a count; 0 leaves the engine's default.
type Tmpfs struct {
	Target string
	Size   int64
	Inodes int64
	Mode   string // octal, as "0700"
	Owned  bool   // owned by the box's user
	Exec   bool
}

// Limits bound a box. Zero means none; Memory and FileSize are bytes.
type Limits struct {
	Memory   int64
	CPUs     float64
	Pids     int64
	FileSize int64
	OpenFile int64
}

// IsVolume says that the engine itself keeps what is mounted.
func (w What) IsVolume() bool { return w == Scratch || w == Tree || w == Door }

// Reach is where a box can connect to. Exactly one of the first two is set.
type Reach struct {
	Join      string     // name of a running holder whose network namespace is shared
	Endpoints []Endpoint // own endpoints; an empty list with an empty Join is no network at all
	Through   []Endpoint // what the holder is connected to, for the proof; nil where nobody said
	Self      []string   // names of 127.0.0.1 besides localhost, of a joined box those of its holder
	Resolve   bool       // outside names resolve by the engine's own DNS, as a way out needs
}

// Endpoint attaches a box to a network, reachable there under the aliases.
type Endpoint struct {
	Network string
	Aliases []string
	Foreign bool // not the project's own: the person named it (network.egress)
}

// Network is a bridge of abl's own.
type Network struct {
	Name   string
	Labels map[string]string
	Egress bool   // an ordinary bridge with a way out; otherwise isolated, from the host too
	Pool   string // CIDR out of which a /28 is taken
	Apart  Apart  // how an isolated one is kept from the host; "" is the engine's own way
}

// Apart is a way to keep an isolated network from the engine's host. Which one
// works depends on the engine, and an engine may take one and not do it.
type Apart string

// The ways.
const (
	NoAddress       Apart = "no-address"       // the bridge has no address (inhibit_ipv4)
	IsolatedGateway Apart = "isolated-gateway" // the engine's own mode, from API 1.48 on
)

// Volume is engine storage that lives for one call.
type Volume struct {
	Name   string
	Labels map[string]string
	// Set: a copy-on-write view of these directories of the engine's host, which hide each other in
	// this order. Writes go to Upper. The first directory gives the view its owner and mode.
	Lower []string
	Upper string // name of the scratch volume that takes the writes
	Image string // with Upper: one that the engine has, of a box that is never started
}

// State is where a box is in its life.
type State string

const (
	Created State = "created" // never started: an exit code of it means nothing
	Running State = "running"
	Exited  State = "exited"
)

// Status is what the engine says of a box.
type Status struct {
	ID, Name   string
	State      State
	Labels     map[string]string
	ExitCode   int
	OOMKilled  bool   // the engine's own flag; an exit code of 137 alone proves nothing
	Error      string // the engine's words when the start failed
	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
}

// Load is how much a box has done since its start. Net is 0 where it joins
// another's network.
type Load struct {
	CPU time.Duration
	Net int64 // bytes both ways
}

// Exit is how a box ended.
type Exit struct {
	Code      int
	OOMKilled bool
	Forced    string // the engine's error when it could not stop the box and abl killed the processes
}

// Info is what abl needs to know of an engine before it trusts it.
type Info struct {
	Version, API, OS, Arch, ID string
	Rootless, UserNS           bool
	SELinux                    bool // it confines containers with SELinux
	Podman                     bool // it speaks the engine's API and is another one
	Local                      bool // the engine's host is this machine: its paths are ours
	Near                       bool // it is on this machine, if in a virtual machine, and its containers may come here
	Contained                  bool // abl itself runs in a container
	Host                       string
	DataDir                    string // where the engine keeps what containers write, on its host
	NoSwapLimit                bool   // its kernel does not count swap, so a limit on memory cannot include it
	CPUs                       int
	BuildKit                   bool  // it builds images with BuildKit
	Apart                      Apart // how its version is known to keep networks apart from its host
}

// ImageBuild is an image to be built.
type ImageBuild struct {
	Ref      string
	Network  string // network mode of its steps, "" for the engine's default
	Args     map[string]string
	Images   []string // references of images that the Dockerfile names
	BuildKit bool     // use BuildKit if the engine has it, and else the classic builder
}

// Terminal is a person's terminal, already in raw mode.
type Terminal struct {
	In      io.Reader // a read that is under way outlives Attach: nothing can end it
	Out     io.Writer
	Size    func() (width, height int)
	Resized <-chan os.Signal
}
