package roles

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/sandboxtest"
)

func TestReach(t *testing.T) {
	direct := map[string]bool{PlaceBuilder: true, PlaceVerifier: true, PlaceApp: true}
	for _, c := range []struct {
		place  string
		direct map[string]bool
		egress string
		want   string
	}{
		{PlaceBuilder, nil, "", "abl-id-net-builder"},
		{PlaceVerifier, nil, "", "abl-id-net-app"},
		{PlaceApp, nil, "", "abl-id-net-app as app"},
		{PlaceBuilder, direct, "", "abl-id-net-builder, abl-id-net-egress, resolves"},
		{PlaceVerifier, direct, "mine", "abl-id-net-app, mine foreign, resolves"},
		{PlaceApp, direct, "mine", "abl-id-net-app as app"}, // whatever the config says, the app reaches nothing else
		{"elsewhere", nil, "", ""},
	} {
		s := &Site{ID: "id", Direct: c.direct, Egress: c.egress}
		if got := showReach(s.Reach(c.place)); got != c.want {
			t.Errorf("%s, direct %v, egress %q: %s, want %s", c.place, c.direct != nil, c.egress, got, c.want)
		}
	}
}

func showReach(r sandbox.Reach) string {
	var all []string
	for _, e := range r.Endpoints {
		word := e.Network
		if len(e.Aliases) > 0 {
			word += " as " + strings.Join(e.Aliases, " ")
		}
		if e.Foreign {
			word += " foreign"
		}
		all = append(all, word)
	}
	if r.Resolve {
		all = append(all, "resolves")
	}
	return strings.Join(all, ", ")
}

func TestHolder(t *testing.T) {
	e := &sandboxtest.Engine{}
	site := func() *Site { return &Site{Engine: e, ID: "id", Phase: 1, Image: "holder"} }
	first := site()
	name, err := first.Holder(t.Context(), PlaceBuilder)
	if err != nil || name != "abl-id-holder-builder" {
		t.Fatal(name, err)
	}
	b, _ := e.Box(name)
	if b.User != holderUser || b.Labels[sandbox.LabelKind] != "holder" {
		t.Errorf("box %+v", b)
	}
	// A second abl takes up the one that runs; one that does not is made anew.
	for _, c := range []struct{ before, want string }{
		{"runs", "Status"},
		{"ended", "Status EnsureNetwork Remove Create Start"},
		{"never started", "Status EnsureNetwork Remove Create Start"},
	} {
		switch c.before {
		case "ended":
			must(t, e.Kill(t.Context(), name))
		case "never started":
			must(t, e.Remove(t.Context(), name))
			if _, err := e.Create(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		e.Forget()
		if _, err := site().Holder(t.Context(), PlaceBuilder); err != nil {
			t.Fatal(err)
		}
		var calls []string
		for line := range strings.Lines(e.Journal()) {
			calls = append(calls, strings.Fields(line)[0])
		}
		if got := strings.Join(calls, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.before, got, c.want)
		}
	}
	e.Forget()
	if _, err := first.Holder(t.Context(), PlaceBuilder); err != nil || e.Journal() != "" {
		t.Errorf("asked again: %v, %s", err, e.Journal())
	}
}

func TestHolderFails(t *testing.T) {
	away := fmt.Errorf("down: %w", sandbox.ErrUnreachable)
	for _, method := range []string{"Status", "EnsureNetwork", "Create", "Start"} {
		e := &sandboxtest.Engine{}
		e.Fail(method, 1, away)
		s := &Site{Engine: e, ID: "id", Image: "holder"}
		if _, err := s.Holder(t.Context(), PlaceApp); !errors.Is(err, sandbox.ErrUnreachable) {
			t.Errorf("%s: %v", method, err)
		}
		if _, err := s.Holder(t.Context(), PlaceApp); err != nil {
			t.Errorf("after %s failed: %v", method, err)
		}
	}
	e := &sandboxtest.Engine{}
	if _, err := (&Site{Engine: e, ID: "id", Image: "holder"}).Holder(cancelled(t), PlaceApp); !errors.Is(err, context.Canceled) || len(e.Left()) > 0 {
		t.Errorf("cancelled: %v, left %v", err, e.Left())
	}
}
