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
)

// Replays runs saved tests again, without an agent.
type Replays interface {
	Run(context.Context, roles.Replay) (roles.Replayed, error)
	AtOnce() int // how many can be made at a time, each against an app of its own
}

// maxReplayTime is the longest that one replay against the app may take.
const maxReplayTime = 10 * time.Minute

// contracts are those of phases from to to, as evidence weighs them.
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

// known are the ids of all contracts, those of later phases too.
func known(specs spec.Set) []string {
	ids := []string{}
	for _, c := range contracts(specs, 1, spec.MaxPhase) {
		ids = append(ids, c.ID)
	}
	return ids
}

// weigh replays what the Verifier saved, against the app and against what stands
// in for it, and says what that proves. The tests that let nothing be proven need
// no tries against nothing.
func (v turn) weigh(ctx context.Context, claims evidence.Claims) (evidence.Finding, error) {
	suite := evidence.Suite{
		Contracts: contracts(v.Specs.Set, 1, v.Number), Known: known(v.Specs.Set), Allowed: v.Allow,
		Waived: evidence.Waived{Null: v.NoNull != ""},
	}
	if v.p.Recheck { // earlier phases are held to by tests of their own
		suite.Contracts, suite.Alone = contracts(v.Specs.Set, v.Number, v.Number), true
	}
	within, giveUp := v.tryNothing(ctx, claims, "", "")
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

// alter sees whether tests that pass but for weak ones would notice other answers of the
// app. Several of these replays are made at a time, each against an app of its own. Before these the
// tests are run once more against the app as it is: what is not ok then goes by something else.
func (v turn) alter(ctx context.Context, claims evidence.Claims, s *evidence.Suite, took time.Duration) error {
	var left time.Duration
	if v.StrengthTime != nil {
		left = v.StrengthTime(took)
	}
	s.Waived.Strength = left <= 0
	passes := func() bool {
		lenient := *s
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
	v.say(v.p, "checking that the tests detect "+s.Others()+" (about "+left.Round(time.Second).String()+")")
	for all := s.Alterations(); len(all) > 0 && left > 0; all = s.Alterations() {
		of := len(s.Altered) + len(all)
		all = all[:min(len(all), v.Replay.AtOnce())]
		v.emit(state.Event{Kind: state.Progress, Text: fmt.Sprintf("replay %d of %d with %s", len(s.Altered)+len(all), of, s.Others())})
		longest, err := v.alterOnce(ctx, s, all, evidence.Limit(took))
		if err != nil || longest == 0 {
			return err
		}
		left -= longest
	}
	return nil
}

// alterOnce makes some of these replays side by side, and gives the longest one's time, 0
// where an app did not start, or one could not be made.
func (v turn) alterOnce(ctx context.Context, s *evidence.Suite, all []evidence.Alteration, limit time.Duration) (longest time.Duration, err error) {
	runs, errs := make([]roles.Replayed, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, a := range all {
		replay := roles.Replay{Against: roles.TheApp, Limit: limit, Altering: s.Altering(a), Beside: i}
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
		s.Tried(all[i], weighed(run))
	}
	if s.AlteredFault() != "" {
		return 0, nil
	}
	return longest, nil
}

// rerun replays a suite against the app until its results fit or do not.
func (v turn) rerun(ctx context.Context, commit string, claims evidence.Claims, s *evidence.Suite) (took time.Duration, failed string, err error) {
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
func (v turn) rerunOnce(ctx context.Context, commit string, s *evidence.Suite) (took time.Duration, failed string, err error) {
	name := fmt.Sprintf("app-%d", len(s.Real)+1)
	if s.Name != "" {
		name = strings.TrimSuffix(s.Name, "/passed") + "-" + name
	}
	run, text, err := v.replay(ctx, name, roles.Replay{Commit: commit, Against: roles.TheApp, Limit: maxReplayTime}, mostFaults)
	if err != nil || run.AppFailed != "" {
		return 0, run.AppFailed, err
	}
	v.say(v.p, text)
	s.Ran(weighed(run))
	return run.Took, "", nil
}

// mostFaults is how often a replay is made again that a fault of the machine ended.
const mostFaults = 2

// replay makes one replay, its record in the folder of the call whose tests, or
// whose turn, it is; again is how often it is repeated as long as faults end it. text says
// how it came out, in one line.
func (v turn) replay(ctx context.Context, name string, r roles.Replay, again int) (run roles.Replayed, text string, err error) {
	r.Key, r.Source = v.key+"/replay-"+name, v.p.SrcCommit
	r.Cmds = v.Jobs.Commands(roles.Verifier, *v.p, roles.Up{})
	if v.p.Recheck && r.Commit == "" {
		r.Commit = v.p.TestsCommit
	}
	failpoint.Here("replay.before")
	run, err = v.Replay.Run(ctx, r)
	for ; err == nil && run.Fault && again > 0 && ctx.Err() == nil; again-- {
		v.say(v.p, "replay "+name+" shows nothing and is made again: "+run.Gone)
		run, err = v.Replay.Run(ctx, r)
	}
	if err != nil {
		return run, "", fmt.Errorf("cannot replay the tests: %w", err)
	}
	doc := weighed(run).TAP
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

// weighed is a replay as evidence. What one printed that a fault ended is not read.
func weighed(r roles.Replayed) evidence.Run {
	if r.Fault {
		return evidence.Run{TAP: tap.Parse(nil, false), Gone: r.Gone, Fault: true}
	}
	return evidence.Run{
		TAP: tap.Parse(r.Output, !r.Late && r.Gone == ""), Exit: r.Exit, Late: r.Late, Gone: r.Gone,
		Broke: r.Ends.Broke, Other: r.Ends.Other, Watched: r.Watched, Record: r.Record,
	}
}

// tryNothing begins the tries against what stands in the app's place, at the same time as
// the replay against the app, of the tests of a commit, "" for today's. Where the Verifier
// reports a failure there is no pass to prove, and none is made. name begins the names of
// their records. within gives them so long from their begin, makes those again that a fault
// ended, and puts them into the suite; giveUp ends
// what is still under way, and waits until nothing of it is left.
func (v turn) tryNothing(ctx context.Context, claims evidence.Claims, commit, name string) (within func(time.Duration, *evidence.Suite) error, giveUp func()) {
	ctx, cancel := context.WithCancel(ctx)
	var against []roles.Against
	switch {
	case len(claims) > 0:
	case v.NoNull != "":
		against = []roles.Against{roles.NoApp}
	default:
		against = []roles.Against{roles.NoApp, roles.Empty, roles.Trouble}
	}
	cut, runs, errs := make(chan struct{}), make([]evidence.Run, len(against)), make([]error, len(against))
	var running sync.WaitGroup
	begun := time.Now()
	try := func(i int, r roles.Replay, again int) {
		r.Commit, r.Against = commit, against[i]
		running.Go(func() {
			run, _, err := v.replay(ctx, name+string(r.Against), r, again)
			runs[i], errs[i] = weighed(run), err
		})
	}
	for i := range against {
		try(i, roles.Replay{Limit: maxReplayTime, Cut: cut}, 0)
	}
	within = func(limit time.Duration, s *evidence.Suite) error {
		timer := time.AfterFunc(limit-time.Since(begun), func() { close(cut) })
		defer timer.Stop()
		running.Wait()
		for i, run := range runs {
			if run.Fault { // with all of its time
				v.say(v.p, "replay "+name+string(against[i])+" shows nothing and is made again: "+run.Gone)
				try(i, roles.Replay{Limit: limit}, mostFaults-1)
			}
		}
		running.Wait()
		into := map[roles.Against]**evidence.Run{roles.NoApp: &s.Away, roles.Empty: &s.Empty, roles.Trouble: &s.Broken}
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
