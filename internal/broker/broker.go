// Package broker runs in the container of the app. It starts the app, waits until it is ready, and
// runs declared commands by name for the Verifier. The Verifier gets their exit code, and their output
// only if the settings allow it.
package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

const (
	stopGrace       = 5 * time.Second
	headerTimeout   = 10 * time.Second
	maxHeader       = 16 << 10
	shutdownTimeout = stopGrace + 2*time.Second
)

// server is a running broker.
type server struct {
	spec   helper.BrokerSpec
	events *events
	log    *appLog
	ctx    context.Context // ends with the broker

	app      *program // nil without an app section, and for an app of kind command
	starting sync.Mutex

	up   chan struct{} // closed when the services of an app of kind command are ready
	home sync.RWMutex  // read-locked by the app's runs, locked to clear its home directory

	commands map[string]*program
	running  atomic.Int64 // number of running commands
	ran      atomic.Int64 // end of the latest command, in Unix nanoseconds
}

// Serve runs the broker until ctx is done or its deadline has passed, and then stops the app and all
// commands. If the app does not start or crashes, it writes an event. It fails only if the broker itself
// cannot work.
func Serve(ctx context.Context, spec helper.BrokerSpec) error {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(spec.Deadline, 0))
	defer cancel()
	eventLog, err := openForAbl(spec.Events)
	if err != nil {
		return err
	}
	defer eventLog.Close()
	output, err := openForAbl(spec.Log)
	if err != nil {
		return err
	}
	defer output.Close()
	log, err := keepLog(output, helper.LogMax)
	if err != nil {
		return err
	}
	defer log.close()
	s := &server{
		spec:     spec,
		events:   &events{file: eventLog},
		log:      log,
		ctx:      ctx,
		commands: map[string]*program{},
		up:       make(chan struct{}),
	}
	for _, c := range spec.Commands {
		s.commands[c.Name] = &program{server: s, Command: c, turn: make(chan struct{}, 1)}
	}
	if spec.App != nil && !spec.App.IsProgram() {
		s.app = &program{server: s, Command: helper.Command{Name: helper.AppAlias, Command: spec.App.Command}}
	}
	return s.serve()
}

// serve listens, starts the app, and stops everything at the end.
func (s *server) serve() error {
	start := time.Now()
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", fmt.Sprintf(":%d", s.spec.Port))
	if err != nil {
		return fmt.Errorf("cannot listen for commands: %w", err)
	}
	web := &http.Server{Handler: s.routes(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader}
	broken := make(chan error, 1)
	go func() { broken <- web.Serve(listener) }()
	s.events.add(helper.Event{Event: EventListening, MS: since(start)})

	var up sync.WaitGroup
	up.Go(func() {
		switch {
		case s.spec.App == nil || !s.servicesUp():
		case s.app != nil:
			_ = s.appUp(EventReady) // the event has the error
		default:
			s.events.add(helper.Event{Event: EventReady, Name: helper.AppAlias, MS: since(start)})
			close(s.up)
		}
	})
	select {
	case <-s.ctx.Done():
		err = nil
	case err = <-broken:
		err = fmt.Errorf("cannot continue serving: %w", err)
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), shutdownTimeout)
	defer cancel()
	_ = web.Shutdown(late)
	web.Close()
	up.Wait()
	if s.app != nil {
		s.app.stop()
	}
	for _, c := range s.commands {
		c.stop()
	}
	return err
}

// servicesUp waits for the services. If one does not become ready, it writes an event and returns false.
func (s *server) servicesUp() bool {
	e := Await(s.ctx, s.spec.Services)
	if e.Event == EventFailed {
		s.events.add(e)
	}
	return e.Event == EventReady
}

// Await waits for services, one after the other. It returns EventReady, or EventFailed for the first
// service that is not ready within its timeout.
func Await(ctx context.Context, all []helper.Service) helper.Event {
	start := time.Now()
	for _, svc := range all {
		bound, cancel := context.WithTimeout(ctx, milliseconds(svc.TimeoutMS))
		saw := wait(bound, helper.App{Port: svc.Port, Path: svc.Path}, svc.Name, nil)
		cancel()
		if !saw.ready {
			return helper.Event{Event: EventFailed, Name: svc.Name, MS: since(start), Detail: saw.detail}
		}
	}
	return helper.Event{Event: EventReady, MS: since(start)}
}

