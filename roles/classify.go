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
	for _, look := range []func() (outcome.Outcome, Evidence){e.byAbl, e.byGateway, e.byAgent, e.byEngine} {
		if c, ev := look(); c != "" {
			return c, e.reason(c, ev), ev
		}
	}
	c, ev := e.byExit()
	return c, ev.What, ev
}

// byAbl is what abl did to the call. That it was silent or slow may still be the
// fault of a provider, which the gate knows better.
func (e ending) byAbl() (outcome.Outcome, Evidence) {
	is := func(c outcome.Outcome, form string, args ...any) (outcome.Outcome, Evidence) {
		return c, Evidence{From: ByAbl, What: fmt.Sprintf(form, args...)}
	}
	troubled := e.passed.Fault.Class != "" || e.passed.Fault.Waiting
	switch killed := e.stopped.Class; {
	case killed == outcome.Unproven, killed == outcome.EngineGone:
		return is(killed, "%s", e.stopped.Reason)
	case killed == outcome.Disk:
		return is(outcome.Disk, "stopped: %s", e.stopped.Reason)
	case killed == outcome.Flood:
		return is(outcome.Flood, "stopped: it printed more than %d bytes (limits.output)", e.output)
	case killed == outcome.Interrupted:
		return is(outcome.Interrupted, "stopped on request")
	case killed == outcome.Lost:
		return is(outcome.Lost, "its container was removed by somebody else")
	case e.passed.Over != "":
		return outcome.OverBudget, Evidence{From: ByGateway, What: e.passed.Over}
	case killed == outcome.Idle && !troubled:
		return is(outcome.Idle, "stopped: it printed nothing and did next to nothing for %s (loop.idle_timeout)", e.idle)
	case (killed == outcome.Timeout || e.last.Deadline) && !troubled:
		return is(outcome.Timeout, "stopped after %s (loop.call_timeout)", e.timeout)
	}
	return "", Evidence{}
}

// byGateway is what was wrong with the provider when the call ended.
func (e ending) byGateway() (outcome.Outcome, Evidence) {
	t := e.passed.Fault
	if t.Class == "" && t.Waiting && (e.stopped.Class == outcome.Idle || e.stopped.Class == outcome.Timeout) {
		return outcome.Unavailable, Evidence{From: ByGateway, What: "the provider did not answer its last request"}
	}
	if t.Class == "" || e.exit.OOMKilled && e.exit.Code == killedCode {
		return "", Evidence{}
	}
	return t.Class, Evidence{From: ByGateway, What: t.What, Back: t.Back, Paid: t.Paid}
}

// byAgent is a trouble that the CLI's own record names, or the loss of what it
// stood on, which it can only have suffered.
func (e ending) byAgent() (outcome.Outcome, Evidence) {
	if e.exit.OOMKilled && e.exit.Code == killedCode {
		return "", Evidence{}
	}
	if e.said.Trouble != "" {
		return e.said.Trouble, Evidence{From: ByAgent, What: e.said.Reason}
	}
	return "", Evidence{}
}

func (e ending) byEngine() (outcome.Outcome, Evidence) {
	switch {
	case e.exit.OOMKilled:
		return outcome.OutOfMemory, Evidence{From: ByEngine, What: "out of memory (limits.memory)"}
	case e.fallen.class != "":
		return e.fallen.class, Evidence{From: ByEngine, What: e.fallen.what}
	}
	return "", Evidence{}
}

func (e ending) byExit() (outcome.Outcome, Evidence) {
	switch {
	case e.last.Late:
		return outcome.Running, Evidence{}
	case e.last.Error != "":
		return outcome.Failed, Evidence{From: ByExit, What: "could not be started: " + e.last.Error}
	case e.last.Signal != "":
		return outcome.Crashed, Evidence{From: ByExit, What: "ended by signal " + e.last.Signal}
	case e.last.Exit == 0 && e.exit.Code == killedCode: // abl-run had no time for a word
		return outcome.Crashed, Evidence{From: ByExit, What: "ended by SIGKILL, which abl did not send"}
	case e.passed.Fault.Class == "" && e.passed.Fault.What != "":
		return outcome.Failed, Evidence{From: ByGateway, What: e.passed.Fault.What}
	case e.said.Reason != "":
		return outcome.Failed, Evidence{From: ByAgent, What: e.said.Reason}
	}
	return outcome.Failed, Evidence{From: ByExit, What: fmt.Sprintf("ended with exit code %d and no result", e.exit.Code)}
}

// reason is the sentence for a person.
func (e ending) reason(c outcome.Outcome, ev Evidence) string {
	if c == outcome.Refused && e.keyVar != "" {
		return e.keyVar + " is refused: " + ev.What
	}
	switch c {
	case outcome.Cut:
		return fmt.Sprintf("%s; models.%s may name a model that answers at greater length, or the phase may ask for less at once", ev.What, e.role)
	case outcome.Filtered:
		return fmt.Sprintf("%s; models.%s may name another model, or the spec may say what the phase is for", ev.What, e.role)
	case outcome.NoModel:
		return fmt.Sprintf("models.%s names %q: %s", e.role, e.model, ev.What)
	}
	if stop := e.stopped.Class; stop != "" && stop != c && c.Transient() {
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
