package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"abl/internal/proc"
	"abl/internal/sandbox"
	"abl/internal/wording"
)

// Start starts a container once. It does nothing if the container runs and fails if it has ended.
func (e *Engine) Start(ctx context.Context, name string) (err error) {
	defer func() { err = about(missing(err), "cannot start container %q", name) }()
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return err
	}
	switch toStatus(inspected).State {
	case sandbox.Running:
		return nil
	case sandbox.Exited:
		return errors.New("it has already run")
	}
	return e.change(ctx, long, func(ctx context.Context) error {
		return e.api.ContainerStart(ctx, inspected.ID, container.StartOptions{})
	}, func(ctx context.Context) (bool, error) {
		now, err := e.inspectContainer(ctx, inspected.ID)
		return err == nil && toStatus(now).State != sandbox.Created, err
	})
}

// noExit is part of the engine's error if process 1 of a container did not end after SIGKILL.
const noExit = "did not receive an exit event"

// endBox makes a call that ends or removes a container. It uses the id, so that a delayed call
// cannot affect a later container of the same name. If the engine fails to stop the container, or
// needs more than limit, the killer does, and the call is made again.
func (e *Engine) endContainer(ctx context.Context, name string, limit time.Duration,
	call func(context.Context, string) error) error {
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return err
	}
	end := func(ctx context.Context) error { return missing(call(ctx, inspected.ID)) }
	var late error
	err = e.do(ctx, limit, func(ctx context.Context) error {
		if late != nil {
			return nil // force and a second call follow below
		}
		err := end(ctx)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			late = fmt.Errorf("the engine did not stop it within %s", limit)
		case err != nil && strings.Contains(err.Error(), noExit): // a repetition would fail, too
			late = answer{err}
		}
		return err
	})
	_, answered := errors.AsType[answer](err)
	if late == nil && (!answered || errdefs.IsConflict(err)) {
		return err
	}
	if err := e.force(ctx, inspected.ID, cmp.Or(late, err)); err != nil {
		return err
	}
	return e.do(ctx, long, end)
}

// Wait waits until a container ends and returns its result. It survives broken connections and
// short outages of the engine. It fails if the container was never started.
func (e *Engine) Wait(ctx context.Context, name string) (sandbox.Exit, error) {
	for left := tries - 1; ; {
		exit, over, err := e.end(ctx, name)
		if over || err != nil {
			return exit, about(err, "cannot wait for container %q", name)
		}
		err = e.waitOnce(ctx, name)
		if doubtful(err) && left > 0 {
			left, err = left-1, proc.Pause(ctx, e.pause)
		}
		if err != nil {
			return sandbox.Exit{}, about(err, "cannot wait for container %q", name)
		}
	}
}

// end inspects a container. Only this reports whether it ever ran (the wait call returns 0 if not)
// and whether the kernel killed it for its memory.
func (e *Engine) end(ctx context.Context, name string) (exit sandbox.Exit, over bool, err error) {
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return exit, false, err
	}
	switch s := toStatus(inspected); s.State {
	case sandbox.Created:
		if s.Error != "" {
			return exit, false, fmt.Errorf("it never started: %s (code %d)", s.Error, s.ExitCode)
		}
		return exit, false, errors.New("it never started")
	case sandbox.Exited:
		exit = sandbox.Exit{Code: s.ExitCode, OOMKilled: s.OOMKilled}
		if cause, ok := e.forced.Load(inspected.ID); ok {
			exit.Forced = cause.(string)
		}
		return exit, true, nil
	}
	return exit, false, nil
}

// rearm limits one wait call, because a connection can die unnoticed.
const rearm = time.Minute

// waitOnce waits until the engine reports the end of the container, the connection breaks, or rearm
// has passed. The caller checks which.
func (e *Engine) waitOnce(ctx context.Context, name string) error {
	bound, cancel := context.WithTimeout(ctx, rearm)
	defer cancel()
	answer, failed := e.api.ContainerWait(bound, name, container.WaitConditionNotRunning)
	select {
	case <-answer:
		return nil
	case err := <-failed:
		if ctx.Err() == nil && !transient(err) && bound.Err() == nil {
			return missing(err)
		}
		_ = proc.Pause(ctx, e.pause)
		return ctx.Err()
	}
}

