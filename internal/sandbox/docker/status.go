package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"abl/internal/sandbox"
	"abl/internal/wording"
)

// Status says where a box is; a name that the engine does not know is sandbox.ErrNotFound.
func (e *Engine) Status(ctx context.Context, name string) (sandbox.Status, error) {
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return sandbox.Status{}, about(err, "cannot look at box %q", name)
	}
	return toStatus(box), nil
}

// List returns every box that carries the labels, sorted by name. A label with
// an empty value asks only that the box has it.
func (e *Engine) List(ctx context.Context, labels map[string]string) ([]sandbox.Status, error) {
	boxes, err := e.inspectAll(ctx, labels)
	if err != nil {
		return nil, about(err, "cannot list boxes")
	}
	out := make([]sandbox.Status, 0, len(boxes))
	for _, box := range boxes {
		out = append(out, toStatus(box))
	}
	return out, nil
}

// inspectAll looks at each box by itself: the engine's list has no exit codes.
func (e *Engine) inspectAll(ctx context.Context, labels map[string]string) ([]container.InspectResponse, error) {
	list, err := get(ctx, e.conn, e.api.ContainerList, container.ListOptions{All: true, Filters: withLabels(labels)})
	if err != nil {
		return nil, err
	}
	var out []container.InspectResponse
	for _, item := range list {
		box, err := e.inspectBox(ctx, item.ID)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue // gone since the list
		}
		if err != nil {
			return nil, err
		}
		out = append(out, box)
	}
	slices.SortFunc(out, func(a, b container.InspectResponse) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func (e *Engine) inspectBox(ctx context.Context, name string) (container.InspectResponse, error) {
	box, err := get(ctx, e.conn, e.api.ContainerInspect, name)
	return box, missing(err)
}

// missing turns the engine's word for an unknown box into ours.
func missing(err error) error {
	if errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such container") {
		return sandbox.ErrNotFound
	}
	return err
}

func withLabels(labels map[string]string) filters.Args {
	args := filters.NewArgs()
	for key, value := range labels {
		if value != "" {
			key += "=" + value
		}
		args.Add("label", key)
	}
	return args
}

func toStatus(box container.InspectResponse) sandbox.Status {
	return sandbox.Status{
		ID: box.ID, Name: strings.TrimPrefix(box.Name, "/"), Labels: box.Config.Labels,
		State: toState(box.State), ExitCode: box.State.ExitCode, OOMKilled: box.State.OOMKilled, Error: wording.OneLine(box.State.Error),
		StartedAt: toTime(box.State.StartedAt), FinishedAt: toTime(box.State.FinishedAt),
	}
}

// toState goes by the start time before the engine's word: a box whose command
// could not be started has an exit code and has never run.
func toState(s *container.State) sandbox.State {
	switch {
	case toTime(s.StartedAt).IsZero():
		return sandbox.Created
	case s.Running || s.Paused || s.Restarting:
		return sandbox.Running
	}
	return sandbox.Exited
}

// toTime reads the engine's time; its zero is the year 1, and so is ours.
func toTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// maxStats is more than an engine's figures of one box take, in bytes.
const maxStats = 1 << 20

// Load says how much a box has done until now. A box that joins another's network
// has no traffic of its own.
func (e *Engine) Load(ctx context.Context, name string) (load sandbox.Load, err error) {
	err = e.do(ctx, short, func(ctx context.Context) error {
		answer, err := e.api.ContainerStatsOneShot(ctx, name)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var s container.StatsResponse
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxStats)).Decode(&s); err != nil {
			return err
		}
		load = sandbox.Load{CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage)}
		for _, n := range s.Networks {
			load.Net += int64(n.RxBytes + n.TxBytes)
		}
		return nil
	})
	return load, about(missing(err), "cannot measure box %q", name)
}
