package crash

import (
	"errors"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles"
	"abl/roles/call"
)

// If the container that holds a network, or the listener, is killed before abl needs it, abl reports that,
// creates another, and the phase ends like an undisturbed one.
func TestHolderKilled(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	for point, holder := range map[string]string{
		"call.created": "holder-verifier", "app.created": "holder-app", "probe.written": "listener",
	} {
		t.Run(point, func(t *testing.T) {
			if point != "call.created" {
				lab.Long(t)
			}
			t.Parallel()
			s := newScene(t, nil)
			// The first call, of the Builder, has no network.
			after := map[string]string{"call.created": "1*off->", "probe.written": "1*off->"}
			r := s.start(point + "=" + after[point] + "1*pause")
			s.atPause(point)
			lab.Docker(t, "kill", "abl-"+s.ID()+"-"+holder)
			s.release(point)
			events := r.end(0)
			var notes []string
			for _, e := range lab.Of(events, state.Note) {
				notes = append(notes, e.Text)
			}
			lab.Wants(t, "the notes", strings.Join(notes, "\n"), sandbox.ErrKilled.Error()+": abl-"+s.ID()+"-"+holder)
			s.checkNothingLeft()
			checkSame(t, want, s.print())
		})
	}
}

// If the container that holds the app's network is killed while the Verifier tests the app, the
// Verifier is called again, whatever its verdict.
func TestHolderKilledDuringTheVerifier(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := startAtGate(t, "verifier", "")
	lab.Docker(t, "kill", "abl-"+s.ID()+"-holder-app")
	s.open("verifier")
	go func() {
		for range 6000 {
			if s.Exists(".abl/logs/calls/p1-verify-1.2/started") && s.Exists(".abl/tests/at") {
				s.open("verifier")
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	ends := lab.Of(r.end(0), state.CallEnd)
	if len(ends) != 1+2*s.steps || ends[1].Class != string(outcome.EngineGone) ||
		!strings.Contains(ends[1].Text, "holds the app's network") {
		t.Errorf("ends of calls: got %+v, want %d and the second with %s because of the holder", ends, 1+2*s.steps,
			outcome.EngineGone)
	}
	s.checkNothingLeft()
	s.checkPassed()
}

// A call whose container ran without a proven boundary is stopped, recorded and entered in the
// ledger. The next run makes another call.
func TestUnprovenCallIsKept(t *testing.T) {
	b := newProxied(t)
	b.engine.Opening = func(container sandbox.ContainerConfig) string {
		if container.Labels[sandbox.LabelCall] == "p1-build-1.1" && container.Labels[sandbox.LabelKind] == "role" {
			return "hello\n"
		}
		return b.engine.Proven(container)
	}
	err := b.run()
	if !errors.Is(err, call.ErrUnproven) || !strings.Contains(err.Error(), "no probe ran inside") {
		t.Errorf("error of the phase: got %v, want %v with %q", err, call.ErrUnproven, "no probe ran inside")
	}
	o, ended, err := roles.Record{Dir: b.Dir + "/.abl/logs/calls/p1-build-1.1"}.Outcome()
	if err != nil || !ended || o.Class != outcome.Unproven {
		t.Errorf("outcome of the call: got %+v, ended %t, error %v, want class %s", o, ended, err, outcome.Unproven)
	}
	if n := strings.Count(b.Read(".abl/logs/tokens.csv"), "p1-build-1.1"); n != 1 {
		t.Errorf("got %d ledger rows for the call, want 1", n)
	}
	if err := b.run(); err != nil {
		t.Fatalf("the next run: got error %v, want none", err)
	}
	f, err := state.Load(b.Dir + "/.abl/state.json")
	if err != nil || f.Phases["1"].Status != state.Passed || !b.Exists(".abl/logs/calls/p1-build-1.2/outcome.json") {
		t.Errorf("state.json: got %+v, error %v, want a passed phase and a second call of the Builder", f, err)
	}
	if left := b.daemon.left(); len(left) > 0 {
		t.Errorf("left on the engine: got %v, want nothing", left)
	}
}
