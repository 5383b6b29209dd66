// Package phase runs a phase of a project, or a shell or the app in the phase's environment: admission,
// set-up, baseline and end. Package project opens the project, and package orchestrator has the loop of
// a phase.
package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/cmd/internal/project"
	"abl/internal/config"
	"abl/internal/failedspecs"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/orchestrator/report"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/boundary"
	"abl/roles/call"
	"abl/roles/environment"
	"abl/roles/replay"
)

// Run is a phase in its environment, or a shell or an app that the user opened.
type Run struct {
	*project.Project
	phase   int
	file    *state.File
	specs   spec.Set
	asked   orchestrator.Asked
	players map[string]orchestrator.Player // by role name, without images and gateways
	out     state.Sink
	env     *environment.Environment
	src     *git.Repo
	tests   *git.Repo
	jobs    *orchestrator.RoleJobs
	runner  *call.Runner
	app     *app.App
	book    money.Book
	account *money.Account
	goesOn  bool // the phase runs; false for a shell or an opened app
}

// Play runs phase n until it ends, and returns the event of its outcome, which the caller passes to
// TellOutcome. The process holds the project's lock until then.
func Play(ctx context.Context, s *project.Project, n int, again bool, out state.Sink) (state.Event, error) {
	r := &Run{Project: s, phase: n, out: weakMarker{out, s}}
	p, why, err := r.play(ctx, again)
	if err == nil {
		err = notPassed(s.Paths, n, p)
	} else {
		why = err.Error()
	}
	err = exit.Because(ctx, err)
	r.reportFailed(p)
	return outcomeOf(n, p, why, err), err
}

// play returns the phase at its end, and why it did not run if it did not.
func (r *Run) play(ctx context.Context, again bool) (p state.Phase, why string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := r.admitAndLock(ctx, again)
	if err != nil {
		return p, "", err
	}
	if !a.Go {
		return a.Open, a.Why, r.tidyUp(ctx)
	}
	if err := r.specs.Keep(r.phase); err != nil {
		r.In.Warn(fmt.Sprintf("%v; this run uses them, but they may change when a spec is edited", err))
	}
	r.file.Phases[fmt.Sprint(r.phase)], r.goesOn = &a.Open, true
	r.reportWarnings()
	r.announce()
	if err = r.openLedger(); err == nil {
		err = r.TakeLease(ctx, cancel, r.file, r.book, r.note)
	}
	if err == nil {
		err = r.begin(ctx)
	}
	if err != nil {
		return p, "", err
	}
	if r.needsBaseline() {
		if err := r.baseline(ctx); err != nil {
			return p, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
		}
	}
	l := r.loop(ctx)
	p, err = l.Run(ctx)
	r.account.TellSpent()
	return p, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
}

// begin opens the environment and sets up the roles. If that fails it closes the environment again.
func (r *Run) begin(ctx context.Context) (err error) {
	r.account = &money.Account{
		Conf: r.Conf, Used: func(key string) (money.Spendings, error) { return r.Spent(r.phase, key) },
		Words: money.Words{Again: fmt.Sprintf("abl phase %d", r.phase), Safe: "everything is committed"}, Note: r.note,
	}
	if r.env, err = environment.Open(ctx, r.options()); err != nil {
		return exit.OnEngine(err)
	}
	if err = cmp.Or(r.setUp(ctx), ctx.Err()); err != nil {
		err = errors.Join(exit.OnEngine(err), r.end(ctx, err))
	}
	return err
}

func (r *Run) options() environment.Options {
	return environment.Options{
		Project:   r.Paths,
		Root:      r.Paths.Root,
		Conf:      r.Conf,
		Safe:      r.In.Safe,
		CACert:    r.In.String("ca-cert"),
		Offline:   r.In.Bool("offline"),
		Weak:      r.In.Bool(cli.WeakFlag),
		ID:        r.file.Project,
		Phase:     r.phase,
		State:     r.Paths.State(),
		Life:      lifeOf(r.Conf),
		CheckLock: r.Held,
		Ready:     r.known,
		Note:      r.note,
		Down:      func() error { return RestoreOwners(r.Folder, r.file, r.out) },
		Resumable: func() string { return r.file.Phase(r.phase).Current() },
		NoteImage: func(line string) { r.emit(state.Event{Text: line}) },
		Progress: func(since time.Time, what string) {
			r.out.Emit(state.Event{Time: since, Kind: state.Progress, Phase: r.phase, Text: what})
		},
	}
}

