// Package broker runs in the app's container: it starts the app, finds out
// when it is ready, and runs declared commands by name for the Verifier, who
// gets their exit code and, only where the configuration says so, their output.
package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"abl/internal/helper"
)

const (
	stopGrace       = 5 * time.Second
	defaultReady    = 60 * time.Second
	defaultCommand  = 10 * time.Minute
	headerTimeout   = 10 * time.Second
	maxHeader       = 16 << 10
	shutdownTimeout = stopGrace + 2*time.Second
)

// Serve does what spec says until ctx ends or the deadline has come, and then
// stops all that it started. An app that does not come up or crashes is an
// event and no error; the error is that the broker itself cannot work.
func Serve(ctx context.Context, spec helper.BrokerSpec) error {
	if spec.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.Unix(spec.Deadline, 0))
		defer cancel()
	}
	if spec.Token == "" {
		return errors.New("cannot serve without a token")
	}
	ev, err := openEvents(spec.Events)
	if err != nil {
		return err
	}
	defer ev.close()
	log, err := openLog(spec.Log, spec.LogMax)
	if err != nil {
		return err
	}
	defer log.close()
	s := newServer(spec, ev, log)
	if spec.App != nil {
		host, err := OwnAddress()
		if err != nil {
			return err
		}
		s.app = newApplication(s, host)
	}
	return s.serve(ctx)
}

// serve listens, brings the app up, and tidies up when ctx ends.
func (s *server) serve(ctx context.Context) error {
	start := time.Now()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", s.spec.Port))
	if err != nil {
		return fmt.Errorf("cannot listen for commands: %w", err)
	}
	s.ctx = ctx
	web := &http.Server{Handler: s.routes(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader}
	broken := make(chan error, 1)
	go func() { broken <- web.Serve(listener) }()
	s.events.add(helper.Event{Event: EventListening, MS: since(start)})

	up := make(chan struct{})
	go func() {
		defer close(up)
		if s.app != nil && s.servicesUp(ctx) {
			_ = s.app.up(ctx, EventReady) // the event says it
		}
	}()
	select {
	case <-ctx.Done():
		err = nil
	case err = <-broken:
		err = fmt.Errorf("cannot go on serving: %w", err)
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	_ = web.Shutdown(late)
	web.Close()
	<-up
	s.stopAll()
	return err
}

// servicesUp waits for the further containers, and reports the one that does not answer.
func (s *server) servicesUp(ctx context.Context) bool {
	for _, svc := range s.spec.Services {
		start := time.Now()
		if a := awaitService(ctx, svc); !a.ready {
			s.events.add(helper.Event{Event: EventFailed, Name: svc.Name, MS: since(start), Detail: "service " + svc.Name + ", " + a.detail})
			return false
		}
	}
	return true
}

// awaitService waits until a further container answers on its port.
func awaitService(ctx context.Context, svc helper.Service) answer {
	ctx, cancel := context.WithTimeout(ctx, duration(svc.TimeoutMS, defaultReady))
	defer cancel()
	return prober{app: helper.App{Port: svc.Port}, host: svc.Name}.wait(ctx, nil)
}

func duration(ms int64, otherwise time.Duration) time.Duration {
	if ms <= 0 {
		return otherwise
	}
	return time.Duration(ms) * time.Millisecond
}
