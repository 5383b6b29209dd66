package app

import (
	"context"
	"fmt"

	"abl/internal/sandbox"
	"abl/roles/boundary"
)

// Open makes the running app available at 127.0.0.1:port of this machine. A separate container
// forwards connections into the app's socket volume, so the app itself gets no network access.
func (a *App) Open(ctx context.Context, port int) error {
	container := a.Tool("open", a.Labels("holder", "open", "", a.PhaseEnd()))
	container.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{a.EgressEndpoint()}, Resolve: true} // like a gateway's
	container.Mounts, container.Publish = []sandbox.Mount{a.SocketVolume(a.Place())}, port
	container.Argv = boundary.HolderArgv(container, "--pass", fmt.Sprintf("0.0.0.0:%d=%s", port, boundary.AppSocket))
	if err := a.EnsureEgress(ctx); err != nil {
		return err
	}
	c := a.Container(container)
	if err := c.Make(ctx); err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	_, err := c.FirstLine(ctx)
	return err
}
