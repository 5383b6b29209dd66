package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
	"abl/roles/boundary"
)

// close writes the outcome, then removes the container.
func (r *Runner) close(ctx context.Context, j Job, rec roles.Record, intent roles.Intent, o *roles.Outcome) error {
	tidy, cancel := boundary.CleanupContext(ctx)
	defer cancel()
	if err := hostfs.Reopen(j.Role.Workspace(r.Project), j.Role.Reports, failedspecs.FileName, "run.sh"); err != nil {
		return err
	}
	o.Report = helper.FreshReport(j.Call.Phase, j.Call.Iteration, intent.Reports,
		helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports))
	failpoint.Here("call.report")
	if err := r.cleanCall(rec); err != nil {
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
	r.emit(j, state.Event{
		Kind:     state.CallEnd,
		Class:    string(o.Class),
		Text:     o.Reason,
		Evidence: o.Evidence.String(),
		Until:    o.Evidence.Back,
		MS:       o.Duration,
		Exit:     &o.Exit,
	})
	for _, u := range o.Usage {
		r.emit(j, state.Event{Kind: state.Usage, Model: u.Model, Tokens: u.Total, CostUSD: r.cost(u)})
	}
	if err := r.remove(tidy, j); err != nil {
		return fmt.Errorf("cannot remove the %s's container: %w", j.Role.Name, err)
	}
	failpoint.Here("call.removed")
	return nil
}

// cost returns the cost of a usage in US dollars, ledger.Subscription or ledger.Unknown. It
// returns "" if nothing was used.
func (r *Runner) cost(u agent.Usage) string {
	if u.Plan {
		return ledger.Subscription
	}
	if u.Cost != nil {
		return u.Cost.String()
	}
	if usd, known := r.Prices.Cost(u.Model, time.Now(), u.Count); known && !u.Part {
		return usd.String()
	}
	if !u.Part && u.Total != nil && *u.Total == 0 {
		return ""
	}
	return ledger.Unknown
}

