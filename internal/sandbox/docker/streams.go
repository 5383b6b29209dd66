package docker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"abl/internal/proc"
	"abl/internal/sandbox"
)

// Logs returns the last most bytes of what a box printed on both streams. It
// never follows: an engine ends a followed log before its last lines.
func (e *Engine) Logs(ctx context.Context, name string, most int64) (text []byte, err error) {
	defer func() { err = about(missing(err), "cannot read the log of box %q", name) }()
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return nil, err
	}
	err = e.do(ctx, long, func(ctx context.Context) error {
		from, err := e.api.ContainerLogs(ctx, box.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
		if err != nil {
			return err
		}
		defer from.Close()
		var all bytes.Buffer // which the profile's log options bound
		if box.Config.Tty {
			_, err = io.Copy(&all, from)
		} else {
			_, err = stdcopy.StdCopy(&all, &all, from)
		}
		text = all.Bytes()
		text = text[max(0, int64(len(text))-most):]
		return err
	})
	return text, err
}

// headTime bounds one request for the first line: the next one is not late for it.
const headTime = 5 * time.Second

// Head returns the first line that a started box prints on its standard output,
// as soon as it is there, with its newline. A box that ends before that, and a
// line longer than max bytes, give what there is, without one.
func (e *Engine) Head(ctx context.Context, name string, max int64) (line []byte, err error) {
	defer func() { err = about(missing(err), "cannot read what box %q said first", name) }()
	for follow, left := true, tries-1; ; left-- {
		line, err := e.headOnce(ctx, name, max, follow)
		if err == nil && (!follow || bytes.HasSuffix(line, []byte("\n")) || int64(len(line)) >= max) {
			return line, nil
		}
		if err != nil && !errors.Is(err, sandbox.ErrUnreachable) && (!doubtful(err) || left <= 0) {
			return nil, err
		}
		// The stream ended, as it may before the last words of a box, or broke.
		_, over, err := e.end(ctx, name)
		if err != nil {
			return nil, err
		}
		follow = !over
		if proc.Pause(ctx, e.pause) != nil {
			return nil, ctx.Err()
		}
	}
}

// headOnce reads until the line is whole or the stream is over.
func (e *Engine) headOnce(ctx context.Context, name string, max int64, follow bool) (line []byte, err error) {
	err = e.once(ctx, headTime, func(ctx context.Context) error {
		from, err := e.api.ContainerLogs(ctx, name, container.LogsOptions{ShowStdout: true, Follow: follow})
		if err != nil {
			return err
		}
		defer from.Close()
		text, out := io.Pipe()
		defer text.Close()
		go func() {
			_, err := stdcopy.StdCopy(out, io.Discard, from)
			out.CloseWithError(err)
		}()
		line, err = bufio.NewReader(io.LimitReader(text, max)).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return line, err
}

// CopyIn unpacks the tar that tree writes into a directory of a box. Where the box's root
// is read-only, the directory has to be in a writable volume. It calls tree once for each
// attempt: a second one replaces what the first has unpacked.
func (e *Engine) CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error {
	var broken error // of the tree, and not of the engine
	err := e.do(ctx, copyTime, func(ctx context.Context) error {
		from, to := io.Pipe()
		packed := make(chan error, 1)
		go func() { packed <- pack(to, dir, tree) }()
		err := e.api.CopyToContainer(ctx, name, dir, from, container.CopyToContainerOptions{})
		from.Close()
		if broken = <-packed; broken == nil || errors.Is(broken, io.ErrClosedPipe) {
			broken = nil
			return err
		}
		return nil
	})
	return about(cmp.Or(broken, missing(err)), "cannot copy into %q of box %q", dir, name)
}

// pack writes a tree as a tar that engines take, and ends when the tree does.
func pack(to *io.PipeWriter, dir string, tree func(io.Writer) error) error {
	from, in := io.Pipe()
	var writing sync.WaitGroup
	writing.Go(func() { in.CloseWithError(tree(in)) })
	err := unpackable(to, dir, from)
	from.Close()
	to.CloseWithError(err)
	writing.Wait()
	return err
}

// maxPath is the longest path that the kernel takes, in bytes.
const maxPath = 4095

// unpackable passes a tar on as engines take it. They refuse all of one in which a
// relative link leads out of dir, though none where an absolute one does, and all of
// one with a path that is too long: nobody in the box could name that.
func unpackable(to io.Writer, dir string, from io.Reader) error {
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out.Close()
		case err != nil:
			return err
		case len(path.Join(dir, h.Name)) > maxPath:
			continue
		}
		target := path.Join(dir, path.Dir(h.Name), h.Linkname)
		if h.Typeflag == tar.TypeSymlink && !path.IsAbs(h.Linkname) && !strings.HasPrefix(target, dir) {
			h.Linkname = target
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// Attach joins a terminal with a box that was made with Term, starts the box
// unless it runs, and returns its exit code once it has ended.
func (e *Engine) Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error) {
	defer func() { err = about(err, "cannot attach to box %q", name) }()
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return 0, err
	}
	all := container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true}
	stream, err := e.attach(ctx, box.ID, all)
	if err != nil {
		return 0, err
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

// attach opens a stream to a box, on which nothing has passed yet. The client waits for the
// engine's answer without end, whatever becomes of ctx, so it is left to wait alone.
func (e *conn) attach(ctx context.Context, id string, o container.AttachOptions) (stream types.HijackedResponse, err error) {
	err = e.do(ctx, short, func(ctx context.Context) error {
		opened := make(chan error, 1)
		var late types.HijackedResponse
		go func() {
			var err error
			if late, err = e.api.ContainerAttach(ctx, id, o); err != nil && !transient(err) {
				err = fmt.Errorf("%w: %w", errDoubtful, err)
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			stream = late
			return err
		case <-ctx.Done():
			go func() {
				if <-opened == nil {
					late.Close()
				}
			}()
			return ctx.Err()
		}
	})
	return stream, missing(err)
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
// written cannot be written twice, so only the way there is opened again.
func (e *Engine) Feed(ctx context.Context, name string, data []byte) (err error) {
	defer func() { err = about(err, "cannot write to box %q", name) }()
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return err
	}
	if !box.State.Running {
		return errors.New("it does not run") // an engine takes what is written to one that does not, and drops it
	}
	stream, err := e.attach(ctx, box.ID, container.AttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	return e.once(ctx, short, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stream.Close)()
		if _, err := stream.Conn.Write(data); err != nil {
			return fmt.Errorf("the connection broke: %w", err)
		}
		return stream.CloseWrite()
	})
}
