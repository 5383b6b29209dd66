package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// FailedSpecs is the Verifier's file of failed contracts.
const FailedSpecs = "failed_specs.md"

// maxFailedSpecs is the largest such file that is read, in bytes.
const maxFailedSpecs = 256 << 10

// judge reads what the Verifier left, decides, keeps the finding with the
// call, and commits the tests; a pass is tagged in both repositories.
func (l *Loop) judge(ctx context.Context, p *state.Phase) (Happened, error) {
	f, err := l.finding(ctx, p)
	if err != nil {
		return Happened{}, err
	}
	failpoint.Here("judge.decided")
	if err := l.Alone(); err != nil {
		return Happened{}, err
	}
	if err := l.settle(p, f); err != nil {
		return Happened{}, err
	}
	failpoint.Here("judge.settled")
	c := Commit{Hash: p.TestsCommit}
	if !p.Recheck || f.Verdict == Fail {
		if c, err = l.commit(ctx, l.Tests, roles.Verifier, p); err != nil {
			return Happened{}, err
		}
	}
	for _, note := range f.Notes {
		l.emit(p, state.Event{Kind: state.Note, Role: roles.Verifier.Name, Text: note})
	}
	l.emit(p, state.Event{Kind: state.Verdict, Role: roles.Verifier.Name, Verdict: string(f.Verdict), Text: summary(f)})
	for _, lack := range f.Missing[min(1, len(f.Missing)):] {
		l.emit(p, state.Event{Kind: state.Note, Role: roles.Verifier.Name, Text: "and " + lack})
	}
	filter, err := l.filter(ctx)
	if err != nil {
		return Happened{}, err
	}
	entries, left := filter.Pass(f.Entries)
	for _, out := range left {
		l.emit(p, state.Event{Kind: state.Note, Role: roles.Verifier.Name, Text: out.Text})
	}
	standstill, tree, err := l.standstill(p, f)
	if err != nil {
		return Happened{}, err
	}
	h := Happened{
		Commit: c.Hash, Verdict: f.Verdict, Entries: entries, Missing: f.Missing,
		Tree: tree, Stalled: standstill.ForBuilder(), Idle: standstill.Ends(l.NoProgress) || l.sameAnswer(p, f),
	}
	if f.Verdict == Pass {
		err = l.tag(ctx, p, c.Hash)
	}
	return h, err
}

// finding decides over a call, once: what was decided stays, since settling it
// changes what it was decided from.
func (l *Loop) finding(ctx context.Context, p *state.Phase) (f Finding, err error) {
	key := l.key(roles.Verifier, p)
	if kept, err := roles.KeptFinding(l.Project, key, &f); err != nil || kept {
		return f, err
	}
	ev, err := l.evidence(ctx, p)
	if err != nil {
		return f, err
	}
	f = Decide(ev)
	if l.Replay != nil && !f.ByReplay && ev.Class == outcome.Done {
		if err := roles.ForgetReplays(l.Project, key, false); err != nil {
			return f, err
		}
		found, err := l.weigh(ctx, p, claims(f.Entries))
		if err != nil {
			return f, err
		}
		if f = decideByReplays(f, found); f.Verdict == Pass && !p.Recheck {
			if f, err = l.againstOlder(ctx, p, f); err != nil {
				return f, err
			}
		}
	}
	if p.Recheck {
		if f, err = l.rechecked(p, f); err != nil {
			return f, err
		}
	}
	f.Held = l.held(p)
	if err := l.Safe.Clean(&f); err != nil {
		return f, err
	}
	return f, roles.KeepFinding(l.Project, key, f)
}

// settle leaves failed_specs.md as the verdict wants it: written by abl when
// the app did not start or ended by itself, away on a pass.
func (l *Loop) settle(p *state.Phase, f Finding) error {
	ended := func(e failedspecs.Entry) bool { return e.Spec == evidence.Runs }
	switch {
	case f.Verdict == Fail && (f.ByReplay || slices.ContainsFunc(f.Entries, ended)):
		return roles.WriteTests(l.Project, FailedSpecs, failedspecs.Render(f.Entries))
	case f.Verdict == Pass:
		return roles.RemoveTests(l.Project, FailedSpecs)
	}
	return nil
}

// filter decides what of an entry reaches the Builder.
func (l *Loop) filter(ctx context.Context) (*failedspecs.Filter, error) {
	var names []string
	if l.TestNames != nil {
		var err error
		if names, err = l.TestNames(ctx); err != nil {
			return nil, err
		}
	}
	return failedspecs.NewFilter(l.Specs.Set.UpTo(l.Number), names), nil
}

func (l *Loop) tag(ctx context.Context, p *state.Phase, tests string) error {
	name := passedTag(l.Number)
	if err := l.Alone(); err != nil {
		return err
	}
	if err := l.Src.Tag(ctx, name, p.SrcCommit); err != nil {
		return fmt.Errorf("cannot tag the source: %w", err)
	}
	failpoint.Here("tag.src")
	if err := l.Tests.Tag(ctx, name, tests); err != nil {
		return fmt.Errorf("cannot tag the tests: %w", err)
	}
	failpoint.Here("tag.tests")
	return nil
}
