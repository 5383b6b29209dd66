package roles

import (
	"context"
	"fmt"

	"abl/internal/sandbox"
)

// Open lets this machine come to the running app, at 127.0.0.1 and the port. Between the two
// stands a box that passes connections on into the app's door: the app itself reaches nobody.
func (a *App) Open(ctx context.Context, port int) error {
	box := a.Tool("open", a.Labels("holder", "open", "", a.end()))
	box.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{a.Way()}, Resolve: true} // as what is on the way out does
	box.Mounts, box.Publish = []sandbox.Mount{a.door(a.at())}, port
	box.Argv = holding(box, "--pass", fmt.Sprintf("0.0.0.0:%d=%s", port, appSocket))
	if err := a.OpenWay(ctx); err != nil {
		return err
	}
	err := Make(ctx, a.Engine, box)
	if err == nil {
		err = a.Engine.Start(ctx, box.Name)
	}
	if err == nil {
		err = a.firstLine(ctx, box.Name)
	}
	return err
}
