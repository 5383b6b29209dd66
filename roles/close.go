package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/agent"
)

// close makes the outcome durable, then removes the box.
func (r *Runner) close(ctx context.Context, j Job, rec Record, intent Intent, o *Outcome) error {
	tidy, cancel := tidying(ctx)
	defer cancel()
	if err := hostfs.Reopen(j.Role.Workspace(r.Project), j.Role.Reports, "failed_specs.md", "run.sh"); err != nil {
		return err
	}
	o.Report = helper.FreshReport(j.Call.Phase, j.Call.Iteration, intent.Reports, helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports))
	failpoint.Here("call.report")
	if err := r.keep(rec); err != nil {
		return err
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

// keepAll passes by what is not there.
func keepAll(o *redact.Sanitizer, dir string, names ...string) error {
	for _, name := range names {
		if err := ownMode(filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := keepFile(o, dir, name); err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return fmt.Errorf("cannot make the output in %q safe to keep: %w", filepath.Join(dir, name), err)
		}
	}
	return nil
}

// keepFile replaces a file that is not safe, so that a hard link to it keeps what was
// there. The caller holds the lock under which its folder is written.
func keepFile(o *redact.Sanitizer, dir, name string) error {
	if err := hostfs.SweepTemps(dir); err != nil {
		return err
	}
	f, err := hostfs.Open(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return o.Keep(f, func(fill func(io.Writer) error) error {
		return hostfs.Fill(filepath.Join(dir, name), fi.Mode().Perm(), fill)
	})
}

// keep makes safe what the call printed, up to the limit, and gives it to the person.
func (r *Runner) keep(rec Record) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} { // whether it was stopped at once or only a while after
		fi, err := os.Lstat(path)
		if err != nil || !fi.Mode().IsRegular() || !r.flooded(fi.Size()) {
			continue // what is not there is told of by others
		}
		if err := errors.Join(ownMode(path), os.Truncate(path, r.Output)); err != nil {
			return fmt.Errorf("cannot shorten the output of a call: %w", err)
		}
	}
	if err := keepAll(r.Safe, rec.Dir, "stdout", "stderr"); err != nil {
		return err
	}
	if r.Root {
		for _, path := range []string{rec.Stdout(), rec.Stderr()} {
			if err := os.Chown(path, r.Person[0], r.Person[1]); err != nil {
				return fmt.Errorf("cannot take back %q: %w", path, err)
			}
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
