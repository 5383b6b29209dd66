package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"abl/orchestrator/evidence"
	"abl/roles"
)

// tries are the replays against what stands in the app's place, under way at the
// same time as the one against the app.
type tries struct {
	cancel  context.CancelFunc
	cut     chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex
	runs map[roles.Against]evidence.Run
	err  error
}

// tryNothing begins the tries that are asked for, of the tests of a commit, "" for
// today's. Where the Verifier reports a failure there is no pass to prove, and none
// is made. name begins the names of their records.
func (v verification) tryNothing(ctx context.Context, claims evidence.Claims, commit, name string) *tries {
	t := &tries{cut: make(chan struct{}), runs: map[roles.Against]evidence.Run{}}
	ctx, t.cancel = context.WithCancel(ctx)
	var against []roles.Against
	if v.Challenge.Away && len(claims) == 0 {
		against = append(against, roles.NoApp)
	}
	if v.Challenge.Null && len(claims) == 0 {
		against = append(against, roles.Empty, roles.Trouble)
	}
	for _, a := range against {
		t.running.Go(func() {
			run, _, err := v.replay(ctx, name+string(a), roles.Replay{Commit: commit, Against: a, Limit: maxReplayTime, Cut: t.cut})
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil {
				t.err = errors.Join(t.err, err)
				return
			}
			t.runs[a] = weighed(run)
		})
	}
	return t
}

// giveUp ends what is still under way, and waits until nothing of it is left.
func (t *tries) giveUp() {
	t.cancel()
	t.running.Wait()
}

// within gives the tries this long to end and puts them into the suite.
func (t *tries) within(left time.Duration, s *evidence.Suite) error {
	timer := time.AfterFunc(left, func() { close(t.cut) })
	defer timer.Stop()
	t.running.Wait()
	for a, into := range map[roles.Against]**evidence.Run{roles.NoApp: &s.Away, roles.Empty: &s.Empty, roles.Trouble: &s.Broken} {
		if run, ok := t.runs[a]; ok {
			*into = &run
		}
	}
	return t.err
}
