package boundary

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
)

func TestReach(t *testing.T) {
	gated := map[string]bool{PlaceBuilder: true, PlaceVerifier: true, PlaceApp: true}
	for _, c := range []struct {
		place    string
		gated    map[string]bool
		port     int
		services bool
		want     string
	}{
		{PlaceBuilder, nil, 0, false, "abl-id-net-builder"},
		{PlaceVerifier, nil, 0, false, "abl-id-net-app"},
		{PlaceApp, nil, 0, false, "abl-id-net-app as app"},
		{PlaceBuilder, gated, 3000, true, "abl-id-net-builder"},
		{PlaceVerifier, gated, 0, false, "abl-id-net-app, abl-id-net-verifier"},
		{PlaceApp, gated, 0, false, "abl-id-net-app as app"}, // whatever the config says, the app reaches nothing else
		{PlaceVerifier, nil, 3000, false, "app is here"},
		{PlaceVerifier, gated, 3000, true, "abl-id-net-verifier, app is here"},
		{PlaceApp, gated, 3000, false, "app is here"},
		{PlaceApp, gated, 3000, true, "abl-id-net-app as app, app is here"},
		{PlaceService + "db", nil, 3000, true, "abl-id-net-app as db"},
		{placeTrial + "db", nil, 3000, true, "abl-id-net-trial as db"},
	} {
		for _, egress := range []string{"", "mine"} {
			s := &Containers{ID: "id", Gated: c.gated, Egress: egress, Port: c.port, Services: c.services}
			if got := rolestest.ShowReach(s.Reach(c.place)); got != c.want {
				t.Errorf("%s, gated %v, port %d, services %t: got %s, want %s",
					c.place, c.gated != nil, c.port, c.services, got, c.want)
			}
		}
	}
	for egress, want := range map[string]string{"": "abl-id-net-egress", "mine": "mine foreign"} {
		s := &Containers{ID: "id", Egress: egress}
		if got := rolestest.ShowReach(sandbox.Reach{Endpoints: []sandbox.Endpoint{s.EgressEndpoint()}}); got != want {
			t.Errorf("the route: got %s, want %s", got, want)
		}
	}
}

func TestHolder(t *testing.T) {
	e := &sandboxtest.Engine{}
	site := func() *Containers { return &Containers{Engine: e, ID: "id", Phase: 1, Helper: "holder"} }
	first := site()
	rolestest.Must(t, first.Holder(t.Context(), PlaceBuilder))
	const name = "abl-id-holder-builder"
	b, _ := e.Config(name)
	if b.User != toolUser || b.Labels[sandbox.LabelKind] != "holder" {
		t.Errorf("holder: got %+v, want user %s and kind holder", b, toolUser)
	}
	if got := strings.Join(b.Argv[1:], " "); got != "--deadline "+b.Labels[sandbox.LabelDeadline]+" --seal "+toolUser || !b.Seals {
		t.Errorf("arguments of the holder: got %s, seals %v, want its deadline and --seal %s", got, b.Seals, toolUser)
	}
	// A second abl uses a running holder and replaces a stopped one.
	for _, c := range []struct{ before, want string }{
		{"runs", "Status"},
		{"ended", "Status EnsureNetwork Remove Create Prove Start Head"},
		{"never started", "Status EnsureNetwork Remove Create Prove Start Head"},
	} {
		t.Run(c.before, func(t *testing.T) {
			switch c.before {
			case "ended":
				rolestest.Must(t, e.Kill(t.Context(), name))
			case "never started":
				rolestest.Must(t, e.Remove(t.Context(), name))
				if _, err := e.Create(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			e.Forget()
			if err := site().Holder(t.Context(), PlaceBuilder); err != nil {
				t.Fatal(err)
			}
			var calls []string
			for line := range strings.Lines(e.Journal()) {
				calls = append(calls, strings.Fields(line)[0])
			}
			if got := strings.Join(calls, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	e.Forget()
	if err := first.Holder(t.Context(), PlaceBuilder); err != nil || e.Journal() != "Status "+name+"\n" {
		t.Errorf("second request: got error %v, calls %q, want only Status", err, e.Journal())
	}
}

// A holder runs until its deadline and is replaced if it ended before, for example when the engine
// was stopped.
func TestHolderLives(t *testing.T) {
	e := &sandboxtest.Engine{}
	s := &Containers{Engine: e, ID: "id", Helper: "holder", Life: time.Hour}
	rolestest.Must(t, s.Holder(t.Context(), PlaceApp))
	const name = "abl-id-holder-app"
	b, _ := e.Config(name)
	until, err := strconv.ParseInt(b.Labels[sandbox.LabelDeadline], 10, 64)
	if left := time.Until(time.Unix(until, 0)); err != nil || left > time.Hour || left < 50*time.Minute {
		t.Errorf("time left: got %s, error %v, want 50 to 60 minutes", left, err)
	}
	rolestest.Must(t, e.Kill(t.Context(), name))
	e.Forget()
	if err := s.Holder(t.Context(), PlaceApp); err != nil || !strings.Contains(e.Journal(), "Start") {
		t.Errorf("holder after its end: got error %v, calls %q, want a Start", err, e.Journal())
	}
}

func TestHolderFails(t *testing.T) {
	away := fmt.Errorf("down: %w", sandbox.ErrUnreachable)
	for _, method := range []string{"Status", "EnsureNetwork", "Create", "Start"} {
		t.Run(method, func(t *testing.T) {
			e := &sandboxtest.Engine{}
			e.Fail(method, 1, away)
			s := &Containers{Engine: e, ID: "id", Helper: "holder"}
			if err := s.Holder(t.Context(), PlaceApp); !errors.Is(err, sandbox.ErrUnreachable) {
				t.Errorf("%s failed: got error %v, want %v", method, err, sandbox.ErrUnreachable)
			}
			if err := s.Holder(t.Context(), PlaceApp); err != nil {
				t.Errorf("after %s failed: got error %v, want none", method, err)
			}
		})
	}
	e := &sandboxtest.Engine{}
	if err := (&Containers{Engine: e, ID: "id", Helper: "holder"}).Holder(rolestest.Cancelled(t), PlaceApp); !errors.Is(err, context.Canceled) || len(e.Left()) > 0 {
		t.Errorf("cancelled: got error %v, left %v, want %v and none left", err, e.Left(), context.Canceled)
	}
}

// TestHostServerIsReplaced checks that a listener that ended is started again for the next call, and
// that calls share a running one.
func TestHostServerIsReplaced(t *testing.T) {
	e := &sandboxtest.Engine{}
	s := &Containers{Engine: e, ID: "id", Helper: "holder"}
	start := func() string {
		t.Helper()
		e.Forget()
		_, err := s.hostServer(t.Context())
		rolestest.Must(t, err)
		return e.Journal()
	}
	const started = "Start abl-id-listener"
	if got := start(); !strings.Contains(got, started) {
		t.Errorf("got %s, want %s", got, started)
	}
	if got := start(); strings.Contains(got, started) {
		t.Errorf("got %s while it runs, want no start", got)
	}
	if got, err := s.HostAddrs(t.Context()); err != nil || fmt.Sprint(got) != "[192.0.2.1 fe80::1]" {
		t.Errorf("got addresses of the engine's machine %v, %v, want 192.0.2.1 and fe80::1", got, err)
	}
	e.Finish("abl-id-listener", sandbox.Exit{Code: 137})
	if got := start(); !strings.Contains(got, started) {
		t.Errorf("got %s after its end, want %s", got, started)
	}
}