// lifeOf returns a time that no round of calls can exceed. After it the containers that hold the phase's
// networks end, in case abl could not remove them.
func lifeOf(conf *config.Loaded) time.Duration {
	const tries = 3 // attempts of each role's call, at most
	call := time.Duration(conf.Loop.CallTimeout) + environment.StartTime(conf) + 10*time.Minute
	return 24*time.Hour + time.Duration(conf.Loop.OutageBudget) + time.Duration(2*tries*conf.Loop.MaxVerifierIterations)*call
}

// known saves the project's id before abl creates anything on the engine. After a kill, abl finds its
// containers by the id in state.json.
func (r *Run) known() error {
	if kept, err := state.Load(r.Paths.State()); err == nil && kept.Project == r.file.Project {
		return nil
	}
	return r.Save(r.file)
}

// emit emits a note.
func (r *Run) emit(e state.Event) {
	e.Kind = state.Note
	r.out.Emit(e)
}

// note emits a note with a text.
func (r *Run) note(text string) { r.emit(state.Event{Phase: r.phase, Text: text}) }

// end closes the environment.
func (r *Run) end(ctx context.Context, why error) error {
	left, err := r.env.Close(ctx, why)
	if left != "" && err == nil {
		r.emit(state.Event{Phase: r.phase, Call: left, Text: environment.RunningNote(left)})
	}
	return err
}

// loop returns the loop that runs the phase.
func (r *Run) loop(ctx context.Context) *orchestrator.Loop {
	strict := orchestrator.Strictness{StrengthTime: r.Conf.Verify.StrengthTime.Of}
	strict.Allow.Weak, strict.Allow.Unread = r.Conf.Verify.AllowWeak, r.Conf.Verify.AllowUnread
	if app := r.jobs.App; app != nil {
		strict.Kind = app.Kind
	} else {
		strict.NoNull = "abl does not run the tests against null apps: without an app section the type of the system is " +
			"unknown"
	}
	models := map[string]int{}
	for role, p := range r.jobs.Players {
		models[role] = len(p.Models)
	}
	tests := savedTests{r.tests, r.Paths.Tests, git.Owner{UID: r.env.UID, GID: r.env.GID}}
	l := &orchestrator.Loop{
		Number:     r.phase,
		Max:        r.Conf.Loop.MaxVerifierIterations,
		NoProgress: r.Conf.Loop.NoProgress.Failed,
		NoVerdict:  r.Conf.Loop.NoProgress.Unverified,
		Specs:      orchestrator.HeldSpecs{Set: r.specs, Now: r.Project.Specs},
		Settings:   r.asked.Settings,
		Project:    r.Paths,
		File:       r.file,
		Save:       func() error { return r.SaveAndPush(ctx, r.file, r.phase, r.note) },
		Calls:      caller{r.runner},
		App:        r.app,
		Jobs:       r.jobs,
		Src:        repo{r.src, r.env.UID, r.env.GID},
		Tests:      repo{r.tests, r.env.UID, r.env.GID},
		Ledger:     r.book,
		CheckLock:  r.CheckLock,
		Before:     r.account.Admit,
		Strictness: strict,
		TestNames:  tests.names,
		Out:        r.out,
		Safe:       r.In.Safe,
		Outages:    orchestrator.Outages{Budget: time.Duration(r.Conf.Loop.OutageBudget), Models: models},
		TakeMine:   r.In.Bool("take-mine"),
	}
	if r.Conf.Verify.Evidence != "off" {
		l.Replay = &replay.Runner{App: r.app, Image: r.jobs.Players[roles.Verifier.Name].Image, Tests: tests.write}
	}
	return l
}

// savedTests are the tests in the Verifier's workspace.
type savedTests struct {
	*git.Repo
	dir   string
	owner git.Owner // of the files that write writes
}

// names returns the names of the Verifier's files and tests.
func (s savedTests) names(ctx context.Context) ([]string, error) {
	paths, err := s.Files(ctx, 10_000)
	return failedspecs.Names(paths, func(path string) []byte {
		data, _ := hostfs.Read(s.dir, path, failedspecs.MaxTest) // without the text, the name of the file counts
		return data
	}), err
}

// write writes the tests of a commit as a tar, or the Verifier's workspace if commit is "". No process
// writes there while a replay runs.
func (s savedTests) write(ctx context.Context, w io.Writer, commit, as string) error {
	if commit == "" {
		return hostfs.Tar(w, as, s.dir, ".git")
	}
	return s.Export(ctx, w, commit, as, s.owner)
}

// caller creates the networks for the next steps while the Builder works.
type caller struct{ *call.Runner }

