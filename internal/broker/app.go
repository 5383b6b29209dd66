package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

// application is the system under test, if the configuration names one.
type application struct {
	prober prober
	unit   *unit
	events *events
	limit  time.Duration // until it must be ready

	mu sync.Mutex // one start or restart at a time
}

func newApplication(s *server, host string) *application {
	return &application{
		prober: prober{app: *s.spec.App, host: host}, events: s.events,
		limit: duration(s.spec.App.TimeoutMS, defaultReady), unit: s.unit("app", s.spec.App.Command),
	}
}

// up stops the app if it runs, starts it, waits until it answers, and reports
// the outcome as an event: success under the given name, or EventFailed.
func (a *application) up(ctx context.Context, success string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unit.stop()
	start := time.Now()
	r, err := a.unit.start()
	if err != nil {
		return a.failed(start, nil, fmt.Sprintf("the app's command cannot be started: %v", err))
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(parent, a.limit)
	defer cancel()
	saw := a.prober.wait(ctx, r.ended)
	select {
	case <-r.ended:
		// Something that answers although the app has ended is not the app.
		if r.claim() {
			return a.endedEarly(start, proc.Code(r.cmd), saw)
		}
	default:
	}
	if !saw.ready {
		a.unit.watch(r)
		if context.Cause(parent) != nil {
			return context.Cause(parent)
		}
		return a.failed(start, nil, fmt.Sprintf("not ready after %v: %s", time.Since(start).Round(time.Millisecond), saw.detail))
	}
	a.events.add(helper.Event{Event: success, Name: "app", MS: since(start), Detail: saw.detail})
	a.unit.watch(r)
	return nil
}

func (a *application) endedEarly(start time.Time, code int, saw answer) error {
	detail := fmt.Sprintf("the app ended with exit code %d before it was ready; last probe: %s", code, saw.detail)
	if saw.ready {
		detail = fmt.Sprintf("the app's command ended with exit code %d, but something answers: it must stay in the foreground", code)
	}
	return a.failed(start, &code, detail)
}

func (a *application) failed(start time.Time, code *int, detail string) error {
	a.events.add(helper.Event{Event: EventFailed, Name: "app", Exit: code, MS: since(start), Detail: detail})
	return fmt.Errorf("%s", detail)
}
