package orchestrator

import (
	"abl/orchestrator/evidence"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"abl/internal/helper"
	"abl/internal/ledger"
	"abl/internal/redact"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
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
	// Snapshot sweeps the tree, has keep keep what was found, and commits it under a
	// call's key; a second time it does nothing and returns the first commit.
	Snapshot(ctx context.Context, subject, key string, keep func(state.Found) error) (Commit, error)
	// Sweep does the same for a call whose work is not committed.
	Sweep(ctx context.Context, keep func(state.Found) error) error
	Tag(ctx context.Context, name, commit string) error
	// Tip is the last commit.
	Tip() (string, error)
	// Seal says what the repository is like now, and refuses what must not be in it.
	Seal() (state.Seal, error)
	// Differs lists paths that no longer equal a commit, "" for the last one.
	Differs(ctx context.Context, commit string) ([]string, error)
	// TreeHash returns git's hash of a commit's tree.
	TreeHash(commit string) (string, error)
	// WorkKey stands for the content of the work tree, without what git ignores.
	WorkKey(ctx context.Context) (string, error)
	// Restore writes the committed files again that a power cut took, and returns their paths. What they
	// held is copied below aside.
	Restore(ctx context.Context, aside string) ([]string, error)
	// TagCommit is the commit that a tag names; false when there is no such tag.
	TagCommit(name string) (string, bool, error)
	// TreeKey stands for what a commit holds but the named files and folders at its top.
	TreeKey(commit string, without ...string) (string, error)
}

// Caller runs one agent call to its end, or finds the end that it had.
type Caller interface {
	Run(context.Context, roles.Job) (roles.Outcome, error)
}

// App is the system under test.
type App interface {
	// Up starts it from a commit of the source.
	Up(ctx context.Context, key, commit string) (roles.Up, error)
	// Prepared installs the dependencies that the Builder's workspace lacks, and reports what failed.
	Prepared(ctx context.Context, key string) (failed string, err error)
	Down(ctx context.Context, key string) error
}

// Ledger takes the rows of one ended call; rows of a call that it has are not added again.
type Ledger interface {
	Append(rows []ledger.Row) error
}

// Jobs makes the job of a call.
type Jobs interface {
	Job(ctx context.Context, role roles.Role, p state.Phase, up roles.Up) (roles.Job, error)
	// Commands is what abl-cmd offers in a box of the role.
	Commands(role roles.Role, p state.Phase, up roles.Up) helper.CmdSpec
}

// Strictness is what a pass is held to.
type Strictness struct {
	Kind   string // of the system, "" for HTTP
	NoNull string // why the tests are not tried against apps that answer with nothing, "" where they are
	// StrengthTime is how long the replays may take together in which the app's answers are
	// altered, of tests that took so long; none are made for 0, or without it.
	StrengthTime func(took time.Duration) time.Duration
	Allow        evidence.Allowed
}

// Loop takes one phase from where it rests to where it rests next.
type Loop struct {
	Number int
	Max    int // iterations a round
	// NoProgress is after how many iterations in a row that move nothing the phase
	// ends as stuck, 0 for never.
	NoProgress int
	// NoVerdict is after how many answers in a row that leave the same without a
	// verdict the round ends, 0 for never.
	NoVerdict int
	Spec      spec.Spec
	Specs     HeldSpecs // the specs of phases 1 to Number, Spec among them
	Settings  string    // hash of what else the phase is held to (Asked)
	Project   state.Project
	File      *state.File
	Save      func() error
	Calls     Caller
	App       App
	Jobs      Jobs
	Replay    Replays // nil: the person switched evidence off
	Strictness
	TestNames func(context.Context) ([]string, error) // of the Verifier's files and tests, which reach no Builder
	Src       Repo
	Tests     Repo
	Ledger    Ledger
	Alone     func() error            // asked before every effect: whether this abl still holds the project
	Before    func(call string) error // asked before every call that has not begun: budgets
	Outages   Outages
	TakeMine  bool // what a person changed in the source by hand is committed, and gone on from
	Out       state.Sink
	Safe      *redact.Sanitizer // keeps secrets out of what is kept of agents' words

	heard   bool // a call of this run reached its provider
	noRoute bool // none did, the last one included
}

