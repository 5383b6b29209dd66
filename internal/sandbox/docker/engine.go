// Package docker turns the words of package sandbox into containers, networks
// and volumes of a Docker engine. It is the only package of abl that knows
// Docker; every box that it makes carries the hardening profile of profile.go.
package docker

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"abl/internal/sandbox"
)

// Engine is a Docker engine. Its methods may be called from several goroutines.
type Engine struct {
	api   api
	host  string        // address, for error sentences
	pause time.Duration // before the first repetition of a call; doubles

	patience patience
	guard    func() error // asked before every request, nil for nobody

	making sync.Mutex // engines check a network's name and make it in two steps

	mu   sync.Mutex
	info *sandbox.Info // as the engine told it first; see known
}

// api is what abl asks of an engine: the client's calls that are used, no more.
type api interface {
	boxAPI
	storeAPI
	imageAPI
	Ping(ctx context.Context) (types.Ping, error)
	Info(ctx context.Context) (system.Info, error)
	ClientVersion() string
	Close() error
}

type boxAPI interface {
	ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, net *network.NetworkingConfig, platform *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerStart(ctx context.Context, id string, o container.StartOptions) error
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	ContainerWait(ctx context.Context, id string, until container.WaitCondition) (<-chan container.WaitResponse, <-chan error)
	ContainerStop(ctx context.Context, id string, o container.StopOptions) error
	ContainerKill(ctx context.Context, id, signal string) error
	ContainerRemove(ctx context.Context, id string, o container.RemoveOptions) error
	ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error)
	ContainerStatsOneShot(ctx context.Context, id string) (container.StatsResponseReader, error)
	ContainerLogs(ctx context.Context, id string, o container.LogsOptions) (io.ReadCloser, error)
	ContainerAttach(ctx context.Context, id string, o container.AttachOptions) (types.HijackedResponse, error)
	ContainerResize(ctx context.Context, id string, o container.ResizeOptions) error
	CopyToContainer(ctx context.Context, id, dir string, tar io.Reader, o container.CopyToContainerOptions) error
}

type storeAPI interface {
	NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error)
	NetworkInspect(ctx context.Context, name string, o network.InspectOptions) (network.Inspect, error)
	NetworkList(ctx context.Context, o network.ListOptions) ([]network.Summary, error)
	NetworkConnect(ctx context.Context, name, box string, o *network.EndpointSettings) error
	NetworkRemove(ctx context.Context, name string) error
	VolumeCreate(ctx context.Context, o volume.CreateOptions) (volume.Volume, error)
	VolumeInspect(ctx context.Context, name string) (volume.Volume, error)
	VolumeList(ctx context.Context, o volume.ListOptions) (volume.ListResponse, error)
	VolumeRemove(ctx context.Context, name string, force bool) error
}

var _ api = (*client.Client)(nil)

// Close gives the connections back.
func (e *Engine) Close() error { return e.api.Close() }
