package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

const (
	maxStdin = 10 << 20 // bytes of a command's standard input
	maxShown = 16 << 10 // bytes of its output in the reply

	// leftoverWait is the wait for the output of programs that a command left running.
	leftoverWait = 2 * time.Second

	exitTimeout = 124
	exitNotRun  = 126
)

var errStdin = fmt.Errorf("standard input is larger than %d bytes", maxStdin)

// runCommand handles POST /run/NAME.
func (s *server) runCommand(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	c, known := s.commands[name]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(s.commands)), ", ")
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no command %q; the declared commands are: %s", name, names))
		return
	}
	limit := milliseconds(c.TimeoutMS)
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, fmt.Errorf("stopped after %v", limit))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		refuse(w, http.StatusConflict, fmt.Sprintf("%s did not start within %v, because it was already running", name, limit))
		return
	}
	s.running.Add(1)
	defer func() { s.ran.Store(time.Now().UnixNano()); s.running.Add(-1); <-c.turn }()

	start := time.Now()
	s.log.note("%s starts", name)
	var reply helper.CommandReply
	if c.Background {
		reply = c.background(ctx)
	} else {
		reply = c.foreground(ctx, w, r)
	}
	s.log.note("%s ended with exit code %d", name, reply.Exit)
	s.events.add(helper.Event{Event: EventCommand, Name: name, Exit: &reply.Exit, MS: since(start), Detail: reply.Error})
	write(w, http.StatusOK, reply)
}

// foreground runs a command to its end.
func (p *program) foreground(ctx context.Context, w http.ResponseWriter, r *http.Request) helper.CommandReply {
	cmd := p.shell()
	shown := &proc.Head{Max: maxShown}
	if p.Shown {
		out := io.MultiWriter(p.log.pipe, shown)
		cmd.Stdout, cmd.Stderr = out, out
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	code, err := attend(ctx, cmd, stopGrace, func(stdin io.WriteCloser) { feed(stdin, w, r.Body, cancel) })
	reply := helper.CommandReply{Exit: code, Output: strings.ToValidUTF8(shown.Kept.String(), "\uFFFD"),
		Truncated: shown.Cut}
	switch {
	case err == nil:
	case errors.Is(err, errStdin):
		reply.Exit, reply.Error = 2, err.Error()
	case code == -1:
		reply.Exit, reply.Error = exitNotRun, "cannot run "+p.Name
	default:
		reply.Exit, reply.Error = exitTimeout, err.Error()
	}
	return reply
}

// attend runs a program until it ends or ctx is done. begin starts to write its standard input.
func attend(ctx context.Context, cmd *exec.Cmd, grace time.Duration, begin func(io.WriteCloser)) (code int, err error) {
	cmd.WaitDelay = leftoverWait
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return -1, err
	}
	begin(stdin)
	return proc.Run(ctx, cmd, grace)
}

// feed starts to copy the body of a request to the standard input of a command, which the command need
// not read. If the client disconnects, the command ends.
func feed(stdin io.WriteCloser, w http.ResponseWriter, body io.Reader, cancel context.CancelCauseFunc) {
	const ahead = 1024
	chunks := make(chan []byte, ahead)
	go func() {
		defer close(chunks)
		body, buf := http.MaxBytesReader(w, io.NopCloser(body), maxStdin), make([]byte, 32<<10)
		for {
			n, err := body.Read(buf)
			chunks <- bytes.Clone(buf[:n])
			if tooMuch := (*http.MaxBytesError)(nil); errors.As(err, &tooMuch) {
				err = errStdin
			}
			if err != nil && !errors.Is(err, io.EOF) {
				cancel(err)
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		for data := range chunks {
			_, _ = stdin.Write(data)
		}
		stdin.Close()
	}()
}
