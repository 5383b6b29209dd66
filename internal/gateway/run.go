package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"abl/internal/redact"
)

// ErrNoSetup is how a gateway ends that nobody told what to do.
var ErrNoSetup = errors.New("no setup line on standard input")

const (
	patience    = 10 * time.Second // for the setup line
	farewell    = 2 * time.Second  // for the last requests to write their lines
	headerTime  = 10 * time.Second // for a client to send its headers
	idleTime    = 5 * time.Minute  // a client's connection may wait for its next request
	maxHeader   = 64 << 10
	longestLine = 4 << 20 // on standard input: certificates are in it
)

// Process is one gateway from its first line to its last.
type Process struct {
	In       io.Reader     // the setup, then commands; its end is no command
	Out      io.Writer     // the log
	Patience time.Duration // for the setup line; 0 is 10 s
	Dialer   Dialer        // zero outside of tests
}

// Command is a later line on standard input.
type Command struct {
	Budget *Budget `json:"budget"` // new bounds for the call
}

// Run serves until the call's deadline has come or ctx ends; neither is an error.
func (p Process) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input := make(chan []byte)
	go lines(p.In, input)
	setup, err := p.await(ctx, input)
	if err != nil {
		return err
	}
	s, err := p.begin(ctx, setup)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", setup.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %v", err)
	}
	return s.serve(ctx, l, input)
}

// lines reads standard input until it ends. Instead of a line that is too long it gives
// an empty one.
func lines(in io.Reader, to chan<- []byte) {
	defer close(to)
	all := bufio.NewReaderSize(in, longestLine)
	for {
		line, err := all.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) {
			long = true
			_, err = all.ReadSlice('\n')
		}
		if long {
			to <- nil
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			to <- bytes.Clone(line)
		}
		if err != nil {
			return
		}
	}
}

// await reads the setup line.
func (p Process) await(ctx context.Context, input <-chan []byte) (setup Setup, err error) {
	select {
	case line, open := <-input:
		if !open {
			return setup, fmt.Errorf("cannot begin: %w", ErrNoSetup)
		}
		if err := decode(line, &setup); err != nil {
			return setup, fmt.Errorf("cannot read the setup line: %v", err)
		}
		return setup, nil
	case <-time.After(cmp.Or(p.Patience, patience)):
	case <-ctx.Done():
	}
	return setup, fmt.Errorf("cannot begin: %w in time", ErrNoSetup)
}

// decode reads one line strictly. What is wrong with it is told without its words,
// for they may be a key.
func decode(line []byte, to any) error {
	if len(line) == 0 {
		return fmt.Errorf("it is longer than %d bytes", longestLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("it is not the JSON that this gateway knows, from about byte %d on", d.InputOffset())
}

// begin checks the setup and makes a server of it.
func (p Process) begin(ctx context.Context, setup Setup) (*server, error) {
	setup.Limits = setup.Limits.filled()
	p.Dialer.Not = setup.Inside
	s := &server{setup: setup, limits: setup.Limits, dialer: p.Dialer, fatal: make(chan error, 1), budget: &budget{caps: setup.Call.Budget}}
	err := setup.canPrice(setup.Call.Budget)
	if err == nil {
		s.rules, err = setup.rules()
	}
	if err == nil {
		s.transport, err = setup.transport()
	}
	if err != nil {
		return nil, err
	}
	secrets := []string{string(setup.Call.Token)}
	for _, one := range setup.Providers {
		secrets = append(secrets, string(one.Key))
	}
	hidden, _ := redact.New(secrets...)
	s.journal = &journal{out: p.Out, now: time.Now, secrets: hidden, failed: func(err error) {
		select {
		case s.fatal <- fmt.Errorf("cannot write the log: %v", err):
		default: // the first failure says it
		}
	}}
	s.slots, s.tunnels = make(chan struct{}, s.limits.Concurrent), make(chan struct{}, s.limits.Tunnels)
	s.ctx, s.end = context.WithCancel(ctx)
	return s, nil
}

// serve answers until the end, and says why it came.
func (s *server) serve(ctx context.Context, l net.Listener, input <-chan []byte) error {
	limited := &listener{Listener: l, most: s.limits.Connections, refuse: s.unreadable}
	only := new(http.Protocols)
	only.SetHTTP1(true)
	web := &http.Server{
		Handler: s, Protocols: only, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(s.journal, "", 0), ConnContext: withConn,
	}
	go func() {
		if err := web.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.fatal <- fmt.Errorf("cannot go on serving: %v", err)
		}
	}()
	s.tell(Entry{Kind: Ready, Listen: l.Addr().String()})
	reason, err := s.obey(ctx, input)
	s.end()
	s.leave(ctx, web)
	s.tell(Entry{Kind: Ended, Reason: reason})
	return err
}

// tell writes a line of the call.
func (s *server) tell(e Entry) {
	e.Call = s.setup.Call.ID
	s.journal.write(e)
}

// leave lets the requests under way write their lines. Those that were taken over
// from the web server are none that it waits for.
func (s *server) leave(ctx context.Context, web *http.Server) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	defer web.Close()
	_ = web.Shutdown(late)
	written := make(chan struct{})
	go func() { s.busy.Wait(); close(written) }()
	select {
	case <-written:
	case <-late.Done():
	}
}

// unreadable writes the line of a request that net/http could not read.
func (s *server) unreadable(words string) {
	status := http.StatusBadRequest
	fmt.Sscan(words, &status)
	s.tell(Entry{Kind: Requested, Reason: "it is no HTTP request: " + words, Req: &Request{Status: status, Refused: true}})
}

// obey carries commands out until one of them, or something else, is the end.
func (s *server) obey(ctx context.Context, input <-chan []byte) (reason string, err error) {
	deadline := time.After(time.Until(time.Unix(s.setup.Call.Deadline, 0)))
	for {
		select {
		case <-ctx.Done():
			return "told by a signal", nil
		case <-deadline:
			return "the call's deadline", nil
		case err := <-s.fatal:
			return err.Error(), err
		case line, open := <-input:
			if !open {
				input = nil // whoever attached may come back
			} else if err := s.command(line); err != nil {
				s.journal.note("cannot carry out a command: " + err.Error())
			} else {
				s.tell(Entry{Kind: Obeyed, Reason: "budget"})
			}
		}
	}
}

// command carries out a line of standard input.
func (s *server) command(line []byte) error {
	var c Command
	if err := decode(line, &c); err != nil {
		return err
	}
	if c.Budget == nil {
		return errors.New("it is no command")
	}
	if err := s.setup.canPrice(*c.Budget); err != nil {
		return err
	}
	s.budget.set(*c.Budget)
	return nil
}