// appUp stops the app if it runs, starts it, and waits until it is ready. It writes an event: success,
// or EventFailed.
func (s *server) appUp(success string) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.app.stop()
	start := time.Now()
	failed := func(code *int, format string, args ...any) error {
		err := fmt.Errorf(format, args...)
		if full := helper.FullPlaces(); full != "" {
			err = fmt.Errorf("%w; %s", err, full)
		}
		s.events.add(helper.Event{
			Event:  EventFailed,
			Name:   helper.AppAlias,
			Exit:   code,
			MS:     since(start),
			Detail: err.Error(),
		})
		return err
	}
	r, err := s.app.start()
	if err != nil {
		return failed(nil, "cannot start the app's command: %v", err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, milliseconds(s.spec.App.TimeoutMS))
	defer cancel()
	saw := wait(ctx, *s.spec.App, ownAddress, r.ended)
	select {
	case <-r.ended:
		code := proc.Code(r.cmd)
		if saw.ready { // another process responds
			return failed(&code, "the app's command ended with exit code %d, but something responds: "+
				"it must stay in the foreground", code)
		}
		return failed(&code, "the app ended with exit code %d before it was ready; last probe: %s", code, saw.detail)
	default:
		defer func() { go s.app.watch(r) }()
	}
	switch {
	case saw.ready:
		s.events.add(helper.Event{Event: success, Name: helper.AppAlias, MS: since(start), Detail: saw.detail})
		return nil
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	}
	return failed(nil, "not ready after %v: %s%s", time.Since(start).Round(time.Millisecond), saw.detail,
		otherPorts(s.spec.App.Port))
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

const (
	probeEvery   = 50 * time.Millisecond
	probeTimeout = 2 * time.Second
	// After so many successful probes of loopback in a row, and none of the app's address, the wait
	// ends: the app will not listen on its address later.
	loopbackProbes = 40

	// ownAddress is a loopback address, because a container may have no other one. An app that only
	// listens on 127.0.0.1 does not respond there.
	ownAddress = "127.0.0.2"

	loopbackOnly = "the app listens on 127.0.0.1 only; it must listen on 0.0.0.0 to be reached from another container"
)

// answer is the result of a probe. detail never contains a byte from the app.
type answer struct {
	ready   bool
	refused bool
	detail  string
}

// wait probes until the app is ready at host, the app has ended, or ctx is done. It returns the result
// of the last probe.
func wait(ctx context.Context, app helper.App, host string, ended <-chan struct{}) answer {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	last, local := answer{detail: "no answer"}, 0
	for {
		switch a := probe(ctx, app, host); {
		case a.ready:
			return a
		case a.refused && (probe(ctx, app, "127.0.0.1").ready || probe(ctx, app, "::1").ready):
			last, local = answer{detail: loopbackOnly}, local+1
		case !expired(ctx):
			last, local = a, 0
		}
		if local >= loopbackProbes {
			return last
		}
		select {
		case <-ended:
			return last
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// expired reports whether ctx is done or its deadline has passed. A dialer may fail at the deadline
// before ctx is done, and its error is then about the deadline.
func expired(ctx context.Context) bool {
	deadline, has := ctx.Deadline()
	return ctx.Err() != nil || has && !time.Now().Before(deadline)
}

// probe sends a request, or opens a connection if the app has no path. If the app refuses the host
// name, a second request finds out whether it accepts localhost.
func probe(ctx context.Context, app helper.App, host string) answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	port := strconv.Itoa(app.Port)
	at, what := net.JoinHostPort(host, port), "port "+port
	if app.Path == "" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			return failedProbe(what, err)
		}
		conn.Close()
		return answer{ready: true, detail: what + " is open"}
	}
	what = "GET " + app.Path
	status, err := requestStatus(ctx, at, app.Path, hostHeader(host, port))
	if err != nil {
		return failedProbe(what, err)
	}
	saw := answer{ready: status < 500, detail: fmt.Sprintf("%s returned %d", what, status)}
	if ip := net.ParseIP(host); ip != nil && refusesNames[status] {
		other, err := requestStatus(ctx, at, app.Path, "localhost:"+port)
		switch {
		case err != nil && expired(ctx): // it may be a refusal
			return answer{detail: saw.detail}
		case err == nil && other < http.StatusBadRequest:
			return answer{detail: fmt.Sprintf("%s for the host name %s and %d for localhost: "+
				"the app must accept the host name %s, which the tests use",
				saw.detail, helper.AppAlias, other, helper.AppAlias)}
		}
	}
	return saw
}

// refusesNames are the statuses with which servers refuse an unknown host name.
var refusesNames = map[int]bool{http.StatusBadRequest: true, http.StatusForbidden: true,
	http.StatusMisdirectedRequest: true}

// hostHeader returns the Host header of a request. For an address it is the app's name, as in the tests.
func hostHeader(host, port string) string {
	if net.ParseIP(host) == nil {
		return net.JoinHostPort(host, port)
	}
	return strings.TrimSuffix(net.JoinHostPort(helper.AppAlias, port), ":80")
}

// requestStatus returns the status of the response at an address.
func requestStatus(ctx context.Context, at, path, host string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+path, nil)
	if err != nil {
		return 0, errPath
	}
	req.Host = host
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

var errPath = errors.New("not a valid path")

// failedProbe returns the result of a failed probe. It quotes no byte from the network.
func failedProbe(what string, err error) answer {
	why := "the response is not HTTP"
	var dns *net.DNSError
	var late net.Error
	var number syscall.Errno
	switch {
	case errors.Is(err, errPath):
		why = errPath.Error()
	case errors.As(err, &dns):
		why = "no such host"
	case errors.As(err, &late) && late.Timeout():
		why = "no answer"
	case errors.As(err, &number):
		why = number.Error()
	}
	return answer{refused: number == syscall.ECONNREFUSED, detail: what + ": " + why}
}
