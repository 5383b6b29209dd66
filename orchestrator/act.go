package orchestrator

import (
	"context"
	"fmt"
	"os"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/app"
)

// acts maps each step to the function that does it. It may record in p what later steps need.
var acts = map[Step]func(*Loop, context.Context, *state.Phase) (Happened, error){
	Begin:     (*Loop).begin,
	Build:     (*Loop).build,
	CommitSrc: (*Loop).commitSrc,
	Verify:    (*Loop).verify,
	Judge:     (*Loop).judge,
	// After does all of it.
	NextAttempt: func(*Loop, context.Context, *state.Phase) (Happened, error) { return Happened{}, nil },
}

// begin begins or continues the phase.
func (l *Loop) begin(_ context.Context, p *state.Phase) (Happened, error) {
	p.Started, p.Ended = time.Now().UTC(), time.Time{}
	floor, err := roles.LastStep(l.Project, l.Number)
	if err != nil {
		return Happened{}, err
	}
	recheck, err := l.recheckable(p)
	this := l.spec()
	return Happened{
		SpecSHA: this.SHA256,
		SpecLen: len(this.Text),
		Setting: l.Settings,
		Floor:   floor,
		Recheck: recheck,
	}, err
}

// commitSrc commits the Builder's work.
func (l *Loop) commitSrc(ctx context.Context, p *state.Phase) (Happened, error) {
	t := l.turn(roles.Builder, p)
	c, err := t.commit(ctx)
	if err == nil && p.ReportMissing && p.Class == string(outcome.Done) {
		t.note("the run report of this call is missing")
	}
	return Happened{Commit: c.Hash}, err
}

// build runs the Builder.
func (l *Loop) build(ctx context.Context, p *state.Phase) (Happened, error) {
	t := l.turn(roles.Builder, p)
	begun, err := t.admit()
	if err == nil && !begun {
		err = t.checkForEdits(ctx)
	}
	if err != nil {
		return Happened{}, err
	}
	var up app.Up
	if !begun {
		up.Failed, err = l.App.Prepared(ctx, t.key)
	}
	if err != nil {
		return Happened{}, err
	}
	o, err := t.call(ctx, up)
	h := happenedIn(o)
	h.Report = o.Report != ""
	return h, err
}

// verify starts the app and runs the Verifier against it. If the app does not start, that is the
// finding, and verify does not call the Verifier.
func (l *Loop) verify(ctx context.Context, p *state.Phase) (Happened, error) {
	v := l.turn(roles.Verifier, p)
	_, ended, err := v.record().Outcome()
	if err != nil {
		return Happened{}, err
	}
	var up app.Up
	if !ended {
		begun, err := v.admit()
		if err != nil {
			return Happened{}, err
		}
		if p.Recheck {
			if p.SrcCommit, err = l.Src.Tip(); err != nil {
				return Happened{}, err
			}
		}
		if !begun {
			if err := v.checkSource(ctx); err != nil {
				return Happened{}, err
			}
		}
		if err := os.MkdirAll(v.record().Dir, 0o755); err != nil {
			return Happened{}, fmt.Errorf("cannot create the record of a call: %w", err)
		}
		if !begun {
			p.Regressed, p.AppFailed, err = v.regress(ctx)
			if err != nil || len(p.Regressed) > 0 || p.AppFailed != "" || p.Recheck {
				return Happened{Class: outcome.Done}, err
			}
		}
		if up, err = l.App.Up(ctx, v.key, p.SrcCommit); err != nil {
			return Happened{}, err
		}
		if up.Failed != "" && !begun {
			p.AppFailed = up.Why()
			return Happened{Class: outcome.Done}, l.App.Down(context.WithoutCancel(ctx), v.key)
		}
	}
	o, err := v.call(ctx, up)
	if err != nil {
		return Happened{}, err
	}
	return happenedIn(o), l.App.Down(context.WithoutCancel(ctx), v.key)
}

// happenedIn returns the result of a call.
func happenedIn(o roles.Outcome) Happened {
	return Happened{
		Class:   o.Class,
		Reason:  o.Reason,
		Back:    o.Evidence.Back,
		Paid:    o.Evidence.Paid,
		Grown:   o.Evidence.Grown,
		Unheard: o.Class == outcome.Network && o.Requests == 0,
		Took:    time.Duration(o.Duration) * time.Millisecond,
	}
}
