package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"abl/orchestrator/sandbox"
)

// Start starts a box; starting a running one is no error.
func (e *Engine) Start(ctx context.Context, name string) error {
	err := e.do(ctx, long, func(ctx context.Context) error {
		return e.api.ContainerStart(ctx, name, container.StartOptions{})
	})
	return about(missing(err), "cannot start box %q", name)
}

// Wait returns how a box ended, once it has. It outlives streams that are cut
// and short absences of the engine. A box that was never started is an error.
func (e *Engine) Wait(ctx context.Context, name string) (sandbox.Exit, error) {
	for {
		exit, over, err := e.ended(ctx, name)
		if over || err != nil {
			return exit, about(err, "cannot wait for box %q", name)
		}
		if err := e.waitOnce(ctx, name); err != nil {
			return sandbox.Exit{}, about(err, "cannot wait for box %q", name)
		}
	}
}

// ended asks the engine's record, the only place that tells an exit from a box
// that never ran (for which the wait call answers 0) and knows of a memory kill.
func (e *Engine) ended(ctx context.Context, name string) (exit sandbox.Exit, over bool, err error) {
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return exit, false, err
	}
	switch s := toStatus(box); s.State {
	case sandbox.Created:
		return exit, false, errors.New(neverRan(s))
	case sandbox.Exited:
		return sandbox.Exit{Code: s.ExitCode, OOMKilled: s.OOMKilled}, true, nil
	}
	return exit, false, nil
}

func neverRan(s sandbox.Status) string {
	if s.Error != "" {
		return fmt.Sprintf("it was never started: %s (code %d)", s.Error, s.ExitCode)
	}
	return "it was never started"
}

// rearm bounds one wait call: a connection can die without a sign.
const rearm = time.Minute

// waitOnce blocks until the engine says that the box stopped, the connection
// is lost or rearm is over; the caller looks for itself which it was.
func (e *Engine) waitOnce(ctx context.Context, name string) error {
	bound, cancel := context.WithTimeout(ctx, rearm)
	defer cancel()
	answer, failed := e.api.ContainerWait(bound, name, container.WaitConditionNotRunning)
	select {
	case <-answer:
		return nil
	case err := <-failed:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if transient(err) || bound.Err() != nil {
			return sleep(ctx, e.pause)
		}
		return missing(err)
	}
}

// Stop sends SIGTERM and, after grace (rounded up to seconds), SIGKILL.
// Stopping a box that has ended is no error.
func (e *Engine) Stop(ctx context.Context, name string, grace time.Duration) error {
	seconds := int((grace + time.Second - 1) / time.Second)
	err := e.do(ctx, grace+long, func(ctx context.Context) error {
		return e.api.ContainerStop(ctx, name, container.StopOptions{Timeout: &seconds})
	})
	return about(missing(err), "cannot stop box %q", name)
}

// Kill sends SIGKILL; killing a box that does not run is no error.
func (e *Engine) Kill(ctx context.Context, name string) error {
	err := e.do(ctx, short, func(ctx context.Context) error {
		err := e.api.ContainerKill(ctx, name, "KILL")
		if errdefs.IsConflict(err) {
			return nil // "is not running"
		}
		return err
	})
	return about(missing(err), "cannot kill box %q", name)
}

// Remove ends a box and deletes it with its unnamed volumes. A box that is
// gone is no error.
func (e *Engine) Remove(ctx context.Context, name string) error {
	err := e.do(ctx, long, func(ctx context.Context) error {
		err := e.api.ContainerRemove(ctx, name, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsConflict(err) { // somebody else's removal is under way
			return e.awaitGone(ctx, name)
		}
		return err
	})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return about(err, "cannot remove box %q", name)
}

func (e *Engine) awaitGone(ctx context.Context, name string) error {
	answer, failed := e.api.ContainerWait(ctx, name, container.WaitConditionRemoved)
	select {
	case <-answer:
		return nil
	case err := <-failed:
		return err
	}
}
