package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

const (
	maxStdin = 10 << 20 // bytes of a command's standard input
	maxShown = 16 << 10 // bytes of its output in the reply

	// How long output is awaited from programs that a command left behind.
	leftoverWait = 2 * time.Second

	// A background command that lives so long has started the system.
	backgroundAlive = time.Second

	exitTimeout = 124
)

var errStdin = fmt.Errorf("standard input is larger than %d bytes", maxStdin)

// runCommand carries out POST /run/NAME.
func (s *server) runCommand(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	c, known := s.commands[name]
	if !known {
		s.unknown(w, name)
		return
	}
	limit := duration(c.TimeoutMS, defaultCommand)
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, fmt.Errorf("stopped after %v", limit))
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	if !take(ctx, c.turn) || !take(ctx, s.running) {
		refuse(w, http.StatusConflict, fmt.Sprintf("%s did not get its turn within %v", name, limit))
		return
	}
	defer func() { s.ran.Store(time.Now().UnixNano()); <-s.running; <-c.turn }()

	start := time.Now()
	s.log.note("%s starts", name)
	var reply helper.CommandReply
	if c.Background {
		reply = s.startBackground(ctx, c)
	} else {
		reply = s.foreground(ctx, c, w, r)
	}
	s.log.note("%s ended with exit code %d", name, reply.Exit)
	s.events.add(helper.Event{Event: EventCommand, Name: name, Exit: &reply.Exit, MS: since(start), Detail: reply.Error})
	write(w, http.StatusOK, reply)
}

// ended reports the end of a program that was meant to stay. A signal that comes
// with a declared command, such as one that kills the app, is the command's.
func (s *server) ended(name string, code int, ran time.Duration) {
	const hangup, interrupt, kill, terminate = 129, 130, 137, 143
	signalled := slices.Contains([]int{hangup, interrupt, kill, terminate}, code)
	asked := signalled && (len(s.running) > 0 || time.Since(time.Unix(0, s.ran.Load())) < stopGrace)
	s.log.note("%s ended with exit code %d", name, code)
	s.events.add(helper.Event{Event: EventExited, Name: name, Exit: &code, MS: ran.Milliseconds(), Asked: asked})
}

// take takes one of a channel's places; they are given back by receiving.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// foreground runs a command to its end.
func (s *server) foreground(ctx context.Context, c *declared, w http.ResponseWriter, r *http.Request) helper.CommandReply {
	cmd := shell(c.Command.Command, s.spec.Dir)
	cmd.WaitDelay = leftoverWait
	shown := &head{}
	if c.Shown {
		out := io.MultiWriter(s.log.pipe, shown)
		cmd.Stdout, cmd.Stderr = out, out
	} else {
		cmd.Stdout, cmd.Stderr = s.log.pipe, s.log.pipe
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	feed, err := feedStdin(cmd, w, r, cancel)
	if err != nil {
		return helper.CommandReply{Exit: 126, Error: fmt.Sprintf("cannot run %s: %v", c.Name, err)}
	}
	code, err := proc.Run(ctx, cmd, stopGrace)
	feed.end()

	output, cut := shown.text()
	reply := helper.CommandReply{Exit: code, Output: output, Truncated: cut}
	switch {
	case err == nil:
	case errors.Is(err, errStdin):
		reply.Exit, reply.Error = 2, err.Error()
	case code == -1:
		reply.Exit, reply.Error = 126, fmt.Sprintf("cannot run %s", c.Name)
	default:
		reply.Exit, reply.Error = exitTimeout, err.Error()
	}
	return reply
}

// feeder carries a request's body to a command's standard input while the
// command runs: one that does not read is not held up by a client whose own
// input never ends.
type feeder struct {
	into *http.ResponseController
	done chan struct{}
}

func feedStdin(cmd *exec.Cmd, w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc) (*feeder, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	f := &feeder{into: http.NewResponseController(w), done: make(chan struct{})}
	// Without this the server would read the rest of the body before it answers.
	if err := f.into.EnableFullDuplex(); err != nil {
		return nil, err
	}
	go func() {
		defer close(f.done)
		defer stdin.Close()
		_, err := io.Copy(stdin, http.MaxBytesReader(w, r.Body, maxStdin))
		var tooMuch *http.MaxBytesError
		if errors.As(err, &tooMuch) {
			cancel(errStdin)
		}
	}()
	return f, nil
}

// end returns once the feeder no longer reads the request.
func (f *feeder) end() {
	_ = f.into.SetReadDeadline(time.Now())
	<-f.done
}

// head keeps the beginning of an output.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
	cut bool
}

// Write takes all and keeps what still fits.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := min(len(b), maxShown-h.buf.Len())
	h.buf.Write(b[:room])
	h.cut = h.cut || room < len(b)
	return len(b), nil
}

func (h *head) text() (text string, cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(h.buf.String(), "\uFFFD"), h.cut
}
