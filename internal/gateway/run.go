package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// ErrNoSetup is how a gateway ends that nobody told what to do.
var ErrNoSetup = errors.New("no setup line on standard input")

var errDeadline = errors.New("the call's deadline")

const (
	patience    = 10 * time.Second // for the setup line
	farewell    = 2 * time.Second  // for the last requests to write their lines
	headerTime  = 10 * time.Second // for a client to send its headers
	idleTime    = 5 * time.Minute  // a client's connection may wait for its next request
	maxHeader   = 64 << 10
	longestLine = 4 << 20 // on standard input, which ends with a longer one: certificates are in it
)

// Process is one gateway from its first line to its last.
type Process struct {
	In     io.Reader // the setup, then commands; its end is no command
	Out    io.Writer // the log
	Dialer Dialer    // zero outside of tests
}

// Command is a later line on standard input.
type Command struct {
	Budget *Budget `json:"budget,omitempty"` // new bounds for the call
	Key    Secret  `json:"key,omitempty"`    // a new key of every provider, before the old one expires
}

// Run serves until the call's deadline has come or ctx ends; neither is an error.
func (p Process) Run(ctx context.Context) error {
	input := make(chan []byte)
	go func() {
		defer close(input)
		lines := bufio.NewScanner(p.In)
		lines.Buffer(nil, longestLine)
		for lines.Scan() {
			input <- bytes.Clone(lines.Bytes())
		}
	}()
	setup, line := Setup{Limits: defaults}, []byte(nil)
	select {
	case line = <-input:
	case <-time.After(patience):
	case <-ctx.Done():
	}
	if line == nil {
		return fmt.Errorf("cannot begin: %w", ErrNoSetup)
	}
	if err := decode(line, &setup); err != nil {
		return fmt.Errorf("cannot read the setup line: %v", err)
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

// decode reads one line strictly. What is wrong with it is told without its words,
// for they may be a key.
func decode(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil || d.More() {
		return fmt.Errorf("it is not the JSON that this gateway knows, from about byte %d on", d.InputOffset())
	}
	return nil
}

// begin checks the setup and makes a server of it.
func (p Process) begin(ctx context.Context, setup Setup) (*server, error) {
	p.Dialer.Not = setup.Inside
	s := &server{
		Setup: setup, providers: map[string]*provider{}, dialer: p.Dialer, budget: newBudget(setup.Call.Budget),
		slots: make(chan struct{}, setup.Limits.Concurrent), tunnels: make(chan struct{}, setup.Limits.Tunnels),
	}
	s.secrets = append(setup.Proxies.hidden(), string(setup.Call.Token))
	for _, one := range setup.Providers {
		p, err := newProvider(one)
		if err != nil {
			return nil, err
		}
		s.providers[one.Name] = p
		s.secrets = append(s.secrets, p.secrets()...)
	}
	transport, err := setup.transport()
	if err != nil {
		return nil, err
	}
	s.transport = transport
	s.dialer.Roots = transport.TLSClientConfig.RootCAs
	if s.dialer.proxy, err = setup.Proxies.Of(); err != nil {
		return nil, err
	}
	s.ctx, s.end = context.WithCancelCause(ctx)
	s.journal = &journal{out: p.Out, sum: s.budget.total, fatal: s.end, idle: map[string]int{}}
	s.journal.hide(s.secrets)
	return s, nil
}

// serve answers until the end, and says why it came.
func (s *server) serve(ctx context.Context, l net.Listener, input <-chan []byte) error {
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		WriteTimeout:                 span(s.Limits.ReadMS + s.Limits.RequestMS + s.Limits.WriteMS),
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(s.journal, "", 0), ConnState: Bounded(s.Limits.Connections),
	}
	go func() {
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.end(fmt.Errorf("cannot go on serving: %v", err))
		}
	}()
	s.tell(Entry{Kind: Ready, Listen: l.Addr().String()})
	go func() {
		for line := range input { // whose end means nothing: whoever attached may come back
			s.command(line)
		}
	}()
	defer time.AfterFunc(time.Until(time.Unix(s.Call.Deadline, 0)), func() { s.end(errDeadline) }).Stop()
	<-s.ctx.Done()
	err := context.Cause(s.ctx)
	reason := err.Error()
	switch {
	case ctx.Err() != nil:
		reason, err = "told by a signal", nil
	case errors.Is(err, errDeadline):
		err = nil
	}
	s.leave(ctx, web)
	s.tell(Entry{Kind: Ended, Reason: reason})
	return err
}

// Bounded lets so many connections be open at once, as the ConnState of a server: a client
// beyond that sees its own closed. One that was taken over from the server no longer counts.
func Bounded(most int64) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > most {
				c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// tell writes a line of the call.
func (s *server) tell(e Entry) {
	e.Call = s.Call.ID
	s.journal.write(e)
}

// leave lets the requests under way write their lines. Those that were taken over
// from the web server are none that it waits for.
func (s *server) leave(ctx context.Context, web *http.Server) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	defer web.Close()
	_ = web.Shutdown(late)
	go func() { s.busy.Wait(); cancel() }()
	<-late.Done()
}

// command carries out a line of standard input.
func (s *server) command(line []byte) {
	s.busy.Add(1)
	defer s.busy.Done()
	var c Command
	err := decode(line, &c)
	switch {
	case err == nil && c.Budget == nil && c.Key == "":
		err = errors.New("it is no command")
	case err == nil && !c.Key.fits():
		err = errors.New("the key has a line break, or a space at an end")
	}
	if err != nil {
		s.journal.note("cannot carry out a command: " + err.Error())
		return
	}
	if c.Budget != nil {
		s.budget.set(*c.Budget)
		s.tell(Entry{Kind: Obeyed, Reason: "budget"})
	}
	if c.Key != "" {
		s.renew(c.Key)
		s.tell(Entry{Kind: Obeyed, Reason: "key"})
	}
}

// renew puts a new key into use. Nothing may be logged of it before the journal has it.
func (s *server) renew(key Secret) {
	s.secrets = append(s.secrets, string(key))
	s.journal.hide(s.secrets)
	for _, p := range s.providers {
		p.take(key)
	}
	s.useless.Store(nil) // the old key may have been refused
}
