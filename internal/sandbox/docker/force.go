package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// killer kills the processes of a container that the engine cannot stop.
type killer struct {
	image  func(context.Context) (string, error)
	report func(string)
}

// killTime is the maximum run time of a killer's program.
const killTime = 20 * time.Second

// Killer makes Stop, Kill and Remove kill the processes of a container that the engine fails to
// stop. image returns an image with abl's programs. report is called with a message for each such
// container.
func (e *Engine) Killer(image func(context.Context) (string, error), report func(string)) {
	e.killer = &killer{image, report}
}

// force kills the processes of a container that is still running although the engine tried to stop
// it and failed with cause. It does nothing if the container has ended.
func (e *Engine) force(ctx context.Context, id string, cause error) error {
	inspected, err := e.inspectContainer(ctx, id)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil
	case err != nil:
		return err
	case toStatus(inspected).State != sandbox.Running:
		return nil
	case e.killer == nil:
		return cause
	}
	e.forced.Store(inspected.ID, cause.Error()) // before Wait returns
	if err := e.killProcesses(ctx, inspected); err != nil {
		return fmt.Errorf("%w; abl cannot kill its processes either: %w; it is still running: restart the engine",
			cause, err)
	}
	e.killer.report(fmt.Sprintf("the engine could not stop container %q (%v); abl killed its processes",
		toStatus(inspected).Name, cause))
	return nil
}

// killProcesses runs a helper container that kills all processes of a container. It returns when
// the engine reports the end of the container.
func (e *Engine) killProcesses(ctx context.Context, inspected container.InspectResponse) error {
	image, err := e.killer.image(ctx)
	if err != nil {
		return err
	}
	config, host := killing(image, inspected)
	name := "abl-kill-" + strings.ToLower(rand.Text())
	var made container.CreateResponse
	err = e.once(ctx, short, func(ctx context.Context) (err error) {
		made, err = e.api.ContainerCreate(ctx, &config, &host, &network.NetworkingConfig{}, nil, name)
		return err
	})
	if err != nil {
		return about(err, "cannot create the helper container")
	}
	defer func() {
		_ = e.once(context.WithoutCancel(ctx), short, func(ctx context.Context) error {
			return e.api.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true})
		})
	}()
	if err := e.Start(ctx, made.ID); err != nil {
		return err
	}
	exit, err := e.Wait(ctx, made.ID)
	if err == nil && exit.Code != 0 {
		log, lerr := e.Logs(ctx, made.ID, 1<<10)
		err = errors.Join(fmt.Errorf("the helper container ended with exit code %d: %s", exit.Code, log), lerr)
	}
	if err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(ctx, short)
	defer cancel()
	_, err = e.Wait(bound, inspected.ID)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	return err
}

// killing returns the specification of the helper container. It is the only container of abl that
// sees the processes of the engine's host and may send them signals. It runs one of abl's programs
// as root with this one capability, without mounts and network.
func killing(image string, inspected container.InspectResponse) (container.Config, container.HostConfig) {
	own := sandbox.ContainerConfig{
		Image: image,
		Limits: sandbox.Limits{
			Memory:   64 << 20,
			CPUs:     1,
			Pids:     64,
			OpenFile: 1024,
		},
		Labels: map[string]string{
			sandbox.LabelProject:  inspected.Config.Labels[sandbox.LabelProject],
			sandbox.LabelKind:     "helper",
			sandbox.LabelDeadline: fmt.Sprint(time.Now().Add(killTime).Unix()),
		},
	}
	own.Argv = []string{helper.Bin + "/" + helper.HelperKill, "--deadline", own.Labels[sandbox.LabelDeadline], inspected.ID}
	config, host, _ := profile(own, sandbox.Info{CPUs: 1})
	config.User, host.PidMode, host.CapAdd = root, "host", []string{"KILL"}
	return config, host
}
