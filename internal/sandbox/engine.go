package sandbox

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// Engine is what a container engine does for abl: a package that implements it
// can stand in Docker's place. Who needs less says so by the groups.
type Engine interface {
	Boxes
	Streams
	Prover
	Stores
	Info(ctx context.Context) (Info, error)
	List(ctx context.Context, labels map[string]string) ([]Status, error)
	Kill(ctx context.Context, name string) error
}

// Boxes are made, started, waited for and removed by name.
type Boxes interface {
	Create(ctx context.Context, box Box) (id string, err error)
	Start(ctx context.Context, name string) error
	Status(ctx context.Context, name string) (Status, error)
	Wait(ctx context.Context, name string) (Exit, error)
	Stop(ctx context.Context, name string, grace time.Duration) error
	Remove(ctx context.Context, name string) error
}

// Streams are what a box printed, and what is put into it.
type Streams interface {
	Logs(ctx context.Context, name string, max int64) ([]byte, error)
	Head(ctx context.Context, name string, max int64) ([]byte, error)
	CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error // of a tar
	Feed(ctx context.Context, name string, data []byte) error                       // to its standard input
}

// Prover says what a box that was made is in truth.
type Prover interface {
	Prove(ctx context.Context, box Box) (Proof, error)
	Env(ctx context.Context, name string) (map[string]string, error)
	Ranges(ctx context.Context, networks []string) ([]string, error)
	Load(ctx context.Context, name string) (Load, error)
}

// Stores are networks and volumes, which are kept until they are swept.
type Stores interface {
	EnsureNetwork(ctx context.Context, n Network) error
	EnsureVolume(ctx context.Context, v Volume) error
	Usage(ctx context.Context, volume string) (bytes int64, err error)
	Sweep(ctx context.Context, labels map[string]string, keep func(Status) bool) (removed []string, err error)
}

// What a caller may need to tell apart; everything else is an engine's failure.
var (
	ErrNotFound    = errors.New("no such container")
	ErrExists      = errors.New("a container of this name exists")
	ErrNoImage     = errors.New("image missing")
	ErrUnreachable = errors.New("engine not reachable")
	ErrWeak        = errors.New("engine cannot give the isolation abl promises")
	ErrUnproven    = errors.New("the boundary is not proven")
)

// Name is the name on an engine of what abl makes there for a project.
func Name(project, key string) string { return "abl-" + project + "-" + key }

// Made reports whether abl made what has this name and carries these labels. Others can set a
// label on what is theirs, or choose such a name, but hardly both.
func Made(name string, labels map[string]string) bool {
	project := labels[LabelProject]
	return project != "" && strings.HasPrefix(name, Name(project, ""))
}

// Labels that abl puts on everything it makes on an engine. Sweeping goes by them and by the
// names.
const (
	LabelProject  = "abl.project"  // the project's id from state.json
	LabelKind     = "abl.kind"     // role, app, service, holder, network, volume, helper
	LabelPhase    = "abl.phase"    // number
	LabelRole     = "abl.role"     // builder or verifier
	LabelCall     = "abl.call"     // <call>.<attempt>, the idempotency key
	LabelDeadline = "abl.deadline" // Unix seconds after which it is an orphan
	LabelState    = "abl.state"    // HOST:PATH of the file that has the project's id, absent where no file has
	LabelDir      = "abl.dir"      // HOST:PATH of the directory that abl works in
)

// Object is a container, volume or network that carries LabelProject.
type Object struct {
	Kind    ObjectKind
	Name    string
	Labels  map[string]string
	Created time.Time // zero if the engine does not report it
	Running bool      // a container that has not ended
}

// ObjectKind is the kind of an Object.
type ObjectKind string

// The kinds.
const (
	ContainerObject ObjectKind = "container"
	VolumeObject    ObjectKind = "volume"
	NetworkObject   ObjectKind = "network"
)
