package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/agent"
)

// close makes the outcome durable, then removes the box.
func (r *Runner) close(ctx context.Context, j Job, rec Record, intent Intent, o *Outcome) error {
	tidy, cancel := tidying(ctx)
	defer cancel()
	if err := hostfs.Reopen(j.Role.Workspace(r.Project), j.Role.Reports, failedspecs.FileName, "run.sh"); err != nil {
		return err
	}
	o.Report = helper.FreshReport(j.Call.Phase, j.Call.Iteration, intent.Reports, helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports))
	failpoint.Here("call.report")
	if err := r.keep(rec); err != nil {
		return err
	}
	for i := range o.Usage {
		o.Usage[i].Plan = j.Agent.Provider.Plan
	}
	if err := r.Safe.Clean(o); err != nil {
		return err
	}
	if err := rec.SaveOutcome(*o); err != nil {
		return err
	}
	failpoint.Here("call.outcome")
	r.emit(j, state.Event{Kind: state.CallEnd, Class: string(o.Class), Text: o.Reason, Evidence: o.Evidence.String(), Until: o.Evidence.Back, MS: o.Duration, Exit: &o.Exit})
	for _, u := range o.Usage {
		r.emit(j, state.Event{Kind: state.Usage, Model: u.Model, Tokens: u.Total, CostUSD: r.cost(u)})
	}
	if err := r.clear(tidy, j); err != nil {
		return fmt.Errorf("cannot remove the %s's container: %w", j.Role.Name, err)
	}
	failpoint.Here("call.removed")
	return nil
}

// cost is what a usage cost as far as anybody knows, "" when there is nothing to pay.
func (r *Runner) cost(u agent.Usage) string {
	if u.Plan {
		return ledger.Subscription
	}
	if u.Cost != nil {
		return u.Cost.String()
	}
	if r.Price != nil && !u.Part {
		if usd, known := r.Price(u); known {
			return usd.String()
		}
	}
	if !u.Part && u.Total != nil && *u.Total == 0 {
		return ""
	}
	return ledger.Unknown
}

// Keep makes safe what the box of an ended call has printed, and what its app
// has: whoever looks at these files later does so without abl.
func (r Record) Keep(o *redact.Sanitizer) error {
	return errors.Join(keepAll(o, r.Dir, "stdout", "stderr"), keepAll(o, filepath.Join(r.Dir, "app"), "app.log", "events"))
}

// keepAll replaces outputs that are not safe, so that a hard link to one keeps what was
// there, and passes by what is not there. The caller holds the lock under which their folder
// is written.
func keepAll(o *redact.Sanitizer, dir string, names ...string) error {
	if err := hostfs.SweepTemps(dir); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		f, err := OpenOutput(path)
		if errors.Is(err, hostfs.ErrAbsent) {
			continue
		}
		if err == nil {
			err = o.Keep(f, func(fill func(io.Writer) error) error { return hostfs.Fill(path, outputMode, fill) })
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("cannot make the output in %q safe to keep: %w", path, err)
		}
	}
	return nil
}

// keep makes safe what the call printed, up to the limit, and gives it to the person.
func (r *Runner) keep(rec Record) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		// No more than the limit, whether the call was stopped at once or only a while after.
		if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && r.flooded(fi.Size()) {
			if err := errors.Join(ownMode(path), os.Truncate(path, r.Output)); err != nil {
				return fmt.Errorf("cannot shorten the output of a call: %w", err)
			}
		}
		err := keepAll(r.Safe, rec.Dir, filepath.Base(path))
		if err == nil && r.Root {
			err = os.Chown(path, r.Person[0], r.Person[1])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep makes safe what an app that is gone has printed.
func (a *App) keep(key string) error { return keepAll(a.Safe, a.dir(key), "app.log", "events") }

// Gate is the one way out of a role's box: it stands between a call and what the
// call may reach, holds the keys, and counts.
type Gate interface {
	// Open makes the way out of a call that is about to start, whatever is left of
	// an earlier try, and returns the environment by which the box finds it. model
	// is the only one that it may use.
	Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error)
	// Resume tells one that was open when an earlier abl ended what the call may
	// spend by now. One that is gone already is no error.
	Resume(ctx context.Context, key string) error
	// Close ends it and says what passed. Done twice it says the same.
	Close(ctx context.Context, key string) (Traffic, error)
	// Used returns what the running call has used so far, nil if that is not known.
	Used() *Used
}

