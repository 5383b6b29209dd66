package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"
)

// Run is a phase, or a shell or an opened app in one, in its environment.
type Run struct {
	*Project
	phase   int
	file    *state.File
	specs   spec.Set
	out     state.Sink
	env     *environment.Environment
	src     *git.Repo
	tests   *git.Repo
	jobs    *orchestrator.RoleJobs
	runner  *roles.Runner
	app     *roles.App
	book    money.Book
	account *money.Account
	goesOn  bool // the phase is taken further, and not looked at only
}

// begin opens the environment and sets up the roles in it. When that fails, what was
// made so far is taken down.
func (r *Run) begin(ctx context.Context) (err error) {
	r.account = &money.Account{
		Conf: r.Conf, Used: func(key string) (money.Spendings, error) { return r.spent(r.phase, key) },
		Words: money.Words{Again: fmt.Sprintf("abl phase %d", r.phase), Safe: "everything is committed"}, Tell: r.note,
	}
	if r.env, err = environment.Open(ctx, r.options()); err != nil {
		return exit.OnEngine(err)
	}
	r.net = r.env.Net
	if err = cmp.Or(r.setUp(ctx), ctx.Err()); err != nil {
		err = errors.Join(exit.OnEngine(err), r.end(ctx, err))
	}
	return err
}

func (r *Run) options() environment.Options {
	o := r.Project.options()
	o.ID, o.Phase, o.Life, o.Alone, o.Ready, o.Note = r.file.Project, r.phase, r.life(), r.held.Still, r.known, r.note
	o.Down = func() error { return r.GiveBack(r.file, r.out) }
	o.AtRest = func() string { return callAtRest(r.file.Phase(r.phase)) }
	o.NoteImage = func(line string) { r.emit(state.Event{Text: line}) }
	o.Progress = func(since time.Time, what string) {
		r.out.Emit(state.Event{Time: since, Kind: state.Progress, Phase: r.phase, Text: what})
	}
	return o
}

// life is beyond what a whole round of calls can take: after it what holds the
// phase's networks ends by itself, should nobody have taken it down.
func (r *Run) life() time.Duration {
	const tries = 3 // of each role's call, at most
	call := time.Duration(r.Conf.Loop.CallTimeout) + environment.StartTime(r.Conf) + 10*time.Minute
	return 24*time.Hour + time.Duration(r.Conf.Loop.OutageBudget) + time.Duration(2*tries*r.Conf.Loop.MaxVerifierIterations)*call
}

// known keeps the project's id before anything stands under it on the engine: what
// a kill leaves there is looked for under the id in state.json.
func (r *Run) known() error {
	if kept, err := state.Load(r.Paths.State()); err == nil && kept.Project == r.file.Project {
		return nil
	}
	return r.save()
}

// emit tells those who follow the run.
func (r *Run) emit(e state.Event) {
	e.Time, e.Kind = time.Now().UTC(), state.Note
	r.out.Emit(e)
}

// note tells the person something worth knowing.
func (r *Run) note(text string) { r.emit(state.Event{Phase: r.phase, Text: text}) }

// save writes state.json, unless it may be another abl's by now.
func (r *Run) save() error {
	if err := r.held.Still(); err != nil {
		return err
	}
	return state.Save(r.Paths.State(), r.file)
}

// end closes the environment.
func (r *Run) end(ctx context.Context, why error) error {
	left, err := r.env.Close(ctx, why)
	if left != "" && err == nil {
		r.emit(state.Event{Phase: r.phase, Call: left, Text: environment.Left(left)})
	}
	return err
}

// callAtRest is the call that a phase rests in, "" between calls.
func callAtRest(p state.Phase) string {
	if p.Status != state.Building && p.Status != state.Verifying {
		return ""
	}
	return p.Call
}

// loop is what takes the phase to where it rests next.
func (r *Run) loop() *orchestrator.Loop {
	this, _ := r.specs.Phase(r.phase)
	strict := orchestrator.Strictness{NoNull: r.noNull(), StrengthTime: r.Conf.Verify.StrengthTime.Of, AllowWeak: r.Conf.Verify.AllowWeak}
	if app := environment.AppSpec(r.Conf); app != nil {
		strict.Kind = app.Kind
	}
	return &orchestrator.Loop{
		Number: r.phase, Max: r.Conf.Loop.MaxVerifierIterations, NoProgress: r.Conf.Loop.NoProgress.Failed, NoVerdict: r.Conf.Loop.NoProgress.Unverified, Spec: this, Specs: orchestrator.HeldSpecs{Set: r.specs, Now: r.Project.Specs}, Project: r.Paths, File: r.file, Save: r.save,
		Calls: caller{r.runner}, App: r.app, Jobs: r.jobs, Src: repo{r.src}, Tests: repo{r.tests},
		Ledger: r.book, Alone: r.held.Still, Before: r.account.Admit, Replay: r.replays(), Strictness: strict, TestNames: func(ctx context.Context) ([]string, error) { return r.tests.Files(ctx, 10_000) }, Out: r.out, Safe: r.In.Safe,
		Outages: r.outages(), TakeMine: r.In.Bool("take-mine"),
	}
}

// caller makes, while the Builder works, the networks that are needed next.
type caller struct{ *roles.Runner }

// Run returns when nothing is in the making any more.
func (c caller) Run(ctx context.Context, j roles.Job) (roles.Outcome, error) {
	if j.Role.App {
		return c.Runner.Run(ctx, j)
	}
	var next sync.WaitGroup
	defer next.Wait()
	next.Go(func() {
		for _, place := range []string{j.Place, roles.PlaceApp, roles.PlaceVerifier} { // its own before the others
			_ = c.Holder(ctx, place) // else whoever needs it makes it, or says why not
		}
	})
	return c.Runner.Run(ctx, j)
}

// outages say how this phase lives through its provider's absence.
func (r *Run) outages() orchestrator.Outages {
	o := orchestrator.Outages{Budget: time.Duration(r.Conf.Loop.OutageBudget), Models: map[string]int{}}
	for role, p := range r.jobs.Players {
		o.Models[role] = len(p.Models)
	}
	return o
}

// replays runs saved tests again, unless the person switched evidence off.
func (r *Run) replays() orchestrator.Replays {
	if r.Conf.Verify.Evidence == "off" {
		return nil
	}
	return &roles.Replayer{App: r.app, Image: r.jobs.Players[roles.Verifier.Name].Image, Tests: r.saved}
}

// saved writes the tests of a commit, or the Verifier's workspace as it left it,
// as a tar. Nobody writes there while a replay runs.
func (r *Run) saved(ctx context.Context, w io.Writer, commit, as string) error {
	if commit == "" {
		return hostfs.Tar(w, as, r.Paths.Tests, ".git")
	}
	return r.tests.Export(ctx, w, commit, as, git.Owner{UID: r.env.UID, GID: r.env.GID})
}

// noNull is why the tests cannot be tried against null apps.
func (r *Run) noNull() string {
	if r.Conf.App != nil {
		return ""
	}
	return "the tests are not tried against null apps: without an app section nobody knows what stands in for the system"
}
