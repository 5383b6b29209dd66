package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"abl/cmd/internal/money"
	"abl/internal/git"
	"abl/internal/proc"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
)

// holding is a lease that this process holds.
type holding struct {
	*Project
	id     string // of the project
	period time.Duration
	stop   func() // ends the renewals

	push     sync.Mutex // one push at a time
	sequence int64

	mu     sync.Mutex
	last   time.Time // when the last push that succeeded began
	lost   error
	cancel context.CancelCauseFunc // of the run
}

// TakeLease takes the lease before the first effect of a run. When the lease is lost, it calls cancel. Calls
// of f that were running under an expired lease are opened again: book gets them, and note reports them.
func (s *Project) TakeLease(
	ctx context.Context, cancel context.CancelCauseFunc, f *state.File, book money.Book, note func(string),
) error {
	if s.remote == nil {
		return nil
	}
	if h := s.holds; h != nil { // an earlier phase of this process took it
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cancel = cancel
		return h.lost
	}
	x, err := s.exchange()
	if err != nil {
		return err
	}
	l, held, err := x.leaseAt(x.tip)
	if err == nil && held && !x.isMine(l) {
		err = s.openAgain(l.Host, f, book, note)
	}
	if err != nil {
		return err
	}
	h := &holding{Project: s, id: f.Project, period: time.Duration(s.Conf.Remote.Lease),
		sequence: l.Sequence, cancel: cancel}
	if err := h.publish(ctx, f, false); err != nil {
		return err
	}
	failpoint.Here("remote.taken")
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	h.stop = func() { stop(); done.Wait() }
	done.Go(func() { h.renew(renewing) })
	s.holds = h
	return nil
}

// openAgain opens the next attempt of each call that ran on host under an expired lease. The ledger gets a
// row without usage for the call: its cost is unknown.
func (s *Project) openAgain(host string, f *state.File, book money.Book, note func(string)) error {
	for _, n := range f.Begun() {
		p := f.Phase(n)
		key := p.Current()
		here, err := s.CallBegun(p) // a shared folder has the record of the call
		if err != nil {
			return err
		}
		if key == "" || here {
			continue
		}
		next, rows := orchestrator.Abandoned(n, p)
		if err := book.Append(rows); err != nil {
			return err
		}
		f.Phases[fmt.Sprint(n)] = &next
		note(fmt.Sprintf("call %s was running on %q, whose lease expired: "+
			"it starts again as attempt %d, and its cost is unknown", key, host, next.Attempt))
	}
	return nil
}

// renew pushes the lease after a third of its period without a push. When the lease is lost, it ends
// the run.
func (h *holding) renew(ctx context.Context) {
	warned := false
	for proc.Pause(ctx, h.period/12) == nil {
		if h.valid() != nil {
			return
		}
		if h.age() < h.period/3 {
			continue
		}
		if err := h.publish(ctx, nil, false); err != nil && ctx.Err() == nil && !warned {
			warned = true
			h.In.Warn(err)
		}
	}
}

func (h *holding) age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.last)
}

// validFor is how long after a push the lease counts as held. Other machines wait for the whole period.
func (h *holding) validFor() time.Duration { return h.period * 3 / 4 }

// valid fails if the lease is lost, or if this process could not push for so long that it may be.
func (h *holding) valid() error {
	if h == nil {
		return nil
	}
	var why error
	if h.age() > h.validFor() {
		why = fmt.Errorf("no push to %s succeeded for %s", h.Conf.Remote.Name, h.validFor())
	}
	return h.lose(why)
}

// lose ends the run if there is a reason, and returns the error with which it ended.
func (h *holding) lose(why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil && why != nil {
		h.lost = busy(lostLease{why})
		h.cancel(h.lost)
	}
	return h.lost
}

// publish commits a state with the lease, and pushes it with the branches, the tests and the records. A
// nil file renews the lease of the state that was pushed last. release publishes it without a lease.
func (h *holding) publish(ctx context.Context, file *state.File, release bool) error {
	h.push.Lock()
	defer h.push.Unlock()
	now := time.Now()
	if !h.last.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), now.Add(h.validFor()-h.age()))
		defer cancel()
	}
	x, err := h.exchange()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	h.sequence++
	if x.release = release; !release {
		x.lease = &lease{h.id, host, h.sequence, h.period.String()}
	}
	if file == nil {
		err = x.renew(ctx)
	} else {
		x.file = file
		_, err = x.bring(ctx, file.Begun())
	}
	failpoint.Here("remote.committed")
	was := h.remote.Ref(stateRef)
	if err == nil {
		err = h.remote.Push(ctx, x.refsToPush()...)
	}
	failpoint.Here("remote.pushed")
	if errors.Is(err, git.ErrBehind) && h.remote.Ref(stateRef) != was { // another clone pushed a state
		return h.lose(err)
	}
	if err == nil {
		h.mu.Lock()
		h.last = now
		h.mu.Unlock()
	}
	return err
}

// renew commits the published state with a new lease.
func (x exchange) renew(ctx context.Context) error {
	files, err := x.kept(x.tip)
	if err == nil {
		files[leaseFile], err = json.Marshal(x.lease)
	}
	if err == nil {
		_, err = x.repo.Keep(ctx, stateRef, x.tip, fmt.Sprintf("lease %d of %s", x.lease.Sequence, x.lease.Host), files)
	}
	return err
}

// SaveAndPush saves the state. Under a lease it pushes it too, unless work of a call of phase n is not
// committed yet. An unavailable remote ends the run only when the lease is no longer valid. The result of
// a phase is pushed again until then, because no later step pushes it.
func (s *Project) SaveAndPush(ctx context.Context, f *state.File, n int, note func(string)) error {
	if err := s.Save(f); err != nil || s.holds == nil {
		return err
	}
	p := f.Phase(n)
	if p.Status == state.Built || p.Status == state.Verified {
		return nil
	}
	err := s.holds.publish(ctx, f, false)
	for errors.Is(err, git.ErrRemote) && !p.OnItsWay() && s.holds.valid() == nil {
		if err = proc.Pause(ctx, s.holds.period/12); err == nil {
			err = s.holds.publish(ctx, f, false)
		}
	}
	if lost := s.holds.valid(); lost != nil {
		return lost
	}
	if errors.Is(err, git.ErrRemote) {
		note(err.Error() + "; abl pushes again at the next step")
		return nil
	}
	return err
}

// CheckLock fails if another abl may work on the project, here or on another machine.
func (s *Project) CheckLock() error { return errors.Join(s.Held(), s.holds.valid()) }

// giveBack ends the renewals and pushes the state without the lease. It keeps the lease while a call of
// this machine is still running.
func (h *holding) giveBack() error {
	if h == nil {
		return nil
	}
	h.stop()
	if h.valid() != nil {
		return nil
	}
	f, err := h.State()
	if err != nil {
		return err
	}
	for _, p := range f.Phases {
		if running, err := h.CallBegun(*p); err != nil || running && !p.Recheck {
			return err
		}
	}
	return h.publish(context.Background(), f, true)
}