// Used is what a running call has used so far: a lower bound with AtLeast. USD is nil if the model
// has no price.
type Used struct {
	Tokens  int64
	USD     *prices.USD
	AtLeast bool
}

// GateName is the engine-wide name of the box of a call's gate.
func GateName(id, key string) string { return BoxName(id, key+"-gateway") }

// Traffic is what passed a gate.
type Traffic struct {
	Usage    []agent.Usage
	Charged  *Charged // what the budgets counted; nil where nobody knows
	Requests int64    // that the provider answered
	Over     string   // the budget's words when it ended the call, "" otherwise
	Notes    []string // for the person
	Finish   string   // how the last whole answer ended, in the provider's word
	Waiting  bool     // the last request was not answered when the call ended
	Fault    outcome.Fault

	// The last answer to a request for work was not complete and successful.
	Unfinished bool
	// The client left that answer while it was under way, or before it began.
	Left bool
}

// Charged is what the budgets counted of a call: what its provider told, and
// estimates where it did not.
type Charged struct {
	Tokens int64       `json:"tokens"`
	USD    *prices.USD `json:"usd"` // nil where a model without a price was asked
}

// Who counted the tokens of a call.
const (
	CountedByGate = "gateway"
	CountedByCLI  = "cli"
)

// settle ends the call's way out and takes its count. The agent's own figures
// are kept beside it.
func (r *Runner) settle(ctx context.Context, j Job, o *Outcome) (traffic Traffic, err error) {
	o.Source = CountedByCLI
	if j.Gate == nil {
		return traffic, nil
	}
	tidy, cancel := tidying(ctx)
	defer cancel()
	if traffic, err = j.Gate.Close(tidy, j.Call.ID); err != nil {
		return traffic, fmt.Errorf("cannot close the way out of call %s: %w", j.Call.ID, err)
	}
	for _, note := range traffic.Notes {
		r.emit(j, state.Event{Kind: state.Note, Text: note})
	}
	if j.Agent.Provider.API == "" {
		return Traffic{}, nil // only registries are behind the gate
	}
	o.Source, o.Claimed = CountedByGate, o.Usage
	o.Usage, o.Requests, o.Over, o.Charged, o.Finish = traffic.Usage, traffic.Requests, traffic.Over, traffic.Charged, traffic.Finish
	return traffic, nil
}

