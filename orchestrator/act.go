package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
)

// act does one step. It may note in p what later steps need.
func (l *Loop) act(ctx context.Context, step Step, p *state.Phase) (Happened, error) {
	switch step {
	case Begin:
		p.Started, p.Ended = time.Now().UTC(), time.Time{}
		floor, err := roles.LastStep(l.Project, l.Number)
		if err != nil {
			return Happened{}, err
		}
		recheck, err := l.recheckable(p)
		return Happened{SpecSHA: l.Spec.SHA256, SpecLen: len(l.Spec.Text), Floor: floor, Recheck: recheck}, err
	case Build:
		return l.build(ctx, p)
	case CommitSrc:
		c, err := l.commit(ctx, l.Src, roles.Builder, p)
		if err == nil && p.ReportMissing && p.Class == string(outcome.Done) {
			l.emit(p, state.Event{Kind: state.Note, Role: roles.Builder.Name, Text: "the run report of this call is missing"})
		}
		return Happened{Commit: c.Hash}, err
	case Verify:
		return l.verify(ctx, p)
	case Judge:
		return l.judge(ctx, p)
	}
	return Happened{}, nil
}

// build runs the Builder.
func (l *Loop) build(ctx context.Context, p *state.Phase) (Happened, error) {
	begun, err := l.admit(roles.Builder, p)
	if err == nil && !begun && p.Iteration > 1 && p.Attempt == 1 { // else what is there is an agent's, or was there before the first
		err = l.settled(ctx, roles.Builder, p)
	}
	if err != nil {
		return Happened{}, err
	}
	o, err := l.call(ctx, roles.Builder, p, roles.Up{})
	h := cameTo(o)
	h.Report = o.Report != ""
	return h, err
}

// verify starts the app and runs the Verifier against it. An app that does not
// start is a finding of its own, and no Verifier is called.
func (l *Loop) verify(ctx context.Context, p *state.Phase) (Happened, error) {
	key := l.key(roles.Verifier, p)
	rec := roles.Record{Dir: l.Project.Call(key)}
	_, ended, err := rec.Outcome()
	if err != nil {
		return Happened{}, err
	}
	var up roles.Up
	if !ended {
		begun, err := l.admit(roles.Verifier, p)
		if err != nil {
			return Happened{}, err
		}
		if p.Recheck {
			if p.SrcCommit, err = l.Src.Tip(); err != nil {
				return Happened{}, err
			}
		}
		if !begun {
			if err := l.settled(ctx, roles.Verifier, p); err != nil {
				return Happened{}, err
			}
		}
		if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
			return Happened{}, fmt.Errorf("cannot keep the record of a call: %w", err)
		}
		if !begun {
			p.Regressed, p.AppFailed, err = l.regress(ctx, p)
			if err != nil || len(p.Regressed) > 0 || p.AppFailed != "" || p.Recheck {
				return Happened{Class: outcome.Done}, err
			}
		}
		if up, err = l.App.Up(ctx, key); err != nil {
			return Happened{}, err
		}
		if up.Failed != "" && !begun {
			p.AppFailed = up.Failed
			return Happened{Class: outcome.Done}, l.App.Down(context.WithoutCancel(ctx), key)
		}
	}
	o, err := l.call(ctx, roles.Verifier, p, up)
	if err != nil {
		return Happened{}, err
	}
	return cameTo(o), l.App.Down(context.WithoutCancel(ctx), key)
}

// cameTo is what a call came to.
func cameTo(o roles.Outcome) Happened {
	return Happened{
		Class: o.Class, Reason: o.Reason, Back: o.Evidence.Back, Paid: o.Evidence.Paid, Took: time.Duration(o.Duration) * time.Millisecond,
	}
}

// ErrChanged means that a person changed the source while its phase runs.
var ErrChanged = errors.New("the source was changed by hand")

// settled sees to it that what a call of the role is about is what was committed.
// Commits that a person made on top are taken with the rest, and named; what is not
// committed is the person's to decide about.
func (l *Loop) settled(ctx context.Context, role roles.Role, p *state.Phase) error {
	changed, err := l.Src.Differs(ctx, "")
	if err != nil {
		return err
	}
	if len(changed) > 0 && l.TakeMine {
		if err := l.takeMine(ctx, role, p); err != nil {
			return err
		}
		changed, err = l.Src.Differs(ctx, "")
	}
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		more := ""
		if n := len(changed) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		return fmt.Errorf("%w: %q is not as it was committed%s", ErrChanged, changed[0], more)
	}
	tip, err := l.Src.Tip()
	if err == nil && tip != p.SrcCommit {
		l.emit(p, state.Event{Kind: state.Note, Text: "commit " + tip + " in the source is not abl's; it counts with the rest"})
		p.SrcCommit = tip
	}
	return err
}

