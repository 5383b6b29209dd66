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

// ErrNoSetup means that the setup line did not arrive.
var ErrNoSetup = errors.New("no setup line on standard input")

var errDeadline = errors.New("the call's deadline")

const (
	patience    = 10 * time.Second // for the setup line
	farewell    = 2 * time.Second  // for the last requests to write their lines
	headerTime  = 10 * time.Second // for a client to send its headers
	idleTime    = 5 * time.Minute  // a client's connection may wait for its next request
	maxHeader   = 64 << 10
	longestLine = 4 << 20 // of standard input, with certificates; a longer line ends the input
)

// Process runs one gateway.
type Process struct {
	In     io.Reader // the setup line, then commands; its end does not end the gateway
	Out    io.Writer // the log
	Dialer Dialer    // zero outside of tests
}

// Command is a later line on standard input.
type Command struct {
	Budget *Budget `json:"budget,omitempty"` // new bounds for the call
	Key    Secret  `json:"key,omitempty"`    // a new key of every provider, before the old one expires
}

// Run serves requests until the deadline of the call, or until ctx is done. Neither is an error.
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

// decode reads a line and refuses unknown fields. Errors do not quote the line, which may contain a
// key.
func decode(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil || d.More() {
		return fmt.Errorf("want JSON with the fields of this gateway; the error is near byte %d", d.InputOffset())
	}
	return nil
}

// begin checks the setup and returns a server.
func (p Process) begin(ctx context.Context, setup Setup) (*server, error) {
	p.Dialer.Not = setup.Inside
	s := &server{
		Setup:     setup,
		providers: map[string]*provider{},
		dialer:    p.Dialer,
		budget:    newBudget(setup.Call.Budget),
		slots:     make(chan struct{}, setup.Limits.Concurrent),
		tunnels:   make(chan struct{}, setup.Limits.Tunnels),
	}
	s.secrets = append(setup.Proxies.secrets(), string(setup.Call.Token))
	for _, one := range setup.Providers {
		p, err := newProvider(one)
		if err != nil {
			return nil, err
		}
		s.providers[one.Name] = p
		s.secrets = append(s.secrets, p.secrets()...)
	}
	var err error
	if s.dialer.proxy, err = setup.Proxies.Of(); err != nil {
		return nil, err
	}
	transport, err := setup.transport(s.dialer.proxy)
	if err != nil {
		return nil, err
	}
	s.transport = transport
	s.dialer.Roots = transport.TLSClientConfig.RootCAs
	s.ctx, s.end = context.WithCancelCause(ctx)
	s.journal = &journal{out: p.Out, sum: s.budget.total, fatal: s.end, idle: map[string]int{}}
	s.journal.hide(s.secrets)
	return s, nil
}

// serve handles requests until the end, and returns its reason.
func (s *server) serve(ctx context.Context, l net.Listener, input <-chan []byte) error {
	web := &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            headerTime,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               maxHeader,
		WriteTimeout:                 span(s.Limits.ReadMS + s.Limits.RequestMS + s.Limits.WriteMS),
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(s.journal, "", 0),
		ConnState:                    Bounded(s.Limits.Connections),
	}
	go func() {
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.end(fmt.Errorf("cannot serve any longer: %v", err))
		}
	}()
	s.log(Entry{Kind: Ready, Listen: l.Addr().String()})
	go func() {
		for line := range input { // if it ends, abl may attach again
			s.command(line)
		}
	}()
	defer time.AfterFunc(time.Until(time.Unix(s.Call.Deadline, 0)), func() { s.end(errDeadline) }).Stop()
	<-s.ctx.Done()
	err := context.Cause(s.ctx)
	reason := err.Error()
	switch {
	case ctx.Err() != nil:
		reason, err = "ended by a signal", nil
	case errors.Is(err, errDeadline):
		err = nil
	}
	s.shutdown(ctx, web)
	s.log(Entry{Kind: Ended, Reason: reason})
	return err
}

// Bounded lets so many connections be open at once, as the ConnState of a server: a client
// beyond that is closed. A hijacked connection does not count.
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

// log writes a line of the call.
func (s *server) log(e Entry) {
	e.Call = s.Call.ID
	s.journal.write(e)
}

// shutdown lets the current requests write their lines. The web server does not wait for hijacked
// connections, so busy counts them.
func (s *server) shutdown(ctx context.Context, web *http.Server) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	defer web.Close()
	_ = web.Shutdown(late)
	go func() { s.busy.Wait(); cancel() }()
	<-late.Done()
}

// command executes a line of standard input.
func (s *server) command(line []byte) {
	s.busy.Add(1)
	defer s.busy.Done()
	var c Command
	err := decode(line, &c)
	switch {
	case err == nil && c.Budget == nil && c.Key == "":
		err = errors.New("it has neither a budget nor a key")
	case err == nil && !c.Key.fits():
		err = errors.New("the key has a line break, or a leading or trailing space")
	}
	if err != nil {
		s.journal.note("cannot execute a command: " + err.Error())
		return
	}
	if c.Budget != nil {
		s.budget.set(*c.Budget)
		s.log(Entry{Kind: Obeyed, Reason: "budget"})
	}
	if c.Key != "" {
		s.renew(c.Key)
		s.log(Entry{Kind: Obeyed, Reason: "key"})
	}
}

// renew makes the providers use a new key. The journal hides the key before any line can contain it.
func (s *server) renew(key Secret) {
	s.secrets = append(s.secrets, string(key))
	s.journal.hide(s.secrets)
	for _, p := range s.providers {
		p.setKey(key)
	}
	s.useless.Store(nil) // the old key may have been refused
}
