package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/witness"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// Replays runs saved tests again, without an agent.
type Replays interface {
	Run(context.Context, roles.Replay) (roles.Replayed, error)
}

// Challenge says what the tests are tried against besides the app.
type Challenge struct {
	Away, Null bool
	LeftOut    string // what the person asked for and cannot be tried here, with the reason; "" for nothing
}

// maxReplayTime is the longest that one replay against the app may take.
const maxReplayTime = 10 * time.Minute

// contracts are those of phases from to to, as evidence weighs them.
func (l *Loop) contracts(from, to int) (all []evidence.Contract) {
	for _, s := range l.Specs.Set.UpTo(to) {
		if s.Number < from {
			continue
		}
		for _, c := range s.Contracts {
			all = append(all, evidence.Contract{ID: c.ID, Says: c.Says(), Absence: c.Absence})
		}
	}
	return all
}

// known are the ids of all contracts, those of later phases too.
func (l *Loop) known() []string {
	ids := []string{}
	for _, c := range l.contracts(1, spec.MaxPhase) {
		ids = append(ids, c.ID)
	}
	return ids
}

// weigh replays what the Verifier saved, against the app and against what stands
// in for it, and says what that proves. The tests that let nothing be proven need
// no tries against nothing.
func (l *Loop) weigh(ctx context.Context, p *state.Phase, claims evidence.Claims) (evidence.Finding, error) {
	suite := evidence.Suite{Contracts: l.contracts(1, l.Number), Known: l.known(), Waived: evidence.Waived{Away: !l.Challenge.Away, Null: !l.Challenge.Null}}
	if p.Recheck { // earlier phases are held to by tests of their own
		suite.Contracts, suite.Alone = l.contracts(l.Number, l.Number), true
	}
	begun := time.Now()
	tries := l.tryNothing(ctx, p, claims, "", "")
	defer tries.giveUp()
	took, failed, err := l.rerun(ctx, p, "", claims, &suite)
	if err != nil || failed != "" {
		return evidence.Finding{Verdict: evidence.Unverified, Reasons: []string{"the app did not start for the replay: " + failed}}, err
	}
	if f := evidence.Decide(claims, suite); f.Verdict == evidence.Fail {
		return f, nil
	}
	limit := evidence.Limit(took)
	if err := tries.within(limit-time.Since(begun), &suite); err != nil {
		return evidence.Finding{}, err
	}
	if err := l.plant(ctx, p, &suite, limit); err != nil {
		return evidence.Finding{}, err
	}
	return l.leftOut(evidence.Decide(claims, suite)), nil
}

// plant tries a suite whose lines might be the app's own against an app that
// answers with a test line.
func (l *Loop) plant(ctx context.Context, p *state.Phase, s *evidence.Suite, limit time.Duration) error {
	if !l.Challenge.Null || !evidence.Suspect(*s) {
		return nil
	}
	run, _, err := l.replay(ctx, p, roles.Replay{Key: l.replayKey(p, string(roles.TestLines)), Against: roles.TestLines, Limit: limit})
	weighed := weighed(run)
	s.Planted = &weighed
	return err
}

// leftOut says of a finding what was not tried.
func (l *Loop) leftOut(f evidence.Finding) evidence.Finding {
	if l.Challenge.LeftOut != "" {
		f.Notes = append(f.Notes, l.Challenge.LeftOut)
	}
	return f
}

// rerun replays a suite against the app until its results fit or do not.
func (l *Loop) rerun(ctx context.Context, p *state.Phase, commit string, claims evidence.Claims, s *evidence.Suite) (took time.Duration, failed string, err error) {
	for evidence.Again(claims, *s) {
		name := fmt.Sprintf("app-%d", len(s.Real)+1)
		if s.Name != "" {
			name = strings.TrimSuffix(s.Name, "/passed") + "-" + name
		}
		run, text, err := l.replay(ctx, p, roles.Replay{Key: l.replayKey(p, name), Commit: commit, Against: roles.TheApp, Limit: maxReplayTime})
		if err != nil || run.AppFailed != "" {
			return 0, run.AppFailed, err
		}
		l.emit(p, state.Event{Kind: state.Note, Role: roles.Verifier.Name, Text: text})
		took = max(took, run.Took)
		s.Real = append(s.Real, weighed(run))
	}
	return took, "", nil
}

// replay makes one replay. text says how it came out, in one line.
func (l *Loop) replay(ctx context.Context, p *state.Phase, r roles.Replay) (run roles.Replayed, text string, err error) {
	r.Cmds = l.Jobs.Commands(roles.Verifier, *p, roles.Up{})
	if p.Recheck && r.Commit == "" {
		r.Commit = p.TestsCommit
	}
	failpoint.Here("replay.before")
	if run, err = l.Replay.Run(ctx, r); err != nil {
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

// replayKey is where a replay's record is: in the folder of the call whose tests,
// or whose turn, it is.
func (l *Loop) replayKey(p *state.Phase, name string) string {
	return l.key(roles.Verifier, p) + "/replay-" + name
}

func weighed(r roles.Replayed) evidence.Run {
	return evidence.Run{TAP: witness.Parse(r.Output, !r.Late && r.Gone == ""), Exit: r.Exit, Late: r.Late, Gone: r.Gone, Broke: r.Ends.Broke, Other: r.Ends.Other}
}

// counted is a number with its noun.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
