package orchestrator

import (
	"context"
	"fmt"

	"abl/internal/failedspecs"
	"abl/internal/state"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// regress replays the tests of the phases before this one, as they were when each
// of them passed, before a Verifier is paid: what held must hold. failed is what
// was observed when the app did not start.
func (v verification) regress(ctx context.Context) (entries []failedspecs.Entry, failed string, err error) {
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
		if !ok {
			v.emit(state.Event{Kind: state.Note, Text: fmt.Sprintf("phase %d is not replayed: its tests have no tag %s", n, name)})
			continue
		}
		s := evidence.Suite{Name: name, Contracts: contracts(v.Specs.Set, n, n), Alone: true, Waived: evidence.Waived{Away: true, Null: true}}
		if _, failed, err = v.rerun(ctx, commit, nil, &s); err != nil || failed != "" {
			return nil, failed, err
		}
		suites = append(suites, s)
	}
	f := evidence.Decide(nil, suites...)
	if f.Verdict == evidence.Unverified {
		for _, why := range f.Reasons {
			v.emit(state.Event{Kind: state.Note, Text: "not shown by the replay of earlier phases: " + why})
		}
	}
	entries = f.Entries()
	if err := v.Safe.Clean(&f); err != nil {
		return nil, "", err
	}
	return entries, "", roles.KeepRegression(v.Project, v.key, f)
}
