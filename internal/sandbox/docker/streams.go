package docker

import (
	"context"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// Logs returns the last max bytes of what a box printed on both streams. It
// never follows: an engine ends a followed log before its last lines.
func (e *Engine) Logs(ctx context.Context, name string, max int64) ([]byte, error) {
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return nil, about(err, "cannot read the log of box %q", name)
	}
	var last *tail
	err = e.do(ctx, long, func(ctx context.Context) error {
		last = &tail{max: max}
		return e.copyLog(ctx, last, box.ID, box.Config.Tty)
	})
	if err != nil {
		return nil, about(missing(err), "cannot read the log of box %q", name)
	}
	return last.bytes(), nil
}

func (e *conn) copyLog(ctx context.Context, to io.Writer, id string, tty bool) error {
	from, err := e.api.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return err
	}
	if tty {
		_, err = io.Copy(to, from)
	} else {
		_, err = stdcopy.StdCopy(to, to, from)
	}
	if cerr := from.Close(); err == nil {
		err = cerr
	}
	return err
}

// CopyIn unpacks a tar stream into a directory of a box. Where the box's root
// is read-only, the directory has to be in a writable volume. The stream cannot
// be read twice, so the call is not repeated.
func (e *Engine) CopyIn(ctx context.Context, name, dir string, tar io.Reader) error {
	err := e.once(ctx, copyTime, func(ctx context.Context) error {
		return e.api.CopyToContainer(ctx, name, dir, tar, container.CopyToContainerOptions{})
	})
	return about(missing(err), "cannot copy into %q of box %q", dir, name)
}

// tail keeps the last max bytes written to it.
type tail struct {
	max int64
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if int64(len(t.buf)) > 2*t.max { // moving seldom keeps the cost of a byte constant
		t.buf = append(t.buf[:0], t.bytes()...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte {
	return t.buf[max(0, int64(len(t.buf))-t.max):]
}
