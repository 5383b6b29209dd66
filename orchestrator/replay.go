package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/tap"
	"abl/internal/testing/failpoint"
	"abl/orchestrator/evidence"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/replay"
)

// Replays runs saved tests again, without an agent.
type Replays interface {
	Run(context.Context, replay.Job) (replay.Result, error)
	AtOnce() int // how many can run at a time, each against its own app
}

// maxReplayTime is the time limit of one replay against the app.
const maxReplayTime = 10 * time.Minute

// contracts returns the contracts of phases from to to for evidence.
func contracts(specs spec.Set, from, to int) (all []evidence.Contract) {
	for _, s := range specs.UpTo(to) {
		if s.Number < from {
			continue
		}
		for _, c := range s.Contracts {
			all = append(all, evidence.Read(c))
		}
	}
	return all
}

// known returns the ids of all contracts, including those of later phases.
func known(specs spec.Set) []string {
	ids := []string{}
	for _, c := range contracts(specs, 1, spec.MaxPhase) {
		ids = append(ids, c.ID)
	}
	return ids
}

// replayTests replays the Verifier's tests against the app and against null apps, and returns what
// they prove. It runs them against null apps only if they could prove a pass.
func (v turn) replayTests(ctx context.Context, claims evidence.Claims) (evidence.Finding, error) {
	suite := evidence.Suite{
		Contracts: contracts(v.Specs.Set, 1, v.Number),
		Known:     known(v.Specs.Set),
		Allowed:   v.Allow,
		Waived:    evidence.Waived{Null: v.NoNull != ""},
	}
	if v.p.Recheck { // earlier phases have their own tests
		suite.Contracts, suite.Unreported = contracts(v.Specs.Set, v.Number, v.Number), true
	}
	within, giveUp := v.startNullRuns(ctx, claims, "", "")
	defer giveUp()
	took, failed, err := v.rerun(ctx, "", claims, &suite)
	if err != nil || failed != "" {
		why := []string{"the app did not start for the replay: " + failed}
		return evidence.Finding{Verdict: evidence.Unverified, Reasons: why}, err
	}
	if f := evidence.Decide(claims, suite); f.Verdict == evidence.Fail || suite.Fault() != "" {
		return f, nil
	}
	if err := within(evidence.Limit(took), &suite); err != nil {
		return evidence.Finding{}, err
	}
	if err := v.alter(ctx, claims, &suite, took); err != nil {
		return evidence.Finding{}, err
	}
	f := evidence.Decide(claims, suite)
	if v.NoNull != "" {
		f.Notes = append(f.Notes, v.NoNull)
	}
	return f, nil
}

// alter checks whether passing tests detect altered responses of the app. Several of these replays
// run at a time, each against its own app. Before them the tests run once more unaltered, to find
// tests that fail at random.
func (v turn) alter(ctx context.Context, claims evidence.Claims, s *evidence.Suite, took time.Duration) error {
	var left time.Duration
	if v.StrengthTime != nil {
		left = v.StrengthTime(took)
	}
	s.Waived.Strength = left <= 0
	passes := func() bool {
		lenient := *s // whose tests need not fail against null apps, if they detect altered responses
		lenient.Away, lenient.Empty, lenient.Broken = nil, nil, nil
		lenient.Waived = evidence.Waived{Away: true, Null: true, Strength: s.Waived.Strength}
		lenient.Allowed = evidence.Allowed{Weak: []string{evidence.All}, Unread: []string{evidence.All}}
		return evidence.Decide(claims, lenient).Verdict == evidence.Pass
	}
	if !passes() || left <= 0 || len(s.Alterations()) == 0 {
		return nil
	}
	if len(s.Real) == 1 {
		if _, failed, err := v.rerunOnce(ctx, "", s); err != nil || failed != "" {
			return err
		}
		if !passes() {
			return nil
		}
	}
	v.say(v.p, "checking that the tests detect "+s.Others()+" (about "+left.Round(time.Second).String()+" of test time)")
	for all := s.Alterations(); len(all) > 0 && left > 0; all = s.Alterations() {
		of := len(s.Altered) + len(all)
		all = all[:min(len(all), v.Replay.AtOnce())]
		v.emit(state.Event{Kind: state.Progress, Text: fmt.Sprintf("replay %d of %d with %s", len(s.Altered)+len(all), of,
			s.Others())})
		longest, err := v.alterOnce(ctx, s, all, evidence.Limit(took))
		if err != nil || longest == 0 {
			return err
		}
		left -= longest
	}
	return nil
}

