package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// Feed writes to the standard input of a running box that was made with Stdin
// and leaves it open for the next time. The engine passes the bytes on and keeps
// none, unlike an environment or an argument, which every inspect shows. What is
// written cannot be written twice, so the call is not repeated.
func (e *Engine) Feed(ctx context.Context, name string, data []byte) (err error) {
	defer func() { err = about(err, "cannot write to box %q", name) }()
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case !box.Config.OpenStdin || box.Config.StdinOnce || box.Config.Tty:
		return errors.New("it was made without a standard input to write to")
	case !box.State.Running:
		return errors.New("it does not run") // an engine takes what is written to one that does not, and drops it
	}
	return e.once(ctx, short, func(ctx context.Context) error {
		stream, err := e.api.ContainerAttach(ctx, box.ID, container.AttachOptions{Stream: true, Stdin: true})
		if err != nil {
			return missing(err)
		}
		defer stream.Close()
		defer context.AfterFunc(ctx, stream.Close)()
		if _, err := stream.Conn.Write(data); err != nil {
			return fmt.Errorf("the connection broke: %w", err)
		}
		return stream.CloseWrite()
	})
}
