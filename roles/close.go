package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/ledger"
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
	if err := r.keep(j, rec); err != nil {
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
	if err := r.Engine.Remove(tidy, r.box(j)); err != nil {
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

// keep makes safe what the call printed, gives it to the person, and makes the
// role's last log name it again.
func (r *Runner) keep(j Job, rec Record) error {
	if err := r.trim(rec); err != nil {
		return err
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
	printed, err := os.Stat(rec.Stdout())
	if err != nil {
		return fmt.Errorf("cannot keep the output of call %s: %w", j.Call.ID, err)
	}
	last, err := os.Stat(r.Project.LastLog(j.Role.Name))
	if err == nil && os.SameFile(printed, last) {
		return nil
	}
	return r.pointLast(j, rec)
}

// trim takes from what the call printed what is beyond the limit, whether it was
// stopped at once or only a while after.
func (r *Runner) trim(rec Record) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		fi, err := os.Lstat(path)
		if err != nil || !fi.Mode().IsRegular() || !r.flooded(fi.Size()) {
			continue // what is not there is told of by others
		}
		if err := errors.Join(ownMode(path), os.Truncate(path, r.Output)); err != nil {
			return fmt.Errorf("cannot shorten the output of a call: %w", err)
		}
	}
	return nil
}

// keep makes safe what an app that is gone has printed.
func (a *App) keep(key string) error { return keepAll(a.Safe, a.dir(key), "app.log", "events") }
