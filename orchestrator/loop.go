package orchestrator

import (
	"abl/orchestrator/evidence"
	"abl/roles/app"
	"abl/roles/call"
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

// Commit is a commit of a workspace.
type Commit struct {
	Hash    string
	Changed int      // paths that differ from the parent
	Skipped []string // what was left out, with the reason
}

// Repo is the repository of a role's workspace.
type Repo interface {
	// Snapshot sweeps the work tree, calls keep with the result, and commits under a call's key. A
	// second time it returns the first commit. With ifChanged it returns the last commit if nothing
	// changed since.
	Snapshot(ctx context.Context, subject, key string, ifChanged bool, keep func(state.Found) error) (Commit, error)
	// Sweep sweeps the work tree without a commit.
	Sweep(ctx context.Context, keep func(state.Found) error) error
	Tag(ctx context.Context, name, commit string) error
	// Seal returns the state of the repository. It fails if the repository has forbidden content.
	Seal() (state.Seal, error)
	// Differs lists the paths that differ from a commit, "" for the last one.
	Differs(ctx context.Context, commit string) ([]string, error)
}

// Source is the repository of the Builder's workspace.
type Source interface {
	Repo
	// Tip returns the last commit.
	Tip() (string, error)
	// TreeHash returns git's hash of a commit's tree.
	TreeHash(commit string) (string, error)
	// TreeKey returns a hash of a commit's content, without the named files and folders at its top.
	TreeKey(commit string, without ...string) (string, error)
	// WorkKey returns a hash of the work tree, without files that git ignores.
	WorkKey(ctx context.Context) (string, error)
	// Restore restores committed files that a power cut emptied, and returns their paths. It copies
	// the content that they had to a folder below aside.
	Restore(ctx context.Context, aside string) ([]string, error)
}

// Tests is the repository of the Verifier's workspace.
type Tests interface {
	Repo
	// TagCommit returns the commit of a tag, and false if the tag does not exist.
	TagCommit(name string) (string, bool, error)
}

// Caller runs one agent call to its end, or returns its outcome if it has ended.
type Caller interface {
	Run(context.Context, call.Job) (roles.Outcome, error)
}

// App is the system under test.
type App interface {
	// Up starts the app from a commit of the source.
	Up(ctx context.Context, key, commit string) (app.Up, error)
	// Prepared installs the missing dependencies of the Builder's workspace. It returns the failure.
	Prepared(ctx context.Context, key string) (failed string, err error)
	Down(ctx context.Context, key string) error
}

// Ledger records the rows of one ended call. It ignores rows that it has already.
type Ledger interface {
	Append(rows []ledger.Row) error
}

// Jobs creates the job of a call.
type Jobs interface {
	Job(ctx context.Context, role roles.Role, p state.Phase, up app.Up) (call.Job, error)
	// Commands returns the input of abl-cmd in a container of the role.
	Commands(role roles.Role, p state.Phase, up app.Up) helper.CmdSpec
}

// Strictness configures what proves a pass.
type Strictness struct {
	Kind   string // of the system, "" for HTTP
	NoNull string // why the tests do not run against null apps, "" if they do
	// StrengthTime returns how long the tests may run in all replays with altered responses, given the
	// time of one replay. Nil or 0 means that there are no such replays.
	StrengthTime func(took time.Duration) time.Duration
	Allow        evidence.Allowed
}

// Loop runs one phase until it has ended or has to stop.
type Loop struct {
	Number int
	Max    int // iterations per round
	// NoProgress is the number of iterations in a row without progress after which the phase ends
	// as stuck, 0 for no limit.
	NoProgress int
	// NoVerdict is the number of Verifier's calls in a row with the same gaps after which the round
	// ends, 0 for no limit.
	NoVerdict int
	Specs     HeldSpecs // the specs of phases 1 to Number
	Settings  string    // see Asked
	Project   state.Project
	File      *state.File
	Save      func() error
	Calls     Caller
	App       App
	Jobs      Jobs
	Replay    Replays // nil if the user switched evidence off
	Strictness
	TestNames func(context.Context) ([]string, error) // names of the Verifier's files and tests, which the Builder must not see
	Src       Source
	Tests     Tests
	Ledger    Ledger
	CheckLock func() error            // called before each effect: fails if this abl lost the project's lock
	Before    func(call string) error // called before each new call: checks budgets
	Outages   Outages
	TakeMine  bool // commit the user's edits of the source
	Out       state.Sink
	Safe      *redact.Sanitizer // removes secrets from texts of agents

	heard   bool // a call of this run reached its provider
	noRoute bool // no call did, including the last one
}

// Run runs steps until the next one is Rest, the context ends or a step fails. It returns the state of
// the phase, which is saved.
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

// advance does one step and saves the state of the phase. It may return both a saved phase and an
// error: then the run ends there.
func (l *Loop) advance(ctx context.Context, p state.Phase, step Step) (state.Phase, error) {
	restart, err := l.restartRound(&p, step)
	if err != nil {
		return p, err
	}
	if restart {
		step = Begin
	}
	if step, err = l.reopened(&p, step); err != nil {
		return p, err
	}
	if err := l.waitOut(ctx, step, &p); err != nil {
		return p, err
	}
	if err := l.CheckLock(); err != nil {
		return p, err
	}
	h, err := acts[step](l, ctx, &p)
	if err != nil {
		return p, causeOf(ctx, err)
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

// setAside renames a damaged file of a record and reports it, so that the step can be repeated
// without the file.
func (l *Loop) setAside(p *state.Phase, damaged *roles.Damaged) error {
	if err := l.CheckLock(); err != nil {
		return err
	}
	name, err := damaged.SetAside()
	if err != nil {
		return errors.Join(damaged, err)
	}
	l.say(p, fmt.Sprintf("%v; abl renamed it to %q and continues without it", damaged, name))
	return nil
}

// reopened returns to a call that ended and whose outcome file is lost. The call ends again as lost.
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

// spec returns the spec of the phase as it was at the start of the run.
func (l *Loop) spec() spec.Spec { return mustPhase(l.Specs.Set, l.Number) }

func (l *Loop) emit(p *state.Phase, e state.Event) {
	e.Time, e.Phase, e.Round, e.Iteration, e.Step = time.Now().UTC(), l.Number, p.Round, p.Iteration, p.Step
	l.Out.Emit(e)
}

// say reports something about the phase to the user.
func (l *Loop) say(p *state.Phase, text string) { l.emit(p, state.Event{Kind: state.Note, Text: text}) }

// causeOf returns the reason why ctx ended, if err only says that it ended, and err otherwise.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// judgedFor reports whether a judgement ended the iteration. It did not if the Verifier is called
// again.
func judgedFor(was, now state.Phase) bool {
	return now.Iteration != was.Iteration || now.Status != state.Verifying
}

// record returns the history entry of a judged iteration.
func record(was state.Phase, h Happened) state.IterationRecord {
	return state.IterationRecord{
		Round:        was.Round,
		Iteration:    was.Iteration,
		Step:         was.Step,
		Verdict:      string(h.Verdict),
		Entries:      len(h.Entries),
		SrcCommit:    was.SrcCommit,
		TestsCommit:  h.Commit,
		When:         time.Now().UTC(),
		Call:         was.Call,
		Tree:         h.Tree,
		VerifierOnly: was.VerifierOnly,
	}
}

// save saves the state of the phase, with the id of the call that is about to begin.
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
	if err := l.CheckLock(); err != nil {
		return err
	}
	if err := l.Save(); err != nil {
		return fmt.Errorf("cannot save the state: %w", err)
	}
	failpoint.Here("state.after")
	return nil
}
