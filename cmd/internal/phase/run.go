package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/failedspecs"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/orchestrator/evidence"
	"abl/orchestrator/report"
	"abl/roles"
	"abl/roles/environment"
	"abl/roles/retry"
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

// Play takes phase n to where it rests. What it returns is the run's last event,
// unless another phase follows. The project is this process's until TellOutcome: one
// that only looks at it would else be in the way of what follows.
func (s *Project) Play(ctx context.Context, n int, again bool, out state.Sink) (state.Event, error) {
	r := &Run{Project: s, phase: n, out: marked{out, s}}
	p, why, err := r.play(ctx, again)
	if err == nil {
		err = notPassed(s.Paths, n, p)
	} else {
		why = err.Error()
	}
	err = exit.Because(ctx, err)
	r.tellFailed(p)
	return outcomeOf(n, p, why, err), err
}

// play returns where the phase rests, and why it was not taken further.
func (r *Run) play(ctx context.Context, again bool) (p state.Phase, why string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := r.takeUp(ctx, again)
	if err != nil {
		return p, "", err
	}
	if !a.Go {
		return a.Open, a.Why, r.tidyAtRest(ctx)
	}
	if r.specs, err = spec.Keep(r.Paths.Specs(), r.phase); err != nil { // the ids of contracts, for the phase begins
		r.In.Warn(fmt.Sprintf("%v; they count for now, and may be others when a spec was edited", err))
	}
	if a, err = orchestrator.Admit(r.file, r.specs, r.phase, r.asked(again)); err != nil { // what is run is what was admitted
		return p, "", err
	}
	r.file.Phases[fmt.Sprint(r.phase)], r.goesOn = &a.Open, true
	r.remark()
	if err = r.announce(); err == nil {
		err = r.openLedger()
	}
	first := false
	if err == nil {
		err = r.take(ctx, cancel)
	}
	if err == nil {
		first, err = r.needsBaseline()
	}
	if err == nil {
		err = r.begin(ctx)
	}
	if err != nil {
		return p, "", err
	}
	if first {
		if err := r.baseline(ctx); err != nil {
			return p, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
		}
	}
	l := r.loop(ctx)
	p, err = l.Run(ctx)
	r.account.TellSpent()
	return p, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
}

// takeUp looks whether the phase may run, and takes the project for this process.
func (r *Run) takeUp(ctx context.Context, again bool) (a orchestrator.Admission, err error) {
	if err = r.preflight(ctx, again); err != nil {
		return a, err
	}
	if _, err = r.Lock(); err != nil {
		return a, err
	}
	failpoint.Here("lock.taken")
	if r.file, err = r.State(); err == nil {
		a, err = orchestrator.Admit(r.file, r.Specs(), r.phase, r.asked(again))
	}
	return a, err
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
	if err = cmp.Or(r.setUp(ctx), ctx.Err()); err != nil {
		err = errors.Join(exit.OnEngine(err), r.end(ctx, err))
	}
	return err
}

