package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/event"
	"abl/orchestrator/ledger"
	"abl/orchestrator/project"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/roles"
)

// Commit is a snapshot as the loop needs it.
type Commit struct {
	Hash    string
	Changed int      // paths that differ from the parent
	Skipped []string // what was left out, with the reason
}

// Repo is the repository of one workspace.
type Repo interface {
	// Snapshot commits the tree under a call's key; a second time it returns the first commit.
	Snapshot(ctx context.Context, subject, key string) (Commit, error)
	Tag(ctx context.Context, name, commit string) error
	// Tip is the last commit.
	Tip() (string, error)
	// Differs lists paths that no longer equal the last commit.
	Differs(ctx context.Context) ([]string, error)
}

// Caller runs one agent call to its end, or finds the end that it had.
type Caller interface {
	Run(context.Context, roles.Job) (roles.Outcome, error)
}

// App is the system under test.
type App interface {
	Up(ctx context.Context, key string) (roles.Up, error)
	Down(context.Context) error
}

// Ledger takes the rows of one ended call; rows of a call that it has are not added again.
type Ledger interface {
	Append(rows []ledger.Row) error
}

// Jobs makes the job of a call.
type Jobs interface {
	Job(ctx context.Context, role roles.Role, p state.Phase, up roles.Up) (roles.Job, error)
}

// Loop takes one phase from where it rests to where it rests next.
type Loop struct {
	Number  int
	Max     int // iterations a round
	Spec    spec.Spec
	Project project.Project
	File    *state.File
	Save    func() error
	Calls   Caller
	App     App
	Jobs    Jobs
	Src     Repo
	Tests   Repo
	Ledger  Ledger
	Before  func(*state.Phase) error // asked before every call that has not begun: budgets
	Out     event.Sink
}

// Result is where a phase came to rest.
type Result struct {
	Status state.Status
	Phase  state.Phase
}

// Run goes on until the phase rests, the context ends or something stops it.
// Whatever happens, what was reached is saved first.
func (l *Loop) Run(ctx context.Context) (Result, error) {
	for {
		p := *l.phase()
		step, err := Next(p)
		if err != nil {
			return Result{}, err
		}
		if step == Rest {
			return Result{p.Status, p}, nil
		}
		if ctx.Err() != nil {
			return Result{p.Status, p}, context.Cause(ctx)
		}
		h, err := l.act(ctx, step, &p)
		if err != nil {
			return Result{p.Status, p}, because(ctx, err)
		}
		was := p
		p, stop := After(p, step, h, l.Max)
		if step == Judge && judgedFor(was, p) {
			p.History = append(slices.Clip(p.History), record(was, h))
		}
		if err := l.save(p); err != nil {
			return Result{p.Status, p}, err
		}
		if stop != nil {
			return Result{p.Status, p}, stop
		}
	}
}

// because puts the reason why ctx ended in the place of an error that says no
// more than that it ended.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// judgedFor is whether a judgement ended the iteration: it did not when the
// Verifier is asked once more, or called again because it did not end properly.
func judgedFor(was, now state.Phase) bool {
	return now.Iteration != was.Iteration || now.Status != state.Verifying
}

// record is what is remembered of the iteration that was judged.
func record(was state.Phase, h Happened) state.IterationRecord {
	return state.IterationRecord{
		Round: was.Round, Iteration: was.Iteration, Step: was.Step, Verdict: string(h.Verdict), Entries: len(h.Entries),
		SrcCommit: was.SrcCommit, TestsCommit: h.Commit, When: time.Now().UTC(),
	}
}

func (l *Loop) phase() *state.Phase { return l.File.Phases[fmt.Sprint(l.Number)] }

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

// save makes durable where the phase rests now, and with it the id of the call
// that is about to begin.
func (l *Loop) save(p state.Phase) error {
	switch p.Status {
	case state.Building:
		p.Call = l.key(roles.Builder, &p)
	case state.Verifying:
		p.Call = l.key(roles.Verifier, &p)
	}
	if next, err := Next(p); err == nil && next == Rest {
		p.Ended = time.Now().UTC()
	}
	l.File.Phases[fmt.Sprint(l.Number)] = &p
	l.File.Updated = time.Now().UTC()
	failpoint.Here("state.before")
	if err := l.Save(); err != nil {
		return fmt.Errorf("cannot save the state: %w", err)
	}
	failpoint.Here("state.after")
	return nil
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
	o, err := l.Calls.Run(ctx, j)
	if err != nil {
		return o, err
	}
	failpoint.Here("ledger.before")
	if err := l.Ledger.Append(rows(l.Number, p.Step, o)); err != nil {
		return o, fmt.Errorf("cannot enter call %s in the ledger (its outcome is kept): %w", o.Key, err)
	}
	failpoint.Here("ledger.after")
	return o, nil
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
	l.emit(p, event.Event{Kind: event.Commit, Role: role.Name, Hash: c.Hash, Subject: subject, Text: fmt.Sprintf("%d files changed", c.Changed)})
	for _, s := range c.Skipped {
		l.emit(p, event.Event{Kind: event.Note, Role: role.Name, Text: "not committed: " + s})
	}
	return c, nil
}

func (l *Loop) emit(p *state.Phase, e event.Event) {
	e.Time, e.Phase, e.Round, e.Iteration, e.Step = time.Now().UTC(), l.Number, p.Round, p.Iteration, p.Step
	l.Out.Emit(e)
}
