package docker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"abl/internal/sandbox"
)

// Attach joins a terminal with a box that was made with Term, starts the box
// unless it runs, and returns its exit code once it has ended.
func (e *Engine) Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error) {
	defer func() { err = about(err, "cannot attach to box %q", name) }()
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return 0, err
	}
	if !box.Config.Tty {
		return 0, errors.New("it was made without a terminal")
	}
	stream, err := e.api.ContainerAttach(ctx, box.ID, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return 0, missing(err)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Close)()
	if err := e.Start(ctx, box.ID); err != nil {
		return 0, err
	}
	if err := e.talk(ctx, box.ID, term, stream); err != nil {
		return 0, err
	}
	end, err := e.Wait(ctx, box.ID)
	return end.Code, err
}

// talk carries bytes both ways until the box closes its side.
func (e *conn) talk(ctx context.Context, id string, term sandbox.Terminal, stream types.HijackedResponse) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go e.followSize(ctx, id, term)
	// At the end of In the stream stays open: an engine that sees it closed on a
	// terminal closes the output too, before its last words.
	go io.Copy(stream.Conn, term.In) //nolint:errcheck // the box is gone by then
	if _, err := io.Copy(term.Out, stream.Reader); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	return ctx.Err()
}

// followSize tells the box how large the terminal is. A size that does not
// arrive costs a misdrawn line, so errors are let go.
func (e *conn) followSize(ctx context.Context, id string, term sandbox.Terminal) {
	for {
		if w, h := term.Size(); w > 0 && h > 0 {
			_ = e.once(ctx, short, func(ctx context.Context) error {
				return e.api.ContainerResize(ctx, id, container.ResizeOptions{Width: uint(w), Height: uint(h)})
			})
		}
		select {
		case _, open := <-term.Resized:
			if !open {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

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
