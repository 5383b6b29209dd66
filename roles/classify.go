package roles

import (
	"context"
	"fmt"
	"slices"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/roles/agent"
)

// ending is all that is known of how a call ended.
type ending struct {
	exit    sandbox.Exit
	stopped stopped // by abl
	last    helper.RunEnd
	said    agent.Result
	passed  Traffic // through its gate
	fallen  fallen
	apart   bool   // on no network, so that no holder tells whether the engine fell
	keyVar  string // of the agent's provider, "" for none
	role    string
	model   string
	idle    time.Duration
	timeout time.Duration
	output  int64
}

// fallen is what a call stood on and lost.
type fallen struct {
	class outcome.Outcome
	what  string
}

// killedCode is the exit code of a program that SIGKILL ended. By itself it proves
// nothing: it may come from abl, from the engine or from the kernel.
const killedCode = 137

// classify decides how a call ended, and by whose word. An agent's own proper end
// counts unless its output was cut, nobody knows its exit code, or its last answer was
// cut or declined, of which two CLIs know nothing. Otherwise what
// abl did and what passed the gate are facts, the agent's own record is its word,
// and the exit code is what remains.
func (e ending) classify() (outcome.Outcome, string, Evidence) {
	unfit := e.passed.Fault.Class == outcome.Cut || e.passed.Fault.Class == outcome.Filtered || e.fallen.class != "" ||
		slices.Contains([]outcome.Outcome{outcome.Flood, outcome.Disk, outcome.Lost, outcome.Unproven, outcome.EngineGone}, e.stopped.Class)
	if e.said.Finished && !unfit {
		return outcome.Done, "", Evidence{}
	}
	c, ev := e.decide()
	return c, e.reason(c, ev), ev
}

// decide asks the witnesses in turn. That a call was silent or slow may still be the fault
// of a provider, which the gate knows better than abl.
func (e ending) decide() (outcome.Outcome, Evidence) {
	by := func(who Witness, c outcome.Outcome, form string, args ...any) (outcome.Outcome, Evidence) {
		return c, Evidence{From: who, What: fmt.Sprintf(form, args...)}
	}
	fault, killed := e.passed.Fault, e.stopped.Class
	silent, slow := killed == outcome.Idle, killed == outcome.Timeout
	troubled, outOfMemory := fault.Class != "" || e.passed.Waiting, e.exit.OOMKilled && e.exit.Code == killedCode
	switch {
	case killed == outcome.Unproven, killed == outcome.EngineGone:
		return by(ByAbl, killed, "%s", e.stopped.Reason)
	case killed == outcome.Disk:
		return by(ByAbl, killed, "stopped: %s", e.stopped.Reason)
	case killed == outcome.Flood:
		return by(ByAbl, killed, "stopped: it printed more than %d bytes (limits.output)", e.output)
	case killed == outcome.Interrupted:
		return by(ByAbl, killed, "stopped on request")
	case killed == outcome.Lost:
		return by(ByAbl, killed, "its container was removed by somebody else")
	case e.passed.Over != "":
		return by(ByGateway, outcome.OverBudget, "%s", e.passed.Over)
	case silent && !troubled:
		return by(ByAbl, killed, "stopped: it printed nothing and did next to nothing for %s (loop.idle_timeout)", e.idle)
	case (slow || e.last.Deadline) && !troubled:
		return by(ByAbl, outcome.Timeout, "stopped after %s (loop.call_timeout)", e.timeout)
	case (silent || slow) && fault.Class == "":
		return by(ByGateway, outcome.Unavailable, "the provider did not answer its last request")
	case fault.Class != "" && !outOfMemory:
		return fault.Class, Evidence{From: ByGateway, What: fault.What, Back: fault.Back, Paid: fault.Paid}
	case e.said.Trouble != "" && !outOfMemory:
		return by(ByAgent, e.said.Trouble, "%s", e.said.Reason)
	case e.exit.OOMKilled:
		return by(ByEngine, outcome.OutOfMemory, "out of memory (limits.memory)")
	case e.fallen.class != "":
		return by(ByEngine, e.fallen.class, "%s", e.fallen.what)
	case e.last.Late:
		return outcome.Running, Evidence{}
	case e.last.Error != "":
		return by(ByExit, outcome.Failed, "could not be started: %s", e.last.Error)
	case e.last.Signal != "":
		return by(ByExit, outcome.Crashed, "ended by signal %s", e.last.Signal)
	case e.last.Exit == 0 && e.exit.Code == killedCode && e.apart: // process 1, which nobody inside can kill
		return by(ByEngine, outcome.EngineGone, "its container was killed from outside: the engine was stopped, or somebody stopped it")
	case e.last.Exit == 0 && e.exit.Code == killedCode: // abl-run had no time for a word
		return by(ByExit, outcome.Crashed, "ended by SIGKILL, which abl did not send")
	case fault.Class == "" && fault.What != "":
		return by(ByGateway, outcome.Failed, "%s", fault.What)
	case e.said.Reason != "":
		return by(ByAgent, outcome.Failed, "%s", e.said.Reason)
	}
	return by(ByExit, outcome.Failed, "ended with exit code %d and no result", e.exit.Code)
}