func (r *Run) options() environment.Options {
	o := r.Project.options()
	o.State = r.Paths.State()
	o.ID, o.Phase, o.Life, o.Alone, o.Ready, o.Note = r.file.Project, r.phase, r.life(), r.held.Verify, r.known, r.note
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
	if err := r.held.Verify(); err != nil {
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
func (r *Run) loop(ctx context.Context) *orchestrator.Loop {
	this, _ := r.specs.Phase(r.phase)
	strict := orchestrator.Strictness{StrengthTime: r.Conf.Verify.StrengthTime.Of, Allow: evidence.Allowed{Weak: r.Conf.Verify.AllowWeak, Unread: r.Conf.Verify.AllowUnread}}
	if app := r.jobs.App; app != nil {
		strict.Kind = app.Kind
	} else {
		strict.NoNull = "the tests are not tried against null apps: without an app section nobody knows what stands in for the system"
	}
	models := map[string]int{}
	for role, p := range r.jobs.Players {
		models[role] = len(p.Models)
	}
	l := &orchestrator.Loop{
		Number: r.phase, Max: r.Conf.Loop.MaxVerifierIterations, NoProgress: r.Conf.Loop.NoProgress.Failed, NoVerdict: r.Conf.Loop.NoProgress.Unverified, Spec: this, Specs: orchestrator.HeldSpecs{Set: r.specs, Now: r.Project.Specs}, Settings: r.asked(false).Settings, Project: r.Paths, File: r.file, Save: func() error { return r.saveAndPush(ctx) },
		Calls: caller{r.runner}, App: r.app, Jobs: r.jobs, Src: repo{r.src, r.env.UID, r.env.GID}, Tests: repo{r.tests, r.env.UID, r.env.GID},
		Ledger: r.book, Alone: r.alone, Before: r.account.Admit, Strictness: strict, TestNames: r.testNames, Out: r.out, Safe: r.In.Safe,
		Outages: orchestrator.Outages{Budget: time.Duration(r.Conf.Loop.OutageBudget), Models: models}, TakeMine: r.In.Bool("take-mine"),
	}
	if r.Conf.Verify.Evidence != "off" {
		l.Replay = &roles.Replayer{App: r.app, Image: r.jobs.Players[roles.Verifier.Name].Image, Tests: r.saved}
	}
	return l
}

// testNames are the names of the Verifier's files and tests.
func (r *Run) testNames(ctx context.Context) ([]string, error) {
	paths, err := r.tests.Files(ctx, 10_000)
	return failedspecs.Names(paths, func(path string) []byte {
		data, _ := hostfs.Read(r.Paths.Tests, path, failedspecs.MaxTest) // without it, the file's own names are known
		return data
	}), err
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

// saved writes the tests of a commit, or the Verifier's workspace as it left it,
// as a tar. Nobody writes there while a replay runs.
func (r *Run) saved(ctx context.Context, w io.Writer, commit, as string) error {
	if commit == "" {
		return hostfs.Tar(w, as, r.Paths.Tests, ".git")
	}
	return r.tests.Export(ctx, w, commit, as, git.Owner{UID: r.env.UID, GID: r.env.GID})
}

// remark tells the person what there is to say about the phase's spec that does not
// stop it, and what earlier ones have lost.
func (r *Run) remark() {
	count := 0
	for _, p := range r.specs.Lint() {
		if p.Phase == r.phase {
			count++
		} else if p.Code == "lost" && p.Phase < r.phase {
			r.In.Warn(fmt.Sprintf("%s; abl spec lint %d", p.Text, p.Phase))
		}
	}
	if count > 0 {
		r.note(fmt.Sprintf("its spec could be better in %s: abl spec lint %d", wording.Count(count, "place"), r.phase))
	}
}

// marked says of what begins and of how all ends that the network is weak.
type marked struct {
	state.Sink
	s *Project
}

// Emit marks an event and hands it on.
func (m marked) Emit(e state.Event) {
	switch e.Kind {
	case state.PhaseStart, state.CallStart, state.CallResume, state.Outcome:
		e.Weak = m.s.net != nil && m.s.net.Weak != ""
	}
	m.Sink.Emit(e)
}

// TellOutcome gives the project back, emits how the run ended, which is its last event, and
// returns err.
func (s *Project) TellOutcome(out state.Sink, e state.Event, err error) error {
	s.unlock()
	code := exit.Code(err)
	e.Time, e.Exit = time.Now().UTC(), &code
	marked{out, s}.Emit(e)
	return err
}

// outcomeOf says how phase n ended: where it rests, or what stopped it.
func outcomeOf(n int, p state.Phase, why string, err error) state.Event {
	e := state.Event{Kind: state.Outcome, Phase: n, Round: p.Round, Iteration: p.Iteration, Step: p.Step, Verdict: p.LastVerdict}
	e.Text = cmp.Or(why, string(p.Status))
	if absent, is := errors.AsType[retry.Unavailable](err); is {
		e.Until = absent.Back
	}
	return e
}

// tellFailed shows the contracts on which a phase is stuck.
func (r *Run) tellFailed(p state.Phase) {
	if p.Status != state.Stuck {
		return
	}
	round, err := orchestrator.Attempts(r.Paths, p)
	if err != nil || len(round) == 0 { // what failed is known all the same
		round = []orchestrator.Attempt{{Step: p.Step, Verdict: orchestrator.Fail, Built: true, Failed: p.Failed}}
	}
	for _, text := range orchestrator.Explain(r.phase, round, r.Specs().UpTo(r.phase)) {
		r.emit(state.Event{Phase: r.phase, Text: text})
	}
}

// notPassed turns where a phase rests into the command's error, nil for passed.
func notPassed(paths state.Project, n int, p state.Phase) error {
	after := wording.Count(p.Iteration, "iteration")
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
		e.Do = "read " + paths.Rel(filepath.Join(paths.Tests, failedspecs.FileName)) + ", then " + report.Next(string(p.Status), n)
	default:
		e.What = fmt.Sprintf("phase %d is unverified: no believable verdict after %s", n, after)
		e.Do = fmt.Sprintf("abl report %d shows what is missing; then %s", n, report.Next(string(p.Status), n))
	}
	return e
}
