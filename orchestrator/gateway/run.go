package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"abl/internal/redact"
	"abl/orchestrator/gateway/filter"
	"abl/orchestrator/gateway/tunnel"
)

// ErrNoSetup is how a gateway ends that nobody told what to do.
var ErrNoSetup = errors.New("no setup line on standard input")

const (
	patience   = 10 * time.Second // for the setup line
	farewell   = 2 * time.Second  // for the last requests to write their lines
	headerTime = 10 * time.Second // for a client to send its headers
	idleTime   = 5 * time.Minute  // a client's connection may wait for its next request
	maxHeader  = 64 << 10
)

// Process is one gateway from its first line to its last.
type Process struct {
	In       io.Reader     // the setup, then commands; its end is no command
	Out      io.Writer     // the log
	Patience time.Duration // for the setup line; 0 is 10 s
	Dialer   tunnel.Dialer // zero outside of tests
}

// running is a gateway that has its setup.
type running struct {
	*server
	ctx       context.Context
	secrets   []string // the providers' keys
	providers map[string]*filter.Provider
	connect   map[string]bool
	deadline  *time.Timer
	fatal     chan error
}

// Run serves until it is told to stop, the call's deadline has come or ctx ends;
// none of these is an error.
func (p Process) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input := make(chan []byte)
	go lines(p.In, input)
	setup, err := p.await(ctx, input)
	if err != nil {
		return err
	}
	g, err := p.begin(ctx, setup)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", setup.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %v", err)
	}
	return g.serve(l, input)
}

// await reads the setup line. An input that ends before it may be followed by
// another attachment for as long as the gateway has patience.
func (p Process) await(ctx context.Context, input <-chan []byte) (setup Setup, err error) {
	limit := p.Patience
	if limit == 0 {
		limit = patience
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case line, open := <-input:
			if !open {
				input = nil
				continue
			}
			if err := decode(line, &setup); err != nil {
				return setup, fmt.Errorf("cannot read the setup line: %v", err)
			}
			return setup, nil
		case <-late.C:
			return setup, fmt.Errorf("cannot begin: %w within %s", ErrNoSetup, limit)
		case <-ctx.Done():
			return setup, fmt.Errorf("cannot begin: %w", ErrNoSetup)
		}
	}
}

// begin checks the setup and makes a gateway of it.
func (p Process) begin(ctx context.Context, setup Setup) (*running, error) {
	providers, err := setup.providers()
	if err != nil {
		return nil, err
	}
	connect, err := setup.tunnels()
	if err != nil {
		return nil, err
	}
	dialer := p.Dialer
	if dialer.Not, err = setup.inside(); err != nil {
		return nil, err
	}
	limits := setup.Limits.filled()
	transport, err := setup.transport(limits)
	if err != nil {
		return nil, err
	}
	g := &running{ctx: ctx, providers: providers, connect: connect, fatal: make(chan error, 1)}
	g.secrets = setup.secrets()
	j := &journal{out: p.Out, now: time.Now, failed: func(err error) {
		select {
		case g.fatal <- fmt.Errorf("cannot write the log: %v", err):
		default: // the first failure says it
		}
	}}
	g.server = &server{
		limits: limits, prices: setup.prices(), journal: j, transport: transport, dialer: dialer,
		slots: make(chan struct{}, limits.Concurrent), tunnels: make(chan struct{}, limits.Tunnels),
	}
	return g, g.turn(setup.Call)
}

// turn gives the gateway to a call and takes it from the one before. The call that
// is on already keeps what it has, but for its budget.
func (g *running) turn(to Call) error {
	if err := g.canPrice(to.Budget); err != nil {
		return err
	}
	if old := g.now.Load(); old != nil && old.ID == to.ID && old.Token == to.Token && old.Deadline == to.Deadline {
		old.budget.set(to.Budget)
		return nil
	}
	rules, err := to.rules(g.providers, g.connect, g.limits.Body)
	if err != nil {
		return err
	}
	c := &call{Call: to, rules: rules, budget: &budget{caps: to.Budget}}
	c.ctx, c.end = context.WithCancel(g.ctx)
	secrets, _ := redact.New(append([]string{string(to.Token)}, g.secrets...)...)
	g.journal.turn(secrets)
	left := time.Until(time.Unix(to.Deadline, 0))
	if g.deadline == nil {
		g.deadline = time.NewTimer(left)
	} else {
		g.deadline.Reset(left)
	}
	if old := g.now.Swap(c); old != nil {
		old.end()
	}
	return nil
}

// serve answers until the end, and says why it came.
func (g *running) serve(l net.Listener, input <-chan []byte) error {
	limited := &listener{Listener: l, most: int64(g.limits.Connections), refuse: g.unreadable}
	only := new(http.Protocols)
	only.SetHTTP1(true)
	web := &http.Server{
		Handler: g.server, Protocols: only, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(g.journal, "", 0), ConnContext: withConn,
	}
	go func() {
		if err := web.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			g.fatal <- fmt.Errorf("cannot go on serving: %v", err)
		}
	}()
	g.journal.write(Entry{Kind: Ready, Call: g.now.Load().ID, Listen: l.Addr().String()})
	reason, err := g.obey(input)
	g.now.Load().end()
	g.leave(web)
	g.journal.write(Entry{Kind: Ended, Call: g.now.Load().ID, Reason: reason})
	return err
}

// leave lets the requests under way write their lines. Those that were taken over
// from the web server are none that it waits for.
func (g *running) leave(web *http.Server) {
	late, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), farewell)
	defer cancel()
	if web.Shutdown(late) != nil {
		web.Close()
	}
	written := make(chan struct{})
	go func() { g.busy.Wait(); close(written) }()
	select {
	case <-written:
	case <-late.Done():
	}
}

// unreadable writes the line of a request that net/http could not read.
func (g *running) unreadable(words string) {
	status := http.StatusBadRequest
	fmt.Sscan(words, &status)
	g.journal.write(Entry{Kind: Requested, Call: g.now.Load().ID, Reason: "it is no HTTP request: " + words,
		Req: &Request{Status: status, Refused: true}})
}

// obey carries commands out until one of them, or something else, is the end.
func (g *running) obey(input <-chan []byte) (reason string, err error) {
	for {
		select {
		case <-g.ctx.Done():
			return "told by a signal", nil
		case <-g.deadline.C:
			return "the call's deadline", nil
		case err := <-g.fatal:
			return err.Error(), err
		case line, open := <-input:
			if !open {
				input = nil
				continue
			}
			did, err := g.command(line)
			if err != nil {
				g.journal.note("cannot carry out a command: " + err.Error())
				continue
			}
			if did == "stop" {
				return "told to stop", nil
			}
			g.journal.write(Entry{Kind: Obeyed, Call: g.now.Load().ID, Reason: did})
		}
	}
}

// command carries one out and says what it was.
func (g *running) command(line []byte) (did string, err error) {
	var c Command
	if err := decode(line, &c); err != nil {
		return "", err
	}
	if did, err = c.what(); err != nil {
		return "", err
	}
	switch {
	case c.Call != nil:
		err = g.turn(*c.Call)
	case c.Budget != nil:
		if err = g.canPrice(*c.Budget); err == nil {
			g.now.Load().budget.set(*c.Budget)
		}
	}
	return did, err
}