// takeMine commits what a person changed by hand, apart from what agents did. They
// may do so again before the same call, so its key names the commit that it stands on.
func (l *Loop) takeMine(ctx context.Context, role roles.Role, p *state.Phase) error {
	tip, err := l.Src.Tip()
	if err != nil {
		return err
	}
	on := tip[:min(len(tip), 7)]
	subject := fmt.Sprintf("phase%d/person/step-%d on %s", l.Number, p.Step, on)
	c, err := l.Src.Snapshot(ctx, subject, l.key(role, p)+"-person-"+on, func(state.Found) error { return nil })
	if err != nil {
		return fmt.Errorf("cannot commit your changes: %w", err)
	}
	p.SrcCommit = c.Hash
	l.emit(p, state.Event{Kind: state.Commit, Hash: c.Hash, Subject: subject, Text: "your changes, " + changes(c.Changed)})
	return nil
}

// admit asks whether a call may begin, and says whether it has begun already:
// an earlier abl was told then that it may.
func (l *Loop) admit(role roles.Role, p *state.Phase) (begun bool, err error) {
	_, begun, err = roles.Record{Dir: l.Project.Call(l.key(role, p))}.Intent()
	if err != nil || begun {
		return begun, err
	}
	if err := l.specDrift(); err != nil || p.Recheck { // what calls nobody costs nothing
		return false, err
	}
	return false, l.Before(p)
}

// key is the id of the call that p is in.
func (l *Loop) key(role roles.Role, p *state.Phase) string {
	return roles.Key(l.Number, role, p.Step, p.Attempt)
}

// mostHolders is how often a call that could not begin, since somebody ended what
// holds its network, is begun with another.
const mostHolders = 3

// call runs one call and enters it in the ledger.
func (l *Loop) call(ctx context.Context, role roles.Role, p *state.Phase, up roles.Up) (o roles.Outcome, err error) {
	failpoint.Here("call.before")
	for range mostHolders {
		var j roles.Job
		if j, err = l.Jobs.Job(ctx, role, *p, up); err != nil {
			return o, err
		}
		if err := l.seal(role, p); err != nil {
			return o, err
		}
		if o, err = l.Calls.Run(ctx, j); !errors.Is(err, roles.ErrHolder) || ctx.Err() != nil {
			break
		}
		l.emit(p, state.Event{Kind: state.Note, Role: role.Name, Text: err.Error() + "; another is made"})
	}
	if err == nil {
		err = l.Alone()
	}
	if err != nil {
		return o, err
	}
	failpoint.Here("ledger.before")
	if err := l.Ledger.Append(rows(l.Number, p.Step, o)); err != nil {
		return o, fmt.Errorf("cannot enter call %s in the ledger (its outcome is kept): %w", o.Key, err)
	}
	failpoint.Here("ledger.after")
	if err := l.unmoved(role, p); err != nil {
		return o, err
	}
	return o, l.sweepUnlessCommitted(ctx, role, p, o)
}

// commit takes a snapshot of a workspace under the call's key.
func (l *Loop) commit(ctx context.Context, repo Repo, role roles.Role, p *state.Phase) (Commit, error) {
	failpoint.Here("commit.before")
	if err := l.Alone(); err != nil {
		return Commit{}, err
	}
	subject := roles.Subject(l.Number, role, p.Step, p.Attempt)
	c, err := repo.Snapshot(ctx, subject, l.key(role, p), l.keepFound(role, p))
	if err != nil {
		return c, fmt.Errorf("cannot commit the %s's work: %w", role.Name, err)
	}
	failpoint.Here("commit.after")
	l.emit(p, state.Event{Kind: state.Commit, Role: role.Name, Hash: c.Hash, Subject: subject, Text: changes(c.Changed)})
	for _, s := range c.Skipped {
		l.emit(p, state.Event{Kind: state.Note, Role: role.Name, Text: "not committed: " + s})
	}
	return c, nil
}

// changes counts changed files in words.
func changes(n int) string {
	if n == 1 {
		return "1 file changed"
	}
	return fmt.Sprintf("%d files changed", n)
}
