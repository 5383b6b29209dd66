package look

import (
	"testing"
	"time"

	"abl/internal/spec"
	"abl/internal/state"
)

func TestStatusShowsAWait(t *testing.T) {
	since := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		out  *state.Outage
		want string
	}{
		{nil, ""},
		{&state.Outage{Class: "away", Since: since}, ""},
		{&state.Outage{Class: "rate", Since: since, Until: since.Add(90 * time.Second)},
			"waiting since 03:00:00 UTC after its last call (rate); the next attempt is at 2026-11-22 03:01:30 UTC, or when abl phase runs after that"},
	} {
		st := statusOf(state.Phase{Status: state.Building, Outage: c.out}, spec.Set{}, 1, nil)
		got := ""
		if len(st.Notes) > 0 {
			got = st.Notes[0]
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.out, got, c.want)
		}
	}
}
