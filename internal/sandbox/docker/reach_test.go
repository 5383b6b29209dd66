package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"abl/internal/sandbox"
)

// cutAPI is an unreliable engine. It responds with the functions that are set and panics on any
// other call.
type cutAPI struct {
	client.APIClient
	create  func(labels map[string]string) (container.CreateResponse, error)
	inspect func() (container.InspectResponse, error)
	wait    func() (container.WaitResponse, error)
	start   func() error
}

func (c *cutAPI) ContainerCreate(_ context.Context, config *container.Config, _ *container.HostConfig, _ *network.NetworkingConfig, _ *ocispec.Platform, _ string) (container.CreateResponse, error) {
	return c.create(config.Labels)
}

func (c *cutAPI) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return c.inspect()
}

func (c *cutAPI) ContainerStart(context.Context, string, container.StartOptions) error {
	return c.start()
}

func (c *cutAPI) ContainerWait(context.Context, string, container.WaitCondition) (<-chan container.WaitResponse, <-chan error) {
	answer, failed := make(chan container.WaitResponse, 1), make(chan error, 1)
	if a, err := c.wait(); err != nil {
		failed <- err
	} else {
		answer <- a
	}
	return answer, failed
}

func (c *cutAPI) Info(context.Context) (system.Info, error) { return system.Info{}, nil }
func (c *cutAPI) ClientVersion() string                     { return oldest }

func overBadLine(c *cutAPI) *Engine {
	return newEngine(&conn{api: c, host: "unix:///nowhere", pause: time.Microsecond})
}

func inState(s container.State, labels map[string]string) container.InspectResponse {
	return container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: "id", Name: "/a", State: &s},
		Config:            &container.Config{Labels: labels},
	}
}

var (
	runs  = container.State{Running: true, StartedAt: "2026-11-21T09:00:00Z"}
	ended = container.State{ExitCode: 7, OOMKilled: true, StartedAt: "2026-11-21T09:00:00Z"}
)

func TestWaitSurvivesCutStreams(t *testing.T) {
	looks, cuts := 0, 0
	e := overBadLine(&cutAPI{
		inspect: func() (container.InspectResponse, error) {
			looks++
			switch looks {
			case 2, 3:
				return container.InspectResponse{}, io.ErrUnexpectedEOF
			case 6:
				return inState(ended, nil), nil
			}
			return inState(runs, nil), nil
		},
		wait: func() (container.WaitResponse, error) {
			cuts++
			return container.WaitResponse{}, io.EOF
		},
	})
	exit, err := e.Wait(t.Context(), "a")
	if want := (sandbox.Exit{Code: 7, OOMKilled: true}); err != nil || exit != want {
		t.Errorf("exit: got %+v, error %v, want %+v", exit, err, want)
	}
	if cuts != 3 {
		t.Errorf("wait calls: got %d, want 3", cuts)
	}
}

func TestWaitReportsALostEngine(t *testing.T) {
	e := overBadLine(&cutAPI{inspect: func() (container.InspectResponse, error) {
		return container.InspectResponse{}, io.EOF
	}})
	_, err := e.Wait(t.Context(), "a")
	if !errors.Is(err, sandbox.ErrUnreachable) || !strings.Contains(err.Error(), "unix:///nowhere") {
		t.Errorf("lost engine: got error %v, want %v with its address", err, sandbox.ErrUnreachable)
	}
}

// A wait call returns 0 for a container that never ran, so Wait must inspect it first.
func TestWaitDistrustsTheWaitCall(t *testing.T) {
	e := overBadLine(&cutAPI{
		inspect: func() (container.InspectResponse, error) {
			return inState(container.State{Status: "created", ExitCode: 127, Error: "no\nsuch file"}, nil), nil
		},
		wait: func() (container.WaitResponse, error) { return container.WaitResponse{StatusCode: 0}, nil },
	})
	_, err := e.Wait(t.Context(), "a")
	if want := `cannot wait for container "a": it never started: no such file (code 127)`; err == nil || err.Error() != want {
		t.Errorf("wait: got error %v, want %s", err, want)
	}
}