// cleanCall cuts the call's output at the limit, cleans it and gives it to the user.
func (r *Runner) cleanCall(rec roles.Record) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		// A call that exceeded the limit may have printed more before it was stopped.
		if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && r.flooded(fi.Size()) {
			if err := errors.Join(roles.RestoreMode(path), os.Truncate(path, r.Output)); err != nil {
				return fmt.Errorf("cannot shorten the output of a call: %w", err)
			}
		}
		err := roles.CleanOutput(r.Safe, rec.Dir, filepath.Base(path))
		if err == nil && r.Root {
			err = os.Chown(path, r.Owner[0], r.Owner[1])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// closeGate closes the call's gateway and sets its usage in o. The usage that the agent reported
// moves to o.Claimed.
func (r *Runner) closeGate(ctx context.Context, j Job, o *roles.Outcome) (traffic roles.Traffic, err error) {
	o.Source = roles.CountedByCLI
	if j.Gate == nil {
		return traffic, nil
	}
	tidy, cancel := boundary.CleanupContext(ctx)
	defer cancel()
	if traffic, err = j.Gate.Close(tidy, j.Call.ID); err != nil {
		return traffic, fmt.Errorf("cannot close the gateway of call %s: %w", j.Call.ID, err)
	}
	for _, note := range traffic.Notes {
		r.emit(j, state.Event{Kind: state.Note, Text: note})
	}
	if j.Agent.Provider.API == "" {
		return roles.Traffic{}, nil // the gateway only connects to registries
	}
	o.Source, o.Claimed = roles.CountedByGate, o.Usage
	o.Usage, o.Requests, o.Over = traffic.Usage, traffic.Requests, traffic.Over
	o.Charged, o.Finish = traffic.Charged, traffic.Finish
	return traffic, nil
}

// ending collects the facts about the end of a call.
type ending struct {
	exit    sandbox.Exit
	stopped roles.Stopped // by abl
	last    helper.RunEnd
	said    agent.Result
	passed  roles.Traffic // through its gateway
	lost    loss
	job     Job
	timeout time.Duration
	idle    time.Duration
	output  int64
}

// loss describes a container that a call needs and that ended before the call.
type loss struct {
	class outcome.Outcome
	what  string
}

// classify decides how a call ended, and returns the reason and the evidence. A successful end
// reported by the agent counts, with three exceptions, because CLIs report success after errors
// and truncated answers: its output was cut, its exit code is unknown, or the gateway saw that
// the model had not finished. An agent may leave its last answer, but not because abl stopped
// it. If the end was not successful, decide finds the cause.
func (e ending) classify() (outcome.Outcome, string, roles.Evidence) {
	unfit := e.unproven() != "" || e.passed.Unfinished || e.passed.Left && e.stopped.Class != "" || e.lost.class != "" ||
		slices.Contains([]outcome.Outcome{outcome.Flood, outcome.Disk, outcome.Lost, outcome.Unproven, outcome.EngineGone},
			e.stopped.Class)
	if e.said.Finished && !unfit {
		return outcome.Done, "", roles.Evidence{}
	}
	c, ev := e.decide()
	if e.exit.Forced != "" {
		ev.What += fmt.Sprintf("; the engine could not stop the container (%s), so abl killed its processes", e.exit.Forced)
	}
	reason := e.reason(c, ev)
	if e.last.Full != "" && (ev.From == roles.ByExit || ev.From == roles.ByAgent) {
		reason += "; " + e.last.Full
	}
	return c, reason, ev
}

// unproven returns why a successful end of an agent of the user's own does not count, "" if it does.
// Such an agent may report success after an error, or after it rejected a tool.
func (e ending) unproven() string {
	switch {
	case !e.job.Agent.Own || e.job.Agent.Provider.API == "" || !e.said.Finished:
	case e.passed.Calls:
		return "the agent ended without running the tool that the model's last response calls"
	case e.passed.Finish == "":
		return "the agent ended without a successful response of its model"
	}
	return ""
}

// stoppedByAbl returns why abl stopped the call, if no other record can say more. Idle and slow
// calls are not among these.
func (e ending) stoppedByAbl() (why string, is bool) {
	switch e.stopped.Class {
	case outcome.Unproven, outcome.EngineGone:
		return e.stopped.Reason, true
	case outcome.Disk:
		return "stopped: " + e.stopped.Reason, true
	case outcome.Flood:
		return fmt.Sprintf("stopped: it printed more than %d bytes (limits.output)", e.output), true
	case outcome.Interrupted:
		return "stopped on request", true
	case outcome.Lost:
		return cmp.Or(e.stopped.Reason, "something other than abl removed its container"), true
	}
	return "", false
}

// decide returns the outcome of an unsuccessful call and the evidence. The actions of abl and
// the gateway's log come first, then the agent's own record, then the exit code. A call that was
// idle or slow may be the provider's fault, which only the gateway can see.
func (e ending) decide() (outcome.Outcome, roles.Evidence) {
	by := func(who roles.Witness, c outcome.Outcome, form string, args ...any) (outcome.Outcome, roles.Evidence) {
		return c, roles.Evidence{From: who, What: fmt.Sprintf(form, args...)}
	}
	fault, killed := e.passed.Fault, e.stopped.Class
	silent, slow := killed == outcome.Idle, killed == outcome.Timeout
	if why, is := e.stoppedByAbl(); is {
		return by(roles.ByAbl, killed, "%s", why)
	}
	troubled, outOfMemory := fault.Class != "" || e.passed.Waiting, e.exit.OOMKilled && e.exit.Code == boundary.KilledCode
	switch {
	case e.passed.Over != "":
		return by(roles.ByGateway, outcome.OverBudget, "%s", e.passed.Over)
	case silent && !troubled:
		return by(roles.ByAbl, killed, "stopped: it printed nothing and was almost idle for %s (loop.idle_timeout)", e.idle)
	case (slow || e.last.Deadline) && !troubled:
		return by(roles.ByAbl, outcome.Timeout, "stopped after %s (loop.call_timeout)", e.timeout)
	case (silent || slow) && fault.Class == "":
		return by(roles.ByGateway, outcome.Unavailable, "the provider did not respond to its last request")
	case fault.Class != "" && !outOfMemory:
		return fault.Class, roles.Evidence{
			From:  roles.ByGateway,
			What:  fault.What,
			Back:  fault.Back,
			Paid:  fault.Paid,
			Grown: fault.Grown,
		}
	case e.said.Finished && e.passed.Unfinished:
		return by(roles.ByGateway, outcome.Failed, "%s", cmp.Or(fault.What, "abl's gateway refused the agent's last request"))
	case e.unproven() != "":
		return by(roles.ByGateway, outcome.Nothing, "%s", e.unproven())
	case e.said.Toolless && e.passed.Finish != "" && e.last.Signal == "" && e.lost.class == "" && !outOfMemory:
		return by(roles.ByGateway, outcome.Nothing, "the agent used no tool although its last answer is complete, so it did not work on its task")
	case e.said.Trouble != "" && !outOfMemory:
		return by(roles.ByAgent, e.said.Trouble, "%s", e.said.Reason)
	case e.exit.OOMKilled:
		return by(roles.ByEngine, outcome.OutOfMemory, "out of memory (limits.memory)")
	case e.lost.class != "":
		return by(roles.ByEngine, e.lost.class, "%s", e.lost.what)
	case e.last.Late:
		return outcome.Running, roles.Evidence{}
	case e.last.Error != "":
		return by(roles.ByExit, outcome.Failed, "could not be started: %s", e.last.Error)
	case e.last.Signal != "":
		return by(roles.ByExit, outcome.Crashed, "ended by signal %s", e.last.Signal)
	case e.last.Exit == 0 && e.exit.Code == boundary.KilledCode && e.job.Place == "":
		// Process 1 was killed, which no program inside can do, and without a network there is
		// no holder that shows whether the engine was stopped.
		return by(roles.ByEngine, outcome.EngineGone, "its container was killed from outside: the engine or the container was stopped")
	case e.last.Exit == 0 && e.exit.Code == boundary.KilledCode: // abl-run had no time to report
		return by(roles.ByExit, outcome.Crashed, "ended by SIGKILL, which abl did not send")
	case fault.Class == "" && fault.What != "":
		return by(roles.ByGateway, outcome.Failed, "%s", fault.What)
	case e.said.Reason != "":
		return by(roles.ByAgent, outcome.Failed, "%s", e.said.Reason)
	}
	return by(roles.ByExit, outcome.Failed, "ended with exit code %d and no result", e.exit.Code)
}

// reason returns the sentence for the user.
func (e ending) reason(c outcome.Outcome, ev roles.Evidence) string {
	role, keyVar := e.job.Role.Name, e.job.Agent.Provider.KeyVar
	switch stop := e.stopped.Class; {
	case c == outcome.Refused && keyVar != "":
		return keyVar + " is refused: " + ev.What
	case c == outcome.Cut:
		return fmt.Sprintf("%s; set models.%s to a model with a higher output limit, or split the phase", ev.What, role)
	case c == outcome.Filtered:
		return fmt.Sprintf("%s; set models.%s to another model, or explain the purpose of the phase in its spec", ev.What,
			role)
	case c == outcome.NoModel:
		return fmt.Sprintf("models.%s names %q: %s", role, e.job.Call.Model, ev.What)
	case stop != "" && stop != c && c.Transient():
		return fmt.Sprintf("%s (stopped as %s)", ev.What, stop)
	}
	return ev.What
}

// findLoss checks the containers that an ended call needs: the holders of its network and of the
// app's network, and the app. Holders end before the phase only if the engine or something else
// stops them. A Verifier's proper end without them does not count: it has tested nothing.
func (r *Runner) findLoss(ctx context.Context, j Job, finished bool) (loss, error) {
	verifies, appDir := j.Role.App && j.Cmds.URL != "", filepath.Join(r.Project.Call(j.Call.ID), "app")
	switch {
	case finished && !verifies:
	case j.Place != "" && r.Gone(ctx, r.HolderName(j.Place)):
		return loss{outcome.EngineGone, "the container that holds its network ended with it: the engine or both containers were stopped"}, nil
	case verifies && r.Gone(ctx, r.HolderName(boundary.PlaceApp)):
		return loss{outcome.EngineGone, "the container that holds the app's network ended while the app was tested: the engine or the container was stopped"}, nil
	case verifies && j.Env != nil && !finished && r.Gone(ctx, r.Name(boundary.PlaceApp)):
		return loss{outcome.AppGone, "the app's container ended while it was tested"}, nil
	case verifies && j.Env != nil: // an app that ended without help broke a contract instead
		if why, err := app.EndedFromOutside(ctx, r.Containers, r.Name(boundary.PlaceApp), appDir, false); err != nil || why != "" {
			return loss{outcome.AppGone, "the app's container ended while it was tested: " + why}, err
		}
	}
	return loss{}, nil
}