// Run goes on until the phase rests, the context ends or something stops it, and returns
// where the phase is then.
// Whatever happens, what was reached is saved first.
func (l *Loop) Run(ctx context.Context) (state.Phase, error) {
	if err := l.noteBoot(false); err != nil {
		return *l.phase(), err
	}
	for {
		p := *l.phase()
		step, err := Next(p)
		if err != nil {
			return state.Phase{}, err
		}
		if step == Rest {
			return p, nil
		}
		if ctx.Err() != nil {
			return p, context.Cause(ctx)
		}
		p, err = l.advance(ctx, p, step)
		if damaged, is := errors.AsType[*roles.Damaged](err); is {
			err = l.setAside(&p, damaged)
		}
		if err != nil {
			return p, err
		}
	}
}

// advance does one step and saves where the phase rests then. An error may come with a phase that
// was saved: the run ends there.
func (l *Loop) advance(ctx context.Context, p state.Phase, step Step) (state.Phase, error) {
	anew, err := l.refined(&p, step)
	if err != nil {
		return p, err
	}
	if anew {
		step = Begin
	}
	if step, err = l.reopened(&p, step); err != nil {
		return p, err
	}
	if err := l.waitOut(ctx, step, &p); err != nil {
		return p, err
	}
	if err := l.Alone(); err != nil {
		return p, err
	}
	h, err := acts[step](l, ctx, &p)
	if err != nil {
		return p, because(ctx, err)
	}
	if step == Build || step == Verify {
		l.noRoute = h.Unheard && !l.heard
		l.heard = l.heard || !h.Unheard
	}
	h.Retry = l.retry(&p)
	was := p
	p, stop := After(p, step, h, l.Max)
	if step == Judge && judgedFor(was, p) {
		p.History = append(slices.Clip(p.History), record(was, h))
		if err := l.keepAudit(was, p, h); err != nil {
			return was, err
		}
	}
	if p.Status == state.Passed {
		l.outdate(&p, h.Tree)
	}
	if err := l.save(p); err != nil {
		return p, err
	}
	return p, stop
}

// setAside renames a damaged file of a record and reports it, so that the step can be done again
// without the file.
func (l *Loop) setAside(p *state.Phase, damaged *roles.Damaged) error {
	if err := l.Alone(); err != nil {
		return err
	}
	name, err := damaged.SetAside()
	if err != nil {
		return errors.Join(damaged, err)
	}
	l.say(p, fmt.Sprintf("%v; abl renamed it to %q and continues without it", damaged, name))
	return nil
}

// reopened goes back to a call that ended and whose outcome is lost: the call is closed again from
// what is left of it, which makes it a lost one.
func (l *Loop) reopened(p *state.Phase, step Step) (Step, error) {
	role, back := roles.Builder, state.Building
	switch step {
	case CommitSrc:
	case Judge:
		role, back = roles.Verifier, state.Verifying
	default:
		return step, nil
	}
	rec := l.turn(role, p).record()
	if _, ended, err := rec.Outcome(); err != nil || ended || !rec.Started() {
		return step, err
	}
	p.Status = back
	return Next(*p)
}

func (l *Loop) phase() *state.Phase { return l.File.Phases[fmt.Sprint(l.Number)] }

func (l *Loop) emit(p *state.Phase, e state.Event) {
	e.Time, e.Phase, e.Round, e.Iteration, e.Step = time.Now().UTC(), l.Number, p.Round, p.Iteration, p.Step
	l.Out.Emit(e)
}

// say tells the person something about the phase.
func (l *Loop) say(p *state.Phase, text string) { l.emit(p, state.Event{Kind: state.Note, Text: text}) }

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
		Call: was.Call, Tree: h.Tree, VerifierOnly: was.VerifierOnly,
	}
}

// save makes durable where the phase rests now, and with it the id of the call
// that is about to begin.
func (l *Loop) save(p state.Phase) error {
	if role, is := map[state.Status]roles.Role{state.Building: roles.Builder, state.Verifying: roles.Verifier}[p.Status]; is {
		p.Call = l.turn(role, &p).key
	}
	if next, err := Next(p); err == nil && next == Rest {
		p.Ended = time.Now().UTC()
	}
	l.File.Phases[fmt.Sprint(l.Number)] = &p
	l.File.Updated = time.Now().UTC()
	failpoint.Here("state.before")
	if err := l.Alone(); err != nil {
		return err
	}
	if err := l.Save(); err != nil {
		return fmt.Errorf("cannot save the state: %w", err)
	}
	failpoint.Here("state.after")
	return nil
}
