package call

import (
	"errors"
	"testing"

	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
)

// If the engine cannot create a call's container, the run ends, but not the call. The next run
// makes the same call.
func TestEngineCannotMakeAContainer(t *testing.T) {
	other := errors.New("no more addresses")
	for name, c := range map[string]struct {
		hurt, repair func(*rig)
		want         error
	}{
		"the image was deleted": {func(r *rig) { r.Engine.Images = []string{"other"} }, func(r *rig) { r.Engine.Images = nil }, sandbox.ErrNoImage},
		"the engine went away":  {func(r *rig) { r.Engine.Fail("Create", 1, sandbox.ErrUnreachable) }, func(*rig) {}, sandbox.ErrUnreachable},
		"it refuses to start":   {func(r *rig) { r.Engine.Fail("Start", 1, other) }, func(*rig) {}, other},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rolestest.Says("end", 0))
			c.hurt(r)
			if _, err := r.runner.Run(t.Context(), r.job); !errors.Is(err, c.want) {
				t.Errorf("error of the call: got %v, want %v", err, c.want)
			}
			if _, ended, err := r.rec().Outcome(); ended || err != nil || r.rec().Started() {
				t.Errorf("call after the error: got ended %t, started %t, error %v, want a call that never began",
					ended, r.rec().Started(), err)
			}
			c.repair(r)
			if o := r.run(); o.Class != outcome.Done {
				t.Errorf("call after the repair: got %s, want %s", show(o), outcome.Done)
			}
			r.WantLeft()
		})
	}
}
