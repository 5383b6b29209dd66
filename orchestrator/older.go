package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"abl/internal/audit"
	"abl/internal/state"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// againstOlder holds a pass against the tests that refuted the same source under the
// same specs, whatever round that was in: a source does not come to fulfil a contract
// by a change of its test.
func (v verification) againstOlder(ctx context.Context, f Finding) (Finding, error) {
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
func (v verification) olderTests(r state.IterationRecord) (o evidence.Older, ok bool, err error) {
	var was Finding
	kept, err := roles.KeptFinding(v.Project, r.Call, &was)
	if err != nil || !kept || was.ByReplay && was.Evidence == nil || was.Held == nil {
		return o, false, err
	}
	sums := func(specs []audit.Spec) (all []string) {
		for _, s := range specs {
			all = append(all, s.SHA256)
		}
		return all
	}
	if !slices.Equal(sums(was.Held.Specs), sums(v.held().Specs)) {
		return o, false, nil
	}
	o = evidence.Older{Step: r.Step, Claims: claims(was.Entries)}
	o.Suite = evidence.Suite{Name: fmt.Sprintf("step-%d", r.Step), Contracts: contracts(v.Specs.Set, 1, v.Number), Alone: true}
	return o, true, nil
}

// replayOlder makes the replays that the weighing needs: the tries against nothing
// only where the tests refute still.
func (v verification) replayOlder(ctx context.Context, commit string, o *evidence.Older) error {
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
	tries := v.tryNothing(ctx, nil, commit, o.Suite.Name+"-")
	defer tries.giveUp()
	if err := tries.within(evidence.Limit(took), &o.Suite); err != nil {
		return err
	}
	changed, err := v.Tests.Differs(ctx, commit)
	o.Changed = slices.DeleteFunc(changed, func(path string) bool {
		return path == FailedSpecs || strings.HasPrefix(path, roles.Verifier.Reports+"/")
	})
	const most = 5
	if more := len(o.Changed) - most; more > 0 {
		o.Changed = append(slices.Clone(o.Changed[:most]), fmt.Sprintf("%d more", more))
	}
	return err
}
