package orchestrator

import (
	"context"
	"fmt"

	"abl/internal/failpoint"
	"abl/orchestrator/event"
	"abl/orchestrator/state"
	"abl/orchestrator/verdict"
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
	if err := l.settle(p, f); err != nil {
		return Happened{}, err
	}
	failpoint.Here("judge.settled")
	c, err := l.commit(ctx, l.Tests, roles.Verifier, p)
	if err != nil {
		return Happened{}, err
	}
	for _, note := range f.Notes {
		l.emit(p, event.Event{Kind: event.Note, Role: roles.Verifier.Name, Text: note})
	}
	l.emit(p, event.Event{Kind: event.Verdict, Role: roles.Verifier.Name, Verdict: string(f.Verdict), Text: summary(f)})
	h := Happened{Commit: c.Hash, Verdict: f.Verdict, Entries: f.Entries, Missing: f.Missing}
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
	return f, roles.KeepFinding(l.Project, key, f)
}

// settle leaves failed_specs.md as the verdict wants it: written by abl when
// the app did not start, away on a pass.
func (l *Loop) settle(p *state.Phase, f Finding) error {
	switch {
	case p.AppFailed != "":
		return roles.WriteTests(l.Project, FailedSpecs, verdict.Render(f.Entries))
	case f.Verdict == Pass:
		return roles.RemoveTests(l.Project, FailedSpecs)
	}
	return nil
}

func (l *Loop) tag(ctx context.Context, p *state.Phase, tests string) error {
	name := fmt.Sprintf("phase%d/passed", l.Number)
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
