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
)

// regress replays the tests of the phases before this one, as they were when each
// of them passed, before a Verifier is paid: what held must hold. failed is what
// was observed when the app did not start.
func (v turn) regress(ctx context.Context) (entries []failedspecs.Entry, failed string, err error) {
	if v.Replay == nil || v.Number == 1 {
		return nil, "", nil
	}
	if err := roles.ForgetReplays(v.Project, v.key, true); err != nil {
		return nil, "", err
	}
	var suites []evidence.Suite
	for n := 1; n < v.Number; n++ {
		name := passedTag(n)
		commit, ok, err := v.Tests.TagCommit(name)
		if err != nil {
			return nil, "", err
		}
		s := evidence.Suite{Name: name, Contracts: contracts(v.Specs.Set, n, n), Alone: true, Waived: evidence.Waived{Away: true, Null: true}}
		if ok { // else nothing shows what the phase promised
			if _, failed, err = v.rerun(ctx, commit, nil, &s); err != nil || failed != "" {
				return nil, failed, err
			}
		}
		suites = append(suites, s)
	}
	f := evidence.Decide(nil, suites...)
	if f.Verdict == evidence.Unverified {
		for _, why := range f.Reasons {
			v.say(v.p, "not shown by the replay of earlier phases: "+why)
		}
	}
	entries = f.Entries()
	if err := v.Safe.Clean(&f); err != nil {
		return nil, "", err
	}
	return entries, "", v.record().Write(roles.RegressionFile, f)
}

// outdate marks the passes of later phases that were made on another source than
// that of p's: nobody has seen what they promise there.
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
		later.Note = fmt.Sprintf("stale since phase %d passed on another source: abl phase %d replays its tests there, which costs nothing while they hold", l.Number, n)
		l.File.Phases[fmt.Sprint(n)] = &later
		l.say(p, fmt.Sprintf("phase %d is %s", n, later.Note))
	}
}

// recheckable says whether what a stale phase passed with can be replayed, and
// notes which tests these are.
func (l *Loop) recheckable(p *state.Phase) (ok bool, err error) {
	if p.Status != state.Stale {
		return false, nil
	}
	if p.TestsCommit, ok, err = l.Tests.TagCommit(passedTag(l.Number)); err != nil {
		return false, err
	}
	text := "its tests are run again on the current source; no agent is called"
	if ok = ok && l.Replay != nil; !ok {
		text = fmt.Sprintf("nothing can be replayed (no tag %s, or verify.evidence is off): a Verifier says whether it still holds", passedTag(l.Number))
	}
	l.say(p, text)
	return ok, nil
}

// rechecked holds a finding in which no agent had a part to every contract of the
// phases before this one: those are shown by the tests that their own phases
// passed with, or not at all.
func (v turn) rechecked(f Finding) (Finding, error) {
	f.ByReplay = true
	earlier, _, err := roles.Read[evidence.Finding](v.record(), roles.RegressionFile)
	if err != nil || f.Verdict != Pass {
		return f, err
	}
	switch {
	case f.Evidence.Verdict == "", earlier.Verdict == "" && v.Number > 1:
		f.Verdict, f.Missing = Unknown, []string{"what the phase, and those before it, passed with was not replayed"}
	case earlier.Verdict == evidence.Unverified:
		f.Verdict, f.Missing = Unknown, earlier.Reasons
	}
	return f, nil
}

// againstOlder holds a pass against the tests that refuted the same source under the
// same specs, whatever round that was in: a source does not come to fulfil a contract
// by a change of its test.
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
			f.Verdict, f.Entries, f.ByReplay = Fail, append(f.Entries, evidence.Ended("the requests of the tests of "+o.Suite.Name, ended)), true
		}
		lacks, notes := o.Weigh()
		doubts, f.Notes = append(doubts, lacks...), append(f.Notes, notes...)
	}
	if len(doubts) > 0 && f.Verdict == Pass {
		f.Verdict = Unknown
		f.Missing = append(doubts, "a test that refuted is overruled by a person alone: where it was wrong, a word more in the spec says so, and a new round begins")
	}
	return f, nil
}

// olderTests are the tests of an iteration; ok is false when no Verifier drew its
// verdict from them, or the specs have changed since.
func (v turn) olderTests(r state.IterationRecord) (o evidence.Older, ok bool, err error) {
	was, kept, err := roles.Read[Finding](roles.Record{Dir: v.Project.Call(r.Call)}, roles.FindingFile)
	if err != nil || !kept || was.ByReplay && was.Evidence.Verdict == "" {
		return o, false, err
	}
	same := func(a, b audit.Spec) bool { return a.SHA256 == b.SHA256 }
	if !slices.EqualFunc(was.Held.Specs, v.held().Specs, same) {
		return o, false, nil
	}
	o = evidence.Older{Step: r.Step, Claims: claims(was.Entries)}
	o.Suite = evidence.Suite{Name: fmt.Sprintf("step-%d", r.Step), Contracts: contracts(v.Specs.Set, 1, v.Number), Alone: true}
	return o, true, nil
}

// replayOlder makes the replays that the weighing needs: the tries against nothing
// only where the tests refute still.
func (v turn) replayOlder(ctx context.Context, commit string, o *evidence.Older) error {
	took, failed, err := v.rerun(ctx, commit, nil, &o.Suite)
	if err != nil {
		return err
	}
	if failed != "" { // nothing was shown, so what was claimed stands
		return nil
	}
	if doubts, _ := o.Weigh(); len(doubts) == 0 {
		return nil
	}
	within, giveUp := v.tryNothing(ctx, nil, commit, o.Suite.Name+"-")
	defer giveUp()
	if err := within(evidence.Limit(took), &o.Suite); err != nil {
		return err
	}
	changed, err := v.Tests.Differs(ctx, commit)
	o.Changed = slices.DeleteFunc(changed, func(path string) bool {
		return path == failedspecs.FileName || strings.HasPrefix(path, roles.Verifier.Reports+"/")
	})
	return err
}