// Stop sends SIGTERM and, after grace (rounded up to seconds), SIGKILL. It does nothing if the
// container has ended.
func (e *Engine) Stop(ctx context.Context, name string, grace time.Duration) error {
	options := container.StopOptions{Timeout: new(int((grace + time.Second - 1) / time.Second))}
	return about(e.endContainer(ctx, name, grace+short, func(ctx context.Context, id string) error {
		return e.api.ContainerStop(ctx, id, options)
	}), "cannot stop container %q", name)
}

// Remove ends a container and removes it with its anonymous volumes. A missing container is not an
// error.
func (e *Engine) Remove(ctx context.Context, name string) error {
	err := e.endContainer(ctx, name, short, func(ctx context.Context, id string) error {
		err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if !errdefs.IsConflict(err) {
			return err
		}
		gone, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved) // another client removes it
		select {
		case <-gone:
			return nil
		case err := <-failed:
			return err
		}
	})
	if errors.Is(err, sandbox.ErrNotFound) || errdefs.IsNotFound(err) {
		return nil
	}
	return about(err, "cannot remove container %q", name)
}

// Status returns the status of a container, or sandbox.ErrNotFound.
func (e *Engine) Status(ctx context.Context, name string) (sandbox.Status, error) {
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return sandbox.Status{}, about(err, "cannot inspect container %q", name)
	}
	return toStatus(inspected), nil
}

// List returns all containers with the labels, sorted by name. A label with an empty value matches
// any value.
func (e *Engine) List(ctx context.Context, labels map[string]string) ([]sandbox.Status, error) {
	containers, err := e.inspectAll(ctx, labels)
	if err != nil {
		return nil, about(err, "cannot list containers")
	}
	out := make([]sandbox.Status, 0, len(containers))
	for _, inspected := range containers {
		out = append(out, toStatus(inspected))
	}
	return out, nil
}

// inspectAll inspects each container, because the engine's list has no exit codes.
func (e *Engine) inspectAll(ctx context.Context, labels map[string]string) ([]container.InspectResponse, error) {
	all := container.ListOptions{All: true, Filters: withLabels(labels)}
	list, err := get(ctx, e.conn, e.api.ContainerList, all)
	if err != nil {
		return nil, err
	}
	var out []container.InspectResponse
	for _, item := range list {
		inspected, err := e.inspectContainer(ctx, item.ID)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue // removed after the list
		}
		if err != nil {
			return nil, err
		}
		out = append(out, inspected)
	}
	slices.SortFunc(out, func(a, b container.InspectResponse) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func (e *Engine) inspectContainer(ctx context.Context, name string) (container.InspectResponse, error) {
	inspected, err := get(ctx, e.conn, e.api.ContainerInspect, name)
	return inspected, missing(err)
}

// missing converts the engine's error for a missing container to sandbox.ErrNotFound.
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

func toStatus(inspected container.InspectResponse) sandbox.Status {
	var addresses []string
	if inspected.NetworkSettings != nil {
		for _, end := range inspected.NetworkSettings.Networks {
			addresses = append(addresses, end.IPAddress, end.GlobalIPv6Address)
		}
	}
	slices.Sort(addresses)
	return sandbox.Status{
		ID:         inspected.ID,
		Name:       strings.TrimPrefix(inspected.Name, "/"),
		Labels:     inspected.Config.Labels,
		State:      toState(inspected.State),
		ExitCode:   inspected.State.ExitCode,
		OOMKilled:  inspected.State.OOMKilled,
		Error:      wording.OneLine(inspected.State.Error),
		CreatedAt:  toTime(inspected.Created),
		StartedAt:  toTime(inspected.State.StartedAt),
		FinishedAt: toTime(inspected.State.FinishedAt),
		Env:        pairs(inspected.Config.Env),
		Addresses:  slices.DeleteFunc(addresses, func(at string) bool { return at == "" }),
	}
}

// toState returns the state. A container whose command could not be started has an exit code, but
// no start time.
func toState(s *container.State) sandbox.State {
	switch {
	case toTime(s.StartedAt).IsZero():
		return sandbox.Created
	case s.Running || s.Paused || s.Restarting:
		return sandbox.Running
	}
	return sandbox.Exited
}

// toTime parses the engine's time. Its zero time is Go's.
func toTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// maxStats is the maximum size of the statistics of one container in bytes.
const maxStats = 1 << 20

// Load returns the CPU time and the traffic of a container. A container that joins another network
// namespace has no traffic.
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
	return load, about(missing(err), "cannot measure container %q", name)
}
