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
func (l *Loop) regress(ctx context.Context, p *state.Phase) (entries []failedspecs.Entry, failed string, err error) {
	if l.Replay == nil || l.Number == 1 {
		return nil, "", nil
	}
	key := l.key(roles.Verifier, p)
	if err := roles.ForgetReplays(l.Project, key, true); err != nil {
		return nil, "", err
	}
	var suites []evidence.Suite
	for n := 1; n < l.Number; n++ {
		name := passedTag(n)
		commit, ok, err := l.Tests.TagCommit(name)
		if err != nil {
			return nil, "", err
		}
		if !ok {
			l.emit(p, state.Event{Kind: state.Note, Text: fmt.Sprintf("phase %d is not replayed: its tests have no tag %s", n, name)})
			continue
		}
		s := evidence.Suite{Name: name, Contracts: l.contracts(n, n), Alone: true, Waived: evidence.Waived{Away: true, Null: true}}
		if _, failed, err = l.rerun(ctx, p, commit, nil, &s); err != nil || failed != "" {
			return nil, failed, err
		}
		suites = append(suites, s)
	}
	f := evidence.Decide(nil, suites...)
	if f.Verdict == evidence.Unverified {
		for _, why := range f.Reasons {
			l.emit(p, state.Event{Kind: state.Note, Text: "not shown by the replay of earlier phases: " + why})
		}
	}
	return f.Entries(), "", l.keepRegression(key, f)
}

// keepRegression keeps what the tests of earlier phases have shown, for the audit.
func (l *Loop) keepRegression(key string, f evidence.Finding) error {
	if err := l.Safe.Clean(&f); err != nil {
		return err
	}
	return roles.KeepRegression(l.Project, key, f)
}