func TestCreateKnowsItsOwnContainer(t *testing.T) {
	var made map[string]string
	api := &cutAPI{
		create: func(labels map[string]string) (container.CreateResponse, error) {
			if made == nil {
				made = labels
				return container.CreateResponse{}, io.EOF // done, and the answer lost
			}
			return container.CreateResponse{}, errdefs.ErrConflict
		},
		inspect: func() (container.InspectResponse, error) { return inState(runs, made), nil },
	}
	desired := sandbox.ContainerConfig{Name: "a", Image: "i", User: "1:1", Argv: []string{"x"}, Labels: map[string]string{sandbox.LabelProject: "p", sandbox.LabelKind: "role"}}
	if id, err := overBadLine(api).Create(t.Context(), desired); id != "id" || err != nil {
		t.Errorf("own container: got ID %q, error %v, want %q", id, err, "id")
	}
	if _, err := overBadLine(api).Create(t.Context(), desired); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("another's container: got error %v, want %v", err, sandbox.ErrExists)
	}
	if len(desired.Labels) != 2 {
		t.Errorf("the caller's labels: got %v, want the two that it passed", desired.Labels)
	}
}

func TestDo(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		answers []error
		calls   int
		want    error
	}{
		"at-once":            {[]error{nil}, 1, nil},
		"after-two-cuts":     {[]error{io.EOF, net.ErrClosed, nil}, 3, nil},
		"an-answer-is-final": {[]error{io.EOF, broken}, 2, broken},
		"lost":               {[]error{io.EOF, io.EOF, io.EOF, io.EOF, nil}, tries, sandbox.ErrUnreachable},
		"busy":               {[]error{errdefs.ErrUnavailable, nil}, 2, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := overBadLine(nil).do(t.Context(), short, func(context.Context) error {
				calls++
				return c.answers[calls-1]
			})
			if calls != c.calls || !errors.Is(err, c.want) {
				t.Errorf("got %d calls, %v, want %d, %v", calls, err, c.calls, c.want)
			}
		})
	}
}

func TestDoNamesTheSideThatGaveUp(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	e := overBadLine(nil)
	if err := e.do(t.Context(), time.Millisecond, hang); !errors.Is(err, sandbox.ErrUnreachable) {
		t.Errorf("silent engine: got error %v, want %v", err, sandbox.ErrUnreachable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.do(ctx, short, hang); !errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrUnreachable) {
		t.Errorf("cancelled caller: got error %v, want %v without %v", err, context.Canceled, sandbox.ErrUnreachable)
	}
}

// "No such network" at a start does not mean a missing container, although both are "not found".
func TestStartOfAContainerWithoutItsNetwork(t *testing.T) {
	e := overBadLine(&cutAPI{
		start:   func() error { return errdefs.ErrNotFound.WithMessage("network x not found") },
		inspect: func() (container.InspectResponse, error) { return inState(container.State{}, nil), nil },
	})
	if err := e.Start(t.Context(), "a"); err == nil || errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("start without the network: got error %v, want one other than %v", err, sandbox.ErrNotFound)
	}
}

func TestConnectHints(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "dead.sock"))
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for host, hint := range map[string]string{
		"unix://" + dir + "/none.sock": "install Docker or start it",
		"unix://" + dir + "/dead.sock": "install Docker or start it",
		"tcp://127.0.0.1:1":            "check that it runs there",
		"gopher://x":                   "gopher",
		"nonsense":                     "nonsense",
	} {
		_, err := Connect(t.Context(), func(key string) string {
			return map[string]string{"DOCKER_HOST": host}[key]
		})
		if !errors.Is(err, sandbox.ErrUnreachable) || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), hint) {
			t.Errorf("host %s: got error %v, want %v with the host and %q", host, err, sandbox.ErrUnreachable, hint)
		}
	}
}
