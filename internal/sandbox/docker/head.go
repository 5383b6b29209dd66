package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"abl/internal/sandbox"
)

// Head returns the first line that a started box prints on its standard output,
// as soon as it is there, with its newline. A box that ends before that, and a
// line longer than max bytes, give what there is, without one.
func (e *Engine) Head(ctx context.Context, name string, max int64) (line []byte, err error) {
	defer func() { err = about(missing(err), "cannot read what box %q said first", name) }()
	for follow := true; ; {
		line, err := e.headOnce(ctx, name, max, follow)
		if err == nil && (!follow || isWhole(line) || int64(len(line)) >= max) {
			return line, nil
		}
		if err != nil && !errors.Is(err, sandbox.ErrUnreachable) {
			return nil, err
		}
		// The stream ended, as it may before the last words of a box, or broke.
		_, over, err := e.end(ctx, name)
		if err != nil {
			return nil, err
		}
		follow = !over
		if err := sleep(ctx, e.pause); err != nil {
			return nil, err
		}
	}
}

// headTime bounds one request for the first line: the next one is not late for it.
const headTime = 5 * time.Second

func isWhole(line []byte) bool { return bytes.HasSuffix(line, []byte("\n")) }

// headOnce reads until the line is whole or the stream is over.
func (e *Engine) headOnce(ctx context.Context, name string, max int64, follow bool) ([]byte, error) {
	h := &head{max: max}
	err := e.once(ctx, headTime, func(ctx context.Context) error {
		from, err := e.api.ContainerLogs(ctx, name, container.LogsOptions{ShowStdout: true, Follow: follow})
		if err != nil {
			return err
		}
		_, err = stdcopy.StdCopy(h, io.Discard, from)
		if errors.Is(err, errWhole) {
			err = nil
		}
		return errors.Join(err, from.Close())
	})
	return h.line, err
}

// errWhole ends a copy that has what it wants.
var errWhole = errors.New("the line is whole")

// head keeps what is written to it until a newline or max bytes.
type head struct {
	max  int64
	line []byte
}

func (h *head) Write(p []byte) (int, error) {
	text, _, whole := bytes.Cut(p, []byte("\n"))
	if whole {
		text = p[:len(text)+1]
	}
	if room := h.max - int64(len(h.line)); int64(len(text)) > room {
		text, whole = text[:room], true
	}
	h.line = append(h.line, text...)
	if whole {
		return 0, errWhole
	}
	return len(p), nil
}
