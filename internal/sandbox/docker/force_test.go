package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
)

// abl inspects a container that the engine did not stop. It repeats the request if the container
// ended meanwhile. Otherwise the killer ends it, or the error is reported.
func TestEngineThatCannotStop(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(context.Context) error { return errors.New("did not receive an exit event") }
	noImage := &killer{image: func(context.Context) (string, error) { return "", errors.New("no image") }}
	for name, c := range map[string]struct {
		first   func(context.Context) error
		fails   int // of the calls
		running bool
		killer  *killer
		calls   int
		want    string
	}{
		"hangs, has ended":        {hangs, 1, false, nil, 2, ""},
		"fails, has ended":        {fails, 1, false, nil, 2, ""},
		"fails twice, has ended":  {fails, 2, false, nil, 2, "did not receive an exit event"},
		"hangs, runs":             {hangs, 1, true, nil, 1, "the engine did not stop it within 1ms"},
		"fails, runs":             {fails, 1, true, nil, 1, "did not receive an exit event"},
		"runs, cannot be killed":  {fails, 1, true, noImage, 1, "did not receive an exit event; abl cannot kill its processes either: no image"},
		"stops it like any other": {nil, 0, true, noImage, 1, ""},
		"an engine that is away":  {func(context.Context) error { return context.DeadlineExceeded }, tries, true, noImage, tries, "engine not reachable"},
	} {
		t.Run(name, func(t *testing.T) {
			state := container.State{StartedAt: time.Now().Format(time.RFC3339Nano), Running: c.running}
			e := overBadLine(&cutAPI{inspect: func() (container.InspectResponse, error) { return inState(state, nil), nil }})
			e.killer = c.killer
			calls := 0
			err := e.endContainer(t.Context(), "a", time.Millisecond, func(ctx context.Context, _ string) error {
				if calls++; calls <= c.fails {
					return c.first(ctx)
				}
				return nil
			})
			if calls != c.calls || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d calls, %v; want %d, %q", calls, err, c.calls, c.want)
			}
		})
	}
}

// The killer's container has one capability more than others and the PID namespace of the host, and
// no other difference.
func TestKillingIsNarrow(t *testing.T) {
	inspected := inState(container.State{}, nil)
	inspected.ID = strings.Repeat("a", 64)
	inspected.Config.Labels = map[string]string{sandbox.LabelProject: "p"}
	c, h := killing("image", inspected)
	if !slices.Equal(h.CapAdd, []string{"KILL"}) || !slices.Equal(h.CapDrop, []string{"ALL"}) || h.PidMode != "host" || c.User != root {
		t.Errorf("killer: got capabilities %v of %v, processes %q, user %q, want [KILL] of [ALL], host, %q",
			h.CapAdd, h.CapDrop, h.PidMode, c.User, root)
	}
	if len(h.Mounts) > 0 || h.NetworkMode != network.NetworkNone || h.Privileged || !h.ReadonlyRootfs || h.IpcMode != "private" ||
		!slices.Contains(h.SecurityOpt, "seccomp="+filter()) || !slices.Contains(h.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("killer: got %+v, want no mount, network or privilege, private IPC, a read-only root and the filter",
			h)
	}
	if c.Labels[sandbox.LabelProject] != "p" || c.Labels[sandbox.LabelKind] == "" {
		t.Errorf("labels of the killer: got %v, want project p and a kind, so that a sweep finds it", c.Labels)
	}
}
