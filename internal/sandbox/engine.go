package sandbox

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// Engine is a container engine. Callers that need less use the smaller interfaces.
type Engine interface {
	Containers
	Streams
	Prover
	Stores
	Info(ctx context.Context) (Info, error)
	List(ctx context.Context, labels map[string]string) ([]Status, error)
}

// Containers creates, starts, waits for and removes containers by name.
type Containers interface {
	Create(ctx context.Context, container ContainerConfig) (id string, err error)
	Start(ctx context.Context, name string) error
	Status(ctx context.Context, name string) (Status, error)
	Wait(ctx context.Context, name string) (Exit, error)
	Stop(ctx context.Context, name string, grace time.Duration) error
	Remove(ctx context.Context, name string) error
}

// Streams reads the output of containers and sends data to them.
type Streams interface {
	Logs(ctx context.Context, name string, max int64) ([]byte, error)
	Head(ctx context.Context, name string, max int64) ([]byte, error)
	CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error // tree writes a tar archive
	Feed(ctx context.Context, name string, data []byte) error                       // to standard input
}

// Prover inspects containers after their creation.
type Prover interface {
	Prove(ctx context.Context, container ContainerConfig) (Proof, error)
	Subnets(ctx context.Context, networks []string) ([]Subnet, error)
	Load(ctx context.Context, name string) (Load, error)
}

// Stores manages networks and volumes, which exist until a sweep removes them.
type Stores interface {
	EnsureNetwork(ctx context.Context, n Network) error
	EnsureVolume(ctx context.Context, v Volume) error
	Usage(ctx context.Context, volume string) (bytes int64, err error)
	Sweep(ctx context.Context, labels map[string]string, keep func(Status) bool) (removed []string, err error)
}

// Errors that callers distinguish. Any other error is a failure of the engine.
var (
	ErrNotFound    = errors.New("no such container")
	ErrExists      = errors.New("a container of this name exists")
	ErrNoImage     = errors.New("image missing")
	ErrUnreachable = errors.New("engine not reachable")
	ErrWeak        = errors.New("engine cannot provide the isolation that abl requires")
	ErrUnproven    = errors.New("the boundary is not proven")
)

// Name returns the name of an engine object of a project.
func Name(project, key string) string { return "abl-" + project + "-" + key }

// Made reports whether abl created the object with this name and these labels. Other programs may
// use such a label or such a name, but hardly both.
func Made(name string, labels map[string]string) bool {
	project := labels[LabelProject]
	return project != "" && strings.HasPrefix(name, Name(project, ""))
}

// Labels of all engine objects of abl. Sweeps select objects by label and name.
const (
	LabelProject  = "abl.project"  // the project's id from state.json
	LabelKind     = "abl.kind"     // role, app, service, holder, listener, network, volume, helper
	LabelPhase    = "abl.phase"    // number
	LabelRole     = "abl.role"     // builder or verifier
	LabelCall     = "abl.call"     // <call>.<attempt>, the idempotency key
	LabelDeadline = "abl.deadline" // Unix time in seconds after which the object is orphaned
	LabelState    = "abl.state"    // HOST:PATH of the file with the project's id, if there is one
	LabelDir      = "abl.dir"      // HOST:PATH of the project
)

// Object is a container, volume or network with LabelProject.
type Object struct {
	Kind    ObjectKind
	Name    string
	Labels  map[string]string
	Created time.Time // zero if the engine does not report it
	Running bool      // a running container
}

// ObjectKind is the type of an Object.
type ObjectKind string

// The types of objects.
const (
	ContainerObject ObjectKind = "container"
	VolumeObject    ObjectKind = "volume"
	NetworkObject   ObjectKind = "network"
)