// ending is all that is known of how a call ended.
type ending struct {
	exit    sandbox.Exit
	stopped stopped // by abl
	last    helper.RunEnd
	said    agent.Result
	passed  Traffic // through its gate
	fallen  fallen
	job     Job
	timeout time.Duration
	idle    time.Duration
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
// counts unless its output was cut, nobody knows its exit code, or the gateway saw that the
// model had not finished: CLIs report success after errors and after cut answers. An agent may
// leave its last answer, but not because abl stopped it. Otherwise what
// abl did and what passed the gate are facts, the agent's own record is its word,
// and the exit code is what remains.
func (e ending) classify() (outcome.Outcome, string, Evidence) {
	unfit := e.passed.Unfinished || e.passed.Left && e.stopped.Class != "" || e.fallen.class != "" ||
		slices.Contains([]outcome.Outcome{outcome.Flood, outcome.Disk, outcome.Lost, outcome.Unproven, outcome.EngineGone}, e.stopped.Class)
	if e.said.Finished && !unfit {
		return outcome.Done, "", Evidence{}
	}
	c, ev := e.decide()
	if e.exit.Forced != "" {
		ev.What += fmt.Sprintf("; the engine could not stop the container (%s), so abl killed its processes", e.exit.Forced)
	}
	reason := e.reason(c, ev)
	if e.last.Full != "" && (ev.From == ByExit || ev.From == ByAgent) {
		reason += "; " + e.last.Full
	}
	return c, reason, ev
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
		return by(ByAbl, killed, "%s", cmp.Or(e.stopped.Reason, "its container was removed by somebody else"))
	case e.passed.Over != "":
		return by(ByGateway, outcome.OverBudget, "%s", e.passed.Over)
	case silent && !troubled:
		return by(ByAbl, killed, "stopped: it printed nothing and did next to nothing for %s (loop.idle_timeout)", e.idle)
	case (slow || e.last.Deadline) && !troubled:
		return by(ByAbl, outcome.Timeout, "stopped after %s (loop.call_timeout)", e.timeout)
	case (silent || slow) && fault.Class == "":
		return by(ByGateway, outcome.Unavailable, "the provider did not answer its last request")
	case fault.Class != "" && !outOfMemory:
		return fault.Class, Evidence{From: ByGateway, What: fault.What, Back: fault.Back, Paid: fault.Paid, Grown: fault.Grown}
	case e.said.Finished && e.passed.Unfinished:
		return by(ByGateway, outcome.Failed, "%s", cmp.Or(fault.What, "abl's gateway refused the agent's last request"))
	case e.said.Toolless && e.passed.Finish != "" && e.last.Signal == "" && e.fallen.class == "" && !outOfMemory:
		return by(ByGateway, outcome.Nothing, "the agent used no tool although its last answer is complete, so it did nothing of its task")
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
	case e.last.Exit == 0 && e.exit.Code == killedCode && e.job.Place == "":
		// It was process 1, which nobody inside can kill, and no network's holder tells of the engine.
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
	role, keyVar := e.job.Role.Name, e.job.Agent.Provider.KeyVar
	switch stop := e.stopped.Class; {
	case c == outcome.Refused && keyVar != "":
		return keyVar + " is refused: " + ev.What
	case c == outcome.Cut:
		return fmt.Sprintf("%s; models.%s may name a model that answers at greater length, or the phase may ask for less at once", ev.What, role)
	case c == outcome.Filtered:
		return fmt.Sprintf("%s; models.%s may name another model, or the spec may say what the phase is for", ev.What, role)
	case c == outcome.NoModel:
		return fmt.Sprintf("models.%s names %q: %s", role, e.job.Call.Model, ev.What)
	case stop != "" && stop != c && c.Transient():
		return fmt.Sprintf("%s (stopped as %s)", ev.What, stop)
	}
	return ev.What
}

// standing looks at what an ended call stood on: its network's holder and the app's,
// which end before the phase does only with the engine or by somebody's hand, and the
// app. A Verifier that came to a proper end without them has tested nothing.
func (r *Runner) standing(ctx context.Context, j Job, finished bool) (fallen, error) {
	verifies, appDir := j.Role.App && j.Cmds.URL != "", filepath.Join(r.Project.Call(j.Call.ID), "app")
	switch {
	case finished && !verifies:
	case j.Place != "" && gone(ctx, r.Engine, r.holder(j.Place)):
		return fallen{outcome.EngineGone, "the container that holds its network ended with it: the engine was stopped, or somebody stopped both"}, nil
	case verifies && gone(ctx, r.Engine, r.holder(PlaceApp)):
		return fallen{outcome.EngineGone, "the container that holds the app's network ended while the app was tested: the engine was stopped, or somebody stopped it"}, nil
	case verifies && j.Env != nil && !finished && gone(ctx, r.Engine, r.name(PlaceApp)):
		return fallen{outcome.AppGone, "the app's container ended while it was tested"}, nil
	case verifies && j.Env != nil: // by itself it may have ended: then it broke a contract
		if why, err := r.appFromOutside(ctx, r.name(PlaceApp), appDir, false); err != nil || why != "" {
			return fallen{outcome.AppGone, "the app's container ended while it was tested: " + why}, err
		}
	}
	return fallen{}, nil
}

// Evidence is what an outcome rests on.
type Evidence struct {
	From Witness `json:"from"`
	What string  `json:"what"` // what it said, in one sentence
	// When the provider wants to be asked again.
	Back time.Time `json:"back,omitzero"`
	// No waiting helps: somebody has to pay or to change something.
	Paid bool `json:"needs_person,omitempty"`
	// The prompt became too long during the call, so the next call may end otherwise.
	Grown bool `json:"grown,omitempty"`
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
