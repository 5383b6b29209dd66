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

// Logs returns the last most bytes of a container's standard output and error. It does not follow,
// because an engine may end a followed log before the last lines.
func (e *Engine) Logs(ctx context.Context, name string, most int64) (text []byte, err error) {
	defer func() { err = about(missing(err), "cannot read the log of container %q", name) }()
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return nil, err
	}
	err = e.do(ctx, long, func(ctx context.Context) error {
		from, err := e.api.ContainerLogs(ctx, inspected.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
		if err != nil {
			return err
		}
		defer from.Close()
		var all bytes.Buffer // limited by the log options of the profile
		if inspected.Config.Tty {
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

// headTime limits one request for the first line. Head then sends the next one.
const headTime = 5 * time.Second

// Head waits for the first line of a started container's standard output and returns it with its
// newline. If the container ends before, or the line is longer than max bytes, it returns the bytes
// so far.
func (e *Engine) Head(ctx context.Context, name string, max int64) (line []byte, err error) {
	defer func() { err = about(missing(err), "cannot read the first line of container %q", name) }()
	for follow, left := true, tries-1; ; left-- {
		line, err := e.headOnce(ctx, name, max, follow)
		if err == nil && (!follow || bytes.HasSuffix(line, []byte("\n")) || int64(len(line)) >= max) {
			return line, nil
		}
		if err != nil && !errors.Is(err, sandbox.ErrUnreachable) && (!doubtful(err) || left <= 0) {
			return nil, err
		}
		// The stream ended, possibly before the last output, or broke.
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

// headOnce reads until the line is complete or the stream ends.
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

// CopyIn unpacks the tar archive that tree writes into a directory of a container. If the
// container's root is read-only, the directory must be in a writable volume. CopyIn calls tree once
// per attempt. A later attempt overwrites the files of an earlier one.
func (e *Engine) CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error {
	var broken error // of tree, not of the engine
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
	return about(cmp.Or(broken, missing(err)), "cannot copy to %q in container %q", dir, name)
}

// pack writes the archive of tree in a form that engines accept, and waits for tree.
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

// maxPath is the maximum path length of the kernel in bytes.
const maxPath = 4095

// unpackable copies an archive in a form that engines accept. Engines reject an archive if a
// relative link leads out of dir, but accept absolute links, so it converts such links. They also
// reject too long paths, so it drops those: no program could open them.
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

// Attach connects a terminal to a container with Term, starts the container unless it runs, and
// returns its exit code after it has ended.
func (e *Engine) Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error) {
	defer func() { err = about(err, "cannot attach to container %q", name) }()
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return 0, err
	}
	all := container.AttachOptions{
		Stream: true,
		Stdin:  true,
		Stdout: true,
		Stderr: true,
	}
	stream, err := e.attach(ctx, inspected.ID, all)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Close)()
	if err := e.Start(ctx, inspected.ID); err != nil {
		return 0, err
	}
	if err := e.talk(ctx, inspected.ID, term, stream); err != nil {
		return 0, err
	}
	end, err := e.Wait(ctx, inspected.ID)
	return end.Code, err
}

// attach opens a stream to a container. The client waits for the response without regard to ctx, so
// attach abandons it when ctx is done.
func (e *conn) attach(ctx context.Context, id string,
	o container.AttachOptions) (stream types.HijackedResponse, err error) {
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

// talk copies data in both directions until the container closes its side.
func (e *conn) talk(ctx context.Context, id string, term sandbox.Terminal, stream types.HijackedResponse) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go e.followSize(ctx, id, term)
	// Do not close the stream at the end of In: with a terminal the engine would close the
	// output, too, before the last bytes.
	go io.Copy(stream.Conn, term.In) //nolint:errcheck // the container has ended
	if _, err := io.Copy(term.Out, stream.Reader); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	return ctx.Err()
}

// followSize sends the size of the terminal to the container. It ignores errors, which only affect
// the layout.
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

// Feed writes to the standard input of a running container with Stdin and leaves it open. The
// engine does not store the data, unlike an environment variable or an argument, which every
// inspect shows. Feed repeats only the connection, not the write.
func (e *Engine) Feed(ctx context.Context, name string, data []byte) (err error) {
	defer func() { err = about(err, "cannot write to container %q", name) }()
	inspected, err := e.inspectContainer(ctx, name)
	if err != nil {
		return err
	}
	if !inspected.State.Running {
		return errors.New("it is not running") // the engine would drop the data
	}
	stream, err := e.attach(ctx, inspected.ID, container.AttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	return e.once(ctx, short, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stream.Close)()
		_, err := stream.Conn.Write(data)
		if err == nil {
			err = stream.CloseWrite()
		}
		if err == nil { // until the engine has read the data: closing a connection over SSH loses the rest
			_, err = io.Copy(io.Discard, stream.Reader)
		}
		if err != nil {
			return fmt.Errorf("the connection broke: %w", err)
		}
		return nil
	})
}