// Run runs the call. It returns when the networks exist too.
func (c caller) Run(ctx context.Context, j call.Job) (roles.Outcome, error) {
	if j.Role.App {
		return c.Runner.Run(ctx, j)
	}
	var next sync.WaitGroup
	defer next.Wait()
	next.Go(func() {
		for _, place := range []string{j.Place, boundary.PlaceApp, boundary.PlaceVerifier} { // the call's own first
			_ = c.Holder(ctx, place) // after an error the next step tries again, and reports it
		}
	})
	return c.Runner.Run(ctx, j)
}

// reportWarnings prints the lint warnings of the phase's spec, and the contracts that earlier specs lost.
func (r *Run) reportWarnings() {
	count := 0
	for _, p := range r.specs.Lint() {
		if p.Phase == r.phase {
			count++
		} else if p.Code == "lost" && p.Phase < r.phase {
			r.In.Warn(fmt.Sprintf("%s; abl spec lint %d", p.Text, p.Phase))
		}
	}
	if count > 0 {
		r.note(fmt.Sprintf("its spec has %s: abl spec lint %d shows them", wording.Count(count, "warning"), r.phase))
	}
}

// weakMarker sets Weak in events if unproven networks are allowed.
type weakMarker struct {
	state.Sink
	s *project.Project
}

// Emit sets Weak and passes the event on.
func (m weakMarker) Emit(e state.Event) {
	switch e.Kind {
	case state.PhaseStart, state.CallStart, state.CallResume, state.Outcome:
		e.Weak = m.s.In.Bool(cli.WeakFlag)
	}
	m.Sink.Emit(e)
}

// TellOutcome releases the lock, emits e as the last event of the run, and returns err.
func TellOutcome(s *project.Project, out state.Sink, e state.Event, err error) error {
	s.Unlock()
	code := exit.Code(err)
	e.Exit = &code
	weakMarker{out, s}.Emit(e)
	return err
}

// outcomeOf returns the event for the outcome of phase n: its status, or why it stopped.
func outcomeOf(n int, p state.Phase, why string, err error) state.Event {
	return state.Event{
		Kind:      state.Outcome,
		Phase:     n,
		Round:     p.Round,
		Iteration: p.Iteration,
		Step:      p.Step,
		Verdict:   p.LastVerdict,
		Text:      cmp.Or(why, string(p.Status)),
		Until:     exit.Until(err),
	}
}

// reportFailed prints the failed contracts of a stuck phase.
func (r *Run) reportFailed(p state.Phase) {
	if p.Status != state.Stuck {
		return
	}
	round, err := orchestrator.Attempts(r.Paths, p)
	if err != nil || len(round) == 0 { // the state has the failed contracts too
		round = []orchestrator.Attempt{{Step: p.Step, Verdict: orchestrator.Fail, Built: true, Failed: p.Failed}}
	}
	for _, text := range orchestrator.Explain(r.phase, round, r.specs.UpTo(r.phase)) {
		r.emit(state.Event{Phase: r.phase, Text: text})
	}
}

// notPassed returns the command's error for a phase that did not pass.
func notPassed(paths state.Project, n int, p state.Phase) error {
	after, next := wording.Count(p.Iteration, "iteration"), report.Run{Phase: n}.Next(string(p.Status))
	e := &exit.Error{Code: exit.Unverified, Safe: "everything is committed"}
	switch p.Status {
	case state.Passed:
		return nil
	case state.Stuck:
		still := wording.Count(len(p.Failed), "contract") + " still fail"
		if len(p.Failed) == 1 {
			still += "s"
		}
		e.Code, e.What = exit.Stuck, fmt.Sprintf("phase %d is stuck: %s after %s", n, still, after)
		e.Do = "read " + paths.Rel(filepath.Join(paths.Tests, failedspecs.FileName)) + ", then " +
			next
	default:
		e.What = fmt.Sprintf("phase %d is unverified: no believable verdict after %s", n, after)
		e.Do = fmt.Sprintf("abl report %d shows what is missing; then %s", n, next)
	}
	return e
}

// announce emits, before the first paid call, the agents, the caps and the cost of earlier phases.
func (r *Run) announce() {
	var who []string
	for _, role := range roles.Both() {
		p := r.players[role.Name]
		text := fmt.Sprintf("%s %s (%s)", role.Name, p.Agent.Name, p.Models[0])
		if key, _ := r.Key(p); key != "" {
			text += ", " + key
		}
		who = append(who, text)
	}
	p := r.file.Phase(r.phase)
	if !p.OnItsWay() {
		p.Round++ // the loop will open this round
	}
	text := fmt.Sprintf("%s; %s; %s", strings.Join(who, "; "), money.CapsText(r.Conf.Budget), r.LastCosts(r.file, r.phase))
	r.out.Emit(state.Event{Kind: state.PhaseStart, Phase: r.phase, Round: p.Round, Text: text})
}