// alterOnce runs replays with altered responses in parallel. It returns the time of the longest
// one, 0 if an app did not start or the machine failed.
func (v turn) alterOnce(ctx context.Context, s *evidence.Suite, all []evidence.Alteration, limit time.Duration) (longest time.Duration, err error) {
	runs, errs := make([]replay.Result, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, a := range all {
		replay := replay.Job{Against: replay.TheApp, Limit: limit, Altering: s.Altering(a), Beside: i}
		running.Go(func() {
			runs[i], _, errs[i] = v.replay(ctx, fmt.Sprintf("altered-%d", len(s.Altered)+i+1), replay, mostFaults)
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	for i, run := range runs {
		if run.AppFailed != "" {
			v.say(v.p, "the app did not start for the tests with "+s.Others()+": "+run.AppFailed)
			return 0, nil
		}
		longest = max(longest, run.Took)
		s.RanAltered(all[i], asEvidence(run))
	}
	if s.AlteredFault() != "" {
		return 0, nil
	}
	return longest, nil
}

// rerun replays a suite against the app until its results are conclusive.
func (v turn) rerun(
	ctx context.Context, commit string, claims evidence.Claims, s *evidence.Suite,
) (took time.Duration, failed string, err error) {
	s.Kind = v.Kind
	for evidence.Again(claims, *s) {
		one, failed, err := v.rerunOnce(ctx, commit, s)
		if err != nil || failed != "" {
			return 0, failed, err
		}
		took = max(took, one)
	}
	return took, "", nil
}

// rerunOnce replays a suite against the app.
func (v turn) rerunOnce(
	ctx context.Context, commit string, s *evidence.Suite,
) (took time.Duration, failed string, err error) {
	name := fmt.Sprintf("app-%d", len(s.Real)+1)
	if s.Name != "" {
		name = strings.TrimSuffix(s.Name, "/passed") + "-" + name
	}
	run, text, err := v.replay(ctx, name, replay.Job{Commit: commit, Against: replay.TheApp, Limit: maxReplayTime},
		mostFaults)
	if err != nil || run.AppFailed != "" {
		return 0, run.AppFailed, err
	}
	v.say(v.p, text)
	s.Ran(asEvidence(run))
	return run.Took, "", nil
}

// mostFaults is how often abl repeats a replay that a fault of the machine ended.
const mostFaults = 2

// replay runs one replay. Its record is in the folder of the turn's call. If a fault ends it, replay
// repeats it at most again times. text is its result in one line.
func (v turn) replay(ctx context.Context, name string, r replay.Job, again int) (run replay.Result, text string, err error) {
	r.Key, r.Source = v.key+"/replay-"+name, v.p.SrcCommit
	r.Cmds = v.Jobs.Commands(roles.Verifier, *v.p, app.Up{})
	if v.p.Recheck && r.Commit == "" {
		r.Commit = v.p.TestsCommit
	}
	failpoint.Here("replay.before")
	run, err = v.Replay.Run(ctx, r)
	for ; err == nil && run.Fault && again > 0 && ctx.Err() == nil; again-- {
		v.say(v.p, "a machine fault ended replay "+name+", abl repeats it: "+run.Gone)
		run, err = v.Replay.Run(ctx, r)
	}
	if err != nil {
		return run, "", fmt.Errorf("cannot replay the tests: %w", err)
	}
	doc := asEvidence(run).TAP
	ok := 0
	for _, point := range doc.Points {
		if point.OK && point.Void() == "" {
			ok++
		}
	}
	text = fmt.Sprintf("replay: %d of %d tests are ok after %.1fs", ok, len(doc.Points), run.Took.Seconds())
	if run.Gone != "" {
		text = "replay: " + run.Gone
	}
	return run, text, nil
}

// asEvidence converts a replay. The output of a replay that a fault ended is ignored.
func asEvidence(r replay.Result) evidence.Run {
	if r.Fault {
		return evidence.Run{TAP: tap.Parse(nil, false), Gone: r.Gone, Fault: true}
	}
	return evidence.Run{
		TAP:     tap.Parse(r.Output, !r.Late && r.Gone == ""),
		Exit:    r.Exit,
		Late:    r.Late,
		Gone:    r.Gone,
		Broke:   r.Ends.Broke,
		Other:   r.Ends.Other,
		Watched: r.Watched,
		Record:  r.Record,
	}
}

// startNullRuns starts replays against null apps, in parallel with the replay against the app. They
// run the tests of a commit, "" for the current ones. If the Verifier claims a failure, there is no
// pass to prove and startNullRuns starts nothing. name is the prefix of their records' names.
//
// within waits until they end, at most for a limit since their start, repeats those that a fault
// ended, and adds them to the suite. giveUp stops the others and waits for their end.
func (v turn) startNullRuns(
	ctx context.Context, claims evidence.Claims, commit, name string,
) (within func(time.Duration, *evidence.Suite) error, giveUp func()) {
	ctx, cancel := context.WithCancel(ctx)
	var against []replay.Against
	switch {
	case len(claims) > 0:
	case v.NoNull != "":
		against = []replay.Against{replay.NoApp}
	default:
		against = []replay.Against{replay.NoApp, replay.Empty, replay.Trouble}
	}
	cut, runs, errs := make(chan struct{}), make([]evidence.Run, len(against)), make([]error, len(against))
	var running sync.WaitGroup
	begun := time.Now()
	start := func(i int, r replay.Job, again int) {
		r.Commit, r.Against = commit, against[i]
		running.Go(func() {
			run, _, err := v.replay(ctx, name+string(r.Against), r, again)
			runs[i], errs[i] = asEvidence(run), err
		})
	}
	for i := range against {
		start(i, replay.Job{Limit: maxReplayTime, Cut: cut}, 0)
	}
	within = func(limit time.Duration, s *evidence.Suite) error {
		timer := time.AfterFunc(limit-time.Since(begun), func() { close(cut) })
		defer timer.Stop()
		running.Wait()
		for i, run := range runs {
			if run.Fault { // the repetition gets the full time
				v.say(v.p, "a machine fault ended replay "+name+string(against[i])+", abl repeats it: "+run.Gone)
				start(i, replay.Job{Limit: limit}, mostFaults-1)
			}
		}
		running.Wait()
		into := map[replay.Against]**evidence.Run{replay.NoApp: &s.Away, replay.Empty: &s.Empty, replay.Trouble: &s.Broken}
		for i, a := range against {
			*into[a] = &runs[i]
		}
		return errors.Join(errs...)
	}
	return within, func() {
		cancel()
		running.Wait()
	}
}
