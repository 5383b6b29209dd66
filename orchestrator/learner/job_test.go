package learner

import "testing"

// A call uses the model and the effort of the session.
func TestJob(t *testing.T) {
	c := &Containers{Model: "m", Effort: "low"}
	call := c.job(Call{State: State{Step: Review, Cycle: 2, Attempt: 3}}).Call
	if call.Model != "m" || call.Effort != "low" || call.Step != 2 || call.Attempt != 3 {
		t.Errorf("got %+v, want model m, effort low, step 2 and attempt 3", call)
	}
}