// reason is the sentence for a person.
func (e ending) reason(c outcome.Outcome, ev Evidence) string {
	switch stop := e.stopped.Class; {
	case c == outcome.Refused && e.keyVar != "":
		return e.keyVar + " is refused: " + ev.What
	case c == outcome.Cut:
		return fmt.Sprintf("%s; models.%s may name a model that answers at greater length, or the phase may ask for less at once", ev.What, e.role)
	case c == outcome.Filtered:
		return fmt.Sprintf("%s; models.%s may name another model, or the spec may say what the phase is for", ev.What, e.role)
	case c == outcome.NoModel:
		return fmt.Sprintf("models.%s names %q: %s", e.role, e.model, ev.What)
	case stop != "" && stop != c && c.Transient():
		return fmt.Sprintf("%s (stopped as %s)", ev.What, stop)
	}
	return ev.What
}

// standing looks at what an ended call stood on: its network's holder and the app's,
// which end before the phase does only with the engine or by somebody's hand, and the
// app. A Verifier that came to a proper end without them has tested nothing.
func (r *Runner) standing(ctx context.Context, j Job, finished bool) fallen {
	verifies := j.Role.App && j.Cmds.URL != ""
	switch {
	case finished && !verifies:
	case j.Place != "" && gone(ctx, r.Engine, r.holder(j.Place)):
		return fallen{outcome.EngineGone, "the container that holds its network ended with it: the engine was stopped, or somebody stopped both"}
	case verifies && gone(ctx, r.Engine, r.holder(PlaceApp)):
		return fallen{outcome.EngineGone, "the container that holds the app's network ended while the app was tested: the engine was stopped, or somebody stopped it"}
	case verifies && j.Env != nil && !finished && gone(ctx, r.Engine, r.name(PlaceApp)):
		return fallen{outcome.AppGone, "the app's container ended while it was tested"}
	}
	return fallen{}
}

// Evidence is what an outcome rests on.
type Evidence struct {
	From Witness   `json:"from"`
	What string    `json:"what"`                   // what it said, in one sentence
	Back time.Time `json:"back,omitzero"`          // when the provider wants to be asked again
	Paid bool      `json:"needs_person,omitempty"` // no waiting helps: somebody has to pay or to change something
}

// Witness is who says how a call ended.
type Witness string

// The witnesses, the one that is believed most at first.
const (
	ByAbl     Witness = "abl"     // what abl itself did to the call
	ByGateway Witness = "gateway" // the gateway's log
	ByAgent   Witness = "agent"   // the CLI's own last record
	ByEngine  Witness = "engine"  // the engine's flags
	ByExit    Witness = "exit"    // the exit code, or the signal
)

// String is the evidence in one line, "" for none.
func (e Evidence) String() string {
	if e.From == "" {
		return ""
	}
	return string(e.From) + ": " + e.What
}
