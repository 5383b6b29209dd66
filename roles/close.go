package roles

import (
	"context"
	"fmt"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/ledger"
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
	o.Report = helper.FreshReport(j.Call.Phase, j.Call.Iteration, intent.Reports, reports(j.Role, r.Project))
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

// maxReports bounds how many entries of a report directory are looked at.
const maxReports = 10_000

// reports lists a role's run reports with their modification times, in ns.
func reports(r Role, p state.Project) map[string]int64 {
	found := map[string]int64{}
	entries, err := hostfs.List(r.Workspace(p), r.Reports, maxReports)
	if err != nil {
		return found // none yet, or not a directory: no report either way
	}
	for _, e := range entries {
		if e.Size > 0 {
			found[e.Name] = e.Mod.UnixNano()
		}
	}
	return found
}
