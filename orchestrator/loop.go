package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	// Fingerprint changes when config, hooks or what HEAD names do.
	Fingerprint() (string, error)
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

func (l *Loop) phase() *state.Phase { return l.File.Phases[fmt.Sprint(l.Number)] }

func (l *Loop) emit(p *state.Phase, e event.Event) {
	e.Time, e.Phase, e.Round, e.Iteration, e.Step = time.Now().UTC(), l.Number, p.Round, p.Iteration, p.Step
	l.Out.Emit(e)
}
