package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/event"
	"abl/orchestrator/state"
	"abl/roles"
)

// act does one step. It may note in p what later steps need.
func (l *Loop) act(ctx context.Context, step Step, p *state.Phase) (Happened, error) {
	switch step {
	case Begin:
		p.Started, p.Ended = time.Now().UTC(), time.Time{}
		floor, err := roles.LastStep(l.Project, l.Number)
		return Happened{SpecSHA: l.Spec.SHA256, SpecLen: len(l.Spec.Text), Floor: floor}, err
	case Build:
		return l.build(ctx, p)
	case CommitSrc:
		c, err := l.commit(ctx, l.Src, roles.Builder, p)
		if err == nil && p.ReportMissing && p.Class == string(roles.Done) {
			l.emit(p, event.Event{Kind: event.Note, Role: roles.Builder.Name, Text: "the run report of this call is missing"})
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
	if _, err := l.admit(roles.Builder, p); err != nil {
		return Happened{}, err
	}
	o, err := l.call(ctx, roles.Builder, p, roles.Up{})
	return Happened{Class: o.Class, Reason: o.Reason, Report: o.Report != ""}, err
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
		if !begun {
			if err := l.settled(ctx, p); err != nil {
				return Happened{}, err
			}
		}
		if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
			return Happened{}, fmt.Errorf("cannot keep the record of a call: %w", err)
		}
		if up, err = l.App.Up(ctx, key); err != nil {
			return Happened{}, err
		}
		if up.Failed != "" && !begun {
			p.AppFailed = up.Failed
			return Happened{Class: roles.Done}, l.App.Down(context.WithoutCancel(ctx))
		}
	}
	o, err := l.call(ctx, roles.Verifier, p, up)
	if err != nil {
		return Happened{}, err
	}
	return Happened{Class: o.Class, Reason: o.Reason}, l.App.Down(context.WithoutCancel(ctx))
}

// ErrChanged means that a person changed the source while its phase runs.
var ErrChanged = errors.New("the source was changed by hand")

// settled sees to it that what is about to be tested is what was committed.
// Commits that a person made on top are tested with the rest, and named.
func (l *Loop) settled(ctx context.Context, p *state.Phase) error {
	changed, err := l.Src.Differs(ctx)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("%w: %q is not as it was committed; commit it, or put it back, and run the phase again", ErrChanged, changed[0])
	}
	tip, err := l.Src.Tip()
	if err == nil && tip != p.SrcCommit {
		l.emit(p, event.Event{Kind: event.Note, Text: "commit " + tip + " in the source is not abl's; it is tested with the rest"})
		p.SrcCommit = tip
	}
	return err
}

// admit asks whether a call may begin, and says whether it has begun already:
// an earlier abl was told then that it may.
func (l *Loop) admit(role roles.Role, p *state.Phase) (begun bool, err error) {
	_, begun, err = roles.Record{Dir: l.Project.Call(l.key(role, p))}.Intent()
	if err != nil || begun {
		return begun, err
	}
	return false, l.Before(p)
}

// key is the id of the call that p is in.
func (l *Loop) key(role roles.Role, p *state.Phase) string {
	return roles.Key(l.Number, role, p.Step, p.Attempt)
}

// call runs one call and enters it in the ledger.
func (l *Loop) call(ctx context.Context, role roles.Role, p *state.Phase, up roles.Up) (roles.Outcome, error) {
	failpoint.Here("call.before")
	j, err := l.Jobs.Job(ctx, role, *p, up)
	if err != nil {
		return roles.Outcome{}, err
	}
	before, err := l.fingerprint(role)
	if err != nil {
		return roles.Outcome{}, err
	}
	o, err := l.Calls.Run(ctx, j)
	if err != nil {
		return o, err
	}
	if after, err := l.fingerprint(role); err != nil || after != before {
		l.emit(p, event.Event{Kind: event.Note, Role: role.Name, Text: "the configuration or the hooks of its repository were changed while the call ran"})
	}
	failpoint.Here("ledger.before")
	if err := l.Ledger.Append(rows(l.Number, p.Step, o)); err != nil {
		return o, fmt.Errorf("cannot enter call %s in the ledger (its outcome is kept): %w", o.Key, err)
	}
	failpoint.Here("ledger.after")
	return o, nil
}

// fingerprint is that of the role's repository, which no role can write.
func (l *Loop) fingerprint(role roles.Role) (string, error) {
	if role.Name == roles.Builder.Name {
		return l.Src.Fingerprint()
	}
	return l.Tests.Fingerprint()
}

// commit takes a snapshot of a workspace under the call's key.
func (l *Loop) commit(ctx context.Context, repo Repo, role roles.Role, p *state.Phase) (Commit, error) {
	failpoint.Here("commit.before")
	subject := roles.Subject(l.Number, role, p.Step)
	c, err := repo.Snapshot(ctx, subject, l.key(role, p))
	if err != nil {
		return c, fmt.Errorf("cannot commit the %s's work: %w", role.Name, err)
	}
	failpoint.Here("commit.after")
	l.emit(p, event.Event{Kind: event.Commit, Role: role.Name, Hash: c.Hash, Subject: subject, Text: changes(c.Changed)})
	for _, s := range c.Skipped {
		l.emit(p, event.Event{Kind: event.Note, Role: role.Name, Text: "not committed: " + s})
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
