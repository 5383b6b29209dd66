package orchestrator

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator/evidence"
	"abl/roles"
	"abl/roles/replay"
)

// judge decides the verdict on the Verifier's call, records the finding and commits the tests. It
// tags a pass in both repositories.
func (l *Loop) judge(ctx context.Context, p *state.Phase) (Happened, error) {
	v := l.turn(roles.Verifier, p)
	f, err := v.finding(ctx)
	if err != nil {
		return Happened{}, err
	}
	failpoint.Here("judge.decided")
	if err := l.CheckLock(); err != nil {
		return Happened{}, err
	}
	if err := v.writeFailedSpecs(f); err != nil {
		return Happened{}, err
	}
	failpoint.Here("judge.written")
	c := Commit{Hash: p.TestsCommit}
	if !p.Recheck || f.Verdict == Fail {
		if c, err = v.commit(ctx); err != nil {
			return Happened{}, err
		}
	}
	for _, note := range f.Notes {
		v.note(note)
	}
	if f.Evidence.Strength != "" {
		v.say(v.p, evidence.StrengthText(f.Evidence.Strength, v.Kind == helper.KindCommand))
	}
	v.emit(state.Event{Kind: state.Verdict, Verdict: string(f.Verdict), Text: summary(f)})
	for _, lack := range f.Missing[min(1, len(f.Missing)):] {
		v.say(v.p, "and "+lack)
	}
	filter, err := l.filter(ctx)
	if err != nil {
		return Happened{}, err
	}
	entries, left := filter.Pass(f.Entries)
	for _, out := range left {
		v.note(out.Text)
	}
	standstill, tree, err := l.standstill(p, f)
	if err != nil {
		return Happened{}, err
	}
	h := Happened{
		Commit:  c.Hash,
		Verdict: f.Verdict,
		Entries: entries,
		Missing: f.Missing,
		Tree:    tree,
		Stalled: standstill.ForBuilder(),
		Idle:    standstill.Ends(l.NoProgress) || l.sameAnswer(p, f),
	}
	switch f.Verdict {
	case Pass:
		err = l.tag(ctx, p, c.Hash)
	case Fail:
		err = v.noteAbsent()
	}
	return h, err
}

// finding returns the finding on a call. A finding on disk is returned unchanged, because judge
// changes the files on which the decision is based.
func (v turn) finding(ctx context.Context) (f Finding, err error) {
	f, kept, err := roles.Read[Finding](v.record(), roles.FindingFile)
	if err != nil || kept {
		return f, err
	}
	ev, err := v.evidence(ctx)
	if err != nil {
		return f, err
	}
	f = Decide(ev)
	if v.Replay != nil && !f.ByReplay && ev.Class == outcome.Done {
		if err := replay.ForgetReplays(v.Project, v.key, false); err != nil {
			return f, err
		}
		found, err := v.replayTests(ctx, claims(f.Entries))
		if err != nil {
			return f, err
		}
		if f = decideByReplays(f, found); f.Verdict == Pass && !v.p.Recheck {
			if f, err = v.againstOlder(ctx, f); err != nil {
				return f, err
			}
		}
	}
	if v.p.Recheck {
		if f, err = v.rechecked(f); err != nil {
			return f, err
		}
	}
	f.Held = v.requirements()
	if err := v.Safe.Clean(&f); err != nil {
		return f, err
	}
	return f, v.record().Write(roles.FindingFile, f)
}

// writeFailedSpecs makes failed_specs.md match the verdict: abl writes it for its own entries, and
// removes it on a pass.
func (v turn) writeFailedSpecs(f Finding) error {
	ended := func(e failedspecs.Entry) bool { return e.Spec == evidence.Runs }
	writes := f.Verdict == Fail && (f.ByReplay || slices.ContainsFunc(f.Entries, ended))
	if !writes && f.Verdict != Pass {
		return nil
	}
	err := hostfs.Remove(v.Project.Tests, failedspecs.FileName) // also if it is a link or a folder
	if err == nil && writes {
		err = hostfs.Write(filepath.Join(v.Project.Tests, failedspecs.FileName), failedspecs.Render(f.Entries), 0o644)
	}
	return err
}

// filter returns the filter for entries on their way to the Builder.
func (l *Loop) filter(ctx context.Context) (*failedspecs.Filter, error) {
	names, err := l.TestNames(ctx)
	if err != nil {
		return nil, err
	}
	return failedspecs.NewFilter(l.Specs.Set.UpTo(l.Number), names), nil
}

// tag tags the commits of source and tests that have passed.
func (l *Loop) tag(ctx context.Context, p *state.Phase, tests string) error {
	name := passedTag(l.Number)
	if err := l.CheckLock(); err != nil {
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
