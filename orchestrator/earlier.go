package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/state"
	"abl/orchestrator/evidence"
	"abl/roles"
	"abl/roles/replay"
)

// regress replays the tests of earlier phases, in the versions with which those phases passed,
// before it pays for a Verifier. failed is the failure of the app to start.
func (v turn) regress(ctx context.Context) (entries []failedspecs.Entry, failed string, err error) {
	if v.Replay == nil || v.Number == 1 {
		return nil, "", nil
	}
	if err := replay.ForgetReplays(v.Project, v.key, true); err != nil {
		return nil, "", err
	}
	var suites []evidence.Suite
	for n := 1; n < v.Number; n++ {
		name := passedTag(n)
		commit, ok, err := v.Tests.TagCommit(name)
		if err != nil {
			return nil, "", err
		}
		s := evidence.Suite{
			Name:       name,
			Contracts:  contracts(v.Specs.Set, n, n),
			Unreported: true,
			Waived:     evidence.Waived{Away: true, Null: true},
		}
		if ok { // without a tag there are no tests to replay
			if _, failed, err = v.rerun(ctx, commit, nil, &s); err != nil || failed != "" {
				return nil, failed, err
			}
		}
		suites = append(suites, s)
	}
	f := evidence.Decide(nil, suites...)
	if f.Verdict == evidence.Unverified {
		for _, why := range f.Reasons {
			v.say(v.p, "the replay of earlier phases is not conclusive: "+why)
		}
	}
	entries = f.Entries()
	if err := v.Safe.Clean(&f); err != nil {
		return nil, "", err
	}
	return entries, "", v.record().Write(roles.RegressionFile, f)
}

// outdate marks passes of later phases as stale if they were made on another source than p's.
func (l *Loop) outdate(p *state.Phase, tree string) {
	for n := l.Number + 1; l.File.Phases[fmt.Sprint(n)] != nil; n++ {
		later := *l.File.Phases[fmt.Sprint(n)]
		if later.Status != state.Passed {
			continue
		}
		if had, err := l.Src.TreeKey(later.SrcCommit, roles.Builder.Reports); err == nil && had == tree {
			continue
		}
		later.Status = state.Stale
		later.Note = fmt.Sprintf("stale since phase %d passed on another source: abl phase %d replays its tests there, "+
			"which costs nothing if they pass", l.Number, n)
		l.File.Phases[fmt.Sprint(n)] = &later
		l.say(p, fmt.Sprintf("phase %d is %s", n, later.Note))
	}
}

// recheckable reports whether the tests with which a stale phase passed can be replayed. It sets
// their commit in p and notes what the new round does.
func (l *Loop) recheckable(p *state.Phase) (ok bool, err error) {
	if p.Status != state.Stale {
		return false, nil
	}
	if p.TestsCommit, ok, err = l.Tests.TagCommit(passedTag(l.Number)); err != nil {
		return false, err
	}
	text := "its tests are run again on the current source; no agent is called"
	if ok = ok && l.Replay != nil; !ok {
		text = fmt.Sprintf("cannot replay its tests (no tag %s, or verify.evidence is off): "+
			"a Verifier checks whether it still holds", passedTag(l.Number))
	}
	l.say(&state.Phase{Round: p.Round + 1}, text) // of the round that begins
	return ok, nil
}

// rechecked requires that the replays of earlier phases prove their contracts, for a finding
// without a call of the Verifier.
func (v turn) rechecked(f Finding) (Finding, error) {
	f.ByReplay = true
	earlier, _, err := roles.Read[evidence.Finding](v.record(), roles.RegressionFile)
	if err != nil || f.Verdict != Pass {
		return f, err
	}
	switch {
	case f.Evidence.Verdict == "", earlier.Verdict == "" && v.Number > 1:
		f.Verdict, f.Missing = Unknown, []string{"the tests of the phase, and of those before it, were not replayed"}
	case earlier.Verdict == evidence.Unverified:
		f.Verdict, f.Missing = Unknown, earlier.Reasons
	}
	return f, nil
}

// againstOlder replays the tests that refuted the same source under the same specs, in any round.
// A source does not fulfil a contract because its test was changed.
func (v turn) againstOlder(ctx context.Context, f Finding) (Finding, error) {
	tree, err := v.Src.TreeKey(v.p.SrcCommit, roles.Builder.Reports)
	if err != nil {
		return f, err
	}
	var doubts []string
	seen := map[string]bool{}
	for _, r := range slices.Backward(v.p.History) {
		if r.Verdict != string(Fail) || r.Tree != tree || r.TestsCommit == "" || seen[r.TestsCommit] {
			continue
		}
		seen[r.TestsCommit] = true
		o, ok, err := v.olderTests(r)
		if err != nil {
			return f, err
		}
		if !ok {
			continue
		}
		if err := v.replayOlder(ctx, r.TestsCommit, &o); err != nil {
			return f, err
		}
		if ended := evidence.Decide(nil, o.Suite).Ended; len(ended) > 0 {
			f.Verdict, f.Entries, f.ByReplay = Fail, append(f.Entries,
				evidence.Ended("the requests of the tests of "+o.Suite.Name, ended)), true
		}
		lacks, notes := o.Weigh()
		doubts, f.Notes = append(doubts, lacks...), append(f.Notes, notes...)
	}
	if len(doubts) > 0 && f.Verdict == Pass {
		f.Verdict = Unknown
		f.Missing = append(doubts, "only the user can overrule a test that refuted a contract: if it was wrong, "+
			"clarify the spec, and a new round begins")
	}
	return f, nil
}

// olderTests returns the tests of an iteration. ok is false if its verdict did not come from them,
// or the specs have changed since.
func (v turn) olderTests(r state.IterationRecord) (o evidence.Older, ok bool, err error) {
	was, kept, err := roles.Read[Finding](roles.Record{Dir: v.Project.Call(r.Call)}, roles.FindingFile)
	if err != nil || !kept || was.ByReplay && was.Evidence.Verdict == "" {
		return o, false, err
	}
	same := func(a, b audit.Spec) bool { return a.SHA256 == b.SHA256 }
	if !slices.EqualFunc(was.Held.Specs, v.requirements().Specs, same) {
		return o, false, nil
	}
	o = evidence.Older{Step: r.Step, Claims: claims(was.Entries)}
	o.Suite = evidence.Suite{Name: fmt.Sprintf("step-%d", r.Step), Contracts: contracts(v.Specs.Set, 1, v.Number),
		Unreported: true}
	return o, true, nil
}

// replayOlder runs the replays of older tests. It runs them against null apps only if they still
// refute the source.
func (v turn) replayOlder(ctx context.Context, commit string, o *evidence.Older) error {
	took, failed, err := v.rerun(ctx, commit, nil, &o.Suite)
	if err != nil {
		return err
	}
	if failed != "" { // the tests did not run, so the older claims remain
		return nil
	}
	if doubts, _ := o.Weigh(); len(doubts) == 0 {
		return nil
	}
	within, giveUp := v.startNullRuns(ctx, nil, commit, o.Suite.Name+"-")
	defer giveUp()
	if err := within(evidence.Limit(took), &o.Suite); err != nil {
		return err
	}
	changed, err := v.Tests.Differs(ctx, commit)
	if err != nil {
		return err
	}
	o.Changed = slices.DeleteFunc(changed, func(path string) bool {
		return path == failedspecs.FileName || strings.HasPrefix(path, roles.Verifier.Reports+"/")
	})
	return nil
}
