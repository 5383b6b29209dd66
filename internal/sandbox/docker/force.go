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

// killer makes the container that kills the processes of a container which the engine
// cannot stop.
type killer struct {
	image  func(context.Context) (string, error)
	report func(string)
}

// killTime bounds the work of a killer's program.
const killTime = 20 * time.Second

// Killer makes Stop, Kill and Remove kill the processes of a container that the engine
// fails to stop. image returns the image with abl's own programs; report receives a
// sentence for each container that had to be killed in this way.
func (e *Engine) Killer(image func(context.Context) (string, error), report func(string)) {
	e.killer = &killer{image, report}
}

// force kills the processes of a container that still runs although the engine tried to
// stop it, which failed with cause. It does nothing about a container that ended meanwhile.
func (e *Engine) force(ctx context.Context, id string, cause error) error {
	box, err := e.inspectBox(ctx, id)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil
	case err != nil:
		return err
	case toStatus(box).State != sandbox.Running:
		return nil
	case e.killer == nil:
		return cause
	}
	e.forced.Store(box.ID, cause.Error()) // before the end that Wait sees
	if err := e.killProcesses(ctx, box); err != nil {
		return fmt.Errorf("%w; abl cannot kill its processes either: %w; it still runs: restart the engine", cause, err)
	}
	e.killer.report(fmt.Sprintf("the engine could not stop container %q (%v); abl killed its processes",
		toStatus(box).Name, cause))
	return nil
}

// killProcesses runs a helper container that kills all processes of a container, and
// returns when the engine has noticed that the container ended.
func (e *Engine) killProcesses(ctx context.Context, box container.InspectResponse) error {
	image, err := e.killer.image(ctx)
	if err != nil {
		return err
	}
	config, host := killing(image, box)
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
	_, err = e.Wait(bound, box.ID)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	return err
}

// killing is the helper container. It is the only container of abl's that sees the
// processes of the engine's machine, and the only one that may send them signals. It has
// root's user id with that one capability, no mounts, no network, and it runs one of
// abl's own programs.
func killing(image string, box container.InspectResponse) (container.Config, container.HostConfig) {
	own := sandbox.Box{
		Image:  image,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 1, Pids: 64, OpenFile: 1024},
		Labels: map[string]string{
			sandbox.LabelProject:  box.Config.Labels[sandbox.LabelProject],
			sandbox.LabelKind:     "helper",
			sandbox.LabelDeadline: fmt.Sprint(time.Now().Add(killTime).Unix()),
		},
	}
	own.Argv = []string{helper.Bin + "/" + helper.HelperKill, "--deadline", own.Labels[sandbox.LabelDeadline], box.ID}
	config, host, _ := profile(own, sandbox.Info{CPUs: 1})
	config.User, host.PidMode, host.CapAdd = root, "host", []string{"KILL"}
	return config, host
}
