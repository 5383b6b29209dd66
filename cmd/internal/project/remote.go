package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/state"
)

// leaseFile is the name under which a lease is published.
const leaseFile = "lease.json"

// lease is the right of one clone of a project to run its phases.
type lease struct {
	Holder   string `json:"holder"`   // id of the project in that clone
	Host     string `json:"host"`     // of that clone
	Sequence int64  `json:"sequence"` // grows with each push of a lease
	Expiry   string `json:"expiry"`   // without a push for so long, another clone may take the lease
}

// period returns the expiry as a duration within bounds, since another machine wrote it.
func (l lease) period() time.Duration {
	d, _ := time.ParseDuration(l.Expiry)
	return min(max(d, time.Second), 24*time.Hour)
}

// leaseAt returns the lease in a published state. It returns false if the state has none.
func (x exchange) leaseAt(commit string) (l lease, held bool, err error) {
	if commit == "" {
		return l, false, nil
	}
	files, err := x.kept(commit)
	data, held := files[leaseFile]
	if err != nil || !held {
		return l, false, err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		err = fmt.Errorf("cannot read %s of commit %.12s: %w", leaseFile, commit, err)
		return l, false, exit.With(exit.Person, err, unbelieved)
	}
	return l, true, nil
}

// isMine reports whether this clone wrote a lease. The lock of the project is held, so the process that
// wrote it has ended.
func (x exchange) isMine(l lease) bool {
	host, _ := os.Hostname()
	return l.Holder == x.file.Project && l.Host == host
}

// RemoteFlag names the remote that holds the state.
func RemoteFlag() cli.Flag {
	return cli.Flag{Name: "remote", Value: "NAME",
		Usage: "keep the state in this git remote, under a lease (default: remote.name; docs/cluster.md)"}
}

// fetchState fetches the state from the remote and makes it the local one. If another clone holds the
// lease, it waits until the lease is released or expires, and fails if the holder renews it.
func (s *Project) fetchState(ctx context.Context) error {
	if _, err := s.Lock(); err != nil {
		return err
	}
	x, err := s.exchange()
	if err != nil {
		return err
	}
	if s.remote, err = x.repo.Remote(s.Conf.Remote.Name); err != nil {
		return exit.With(exit.Usage, err, "git remote -v lists the remotes")
	}
	if err := s.remote.Fetch(ctx, s.prefix()); err != nil {
		return err
	}
	if err := x.await(ctx); err != nil {
		return err
	}
	if err := x.adopt(ctx); err != nil {
		return err
	}
	return s.pushResult(ctx)
}

// pushResult pushes the results of phases that an earlier run saved before it was killed. It does nothing
// while a phase is on its way: its next run pushes everything.
func (s *Project) pushResult(ctx context.Context) error {
	x, err := s.exchange()
	if err != nil {
		return err
	}
	phases := x.file.Begun()
	if len(phases) == 0 || slices.ContainsFunc(phases, func(n int) bool { return x.file.Phase(n).OnItsWay() }) {
		return nil
	}
	same, theirs := false, s.remote.Ref(stateRef)
	_, held, err := x.leaseAt(theirs)
	if err == nil && !held && theirs != "" {
		same, err = x.standsAt(theirs)
	}
	if err != nil || same {
		return err
	}
	h := &holding{Project: s, period: time.Duration(s.Conf.Remote.Lease), cancel: func(error) {}}
	return h.publish(ctx, x.file, true)
}

// await returns when no other clone holds the lease. A lease expires when the remote's state did not
// move for the lease's period by this machine's clock.
func (x exchange) await(ctx context.Context) error {
	tip := x.remote.Ref(stateRef)
	l, held, err := x.leaseAt(tip)
	if err != nil || !held || x.isMine(l) {
		return err
	}
	seen, period := time.Now(), l.period()
	x.In.Say("%q holds the lease of this project; "+
		"waiting until it is released, renewed, or expires after %s without a push", l.Host, period)
	for time.Since(seen) < period {
		if err := proc.Pause(ctx, min(period/10, 10*time.Second)); err != nil {
			return err
		}
		if err := x.remote.Fetch(ctx, x.prefix()); err != nil {
			return err
		}
		if x.remote.Ref(stateRef) == tip {
			continue
		}
		if l, held, err = x.leaseAt(x.remote.Ref(stateRef)); held {
			err = busy(fmt.Errorf("%q runs this project: it renewed its lease in %s of %s", l.Host, stateRef,
				x.Conf.Remote.Name))
		}
		return err
	}
	x.In.Say("the lease of %q expired; this run continues", l.Host)
	return nil
}

// busy is the error for a project that another clone runs.
func busy(err error) error {
	return exit.With(exit.Busy, err, "wait until that run ends, and run the same command again")
}

// adopt makes the remote's state the local one, unless the local one continues it. Work that this clone
// did under a lease and could not push is moved to .abl/aside-N.
func (x exchange) adopt(ctx context.Context) error {
	theirs := x.remote.Ref(stateRef)
	if theirs == "" || x.tip == theirs {
		return nil
	}
	l, held, err := x.leaseAt(x.tip)
	mine := held && x.isMine(l)
	if err == nil && x.tip != "" {
		ahead, err1 := x.repo.Contains(x.tip, theirs)
		behind, err2 := x.repo.Contains(theirs, x.tip)
		if err = errors.Join(err1, err2); err != nil || ahead {
			return err
		}
		if !behind && !mine {
			return x.divergedFrom(theirs)
		}
	}
	if err == nil {
		err = x.moveRefs(ctx)
	}
	if err != nil {
		return err
	}
	if f, err := x.stateAt(theirs); err != nil || len(f.Begun()) == 0 { // a lease, and no call yet
		return err
	}
	text, err := x.Pull(ctx, mine)
	if err == nil {
		x.In.Say("%s, from %s of %s", text, stateRef, x.Conf.Remote.Name)
	}
	return err
}

// stateAt returns the state that was published as a commit.
func (x exchange) stateAt(commit string) (*state.File, error) {
	files, err := x.kept(commit)
	if err != nil {
		return nil, err
	}
	f, err := state.Decode(files[carriedState])
	if err != nil {
		return nil, exit.With(exit.Person, fmt.Errorf("%s of commit %.12s: %w", carriedState, commit, err), unbelieved)
	}
	return f, nil
}

// RemoteState is the state of a project in a repository.
type RemoteState struct {
	*state.File        // without phases if the repository has none
	Host        string // that holds the lease, "" for none
	Used        ledger.Account
}

// StateAt reads the state in the repository at an address.
func (s *Project) StateAt(ctx context.Context, address string) (r RemoteState, err error) {
	dir, err := os.MkdirTemp("", "abl-state-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	x, totals := exchange{Project: s}, s.Totals()
	r.File = state.New("/")
	if x.repo, err = git.FetchRef(ctx, dir, address, stateRef); err == nil {
		x.tip, err = x.repo.Ref(stateRef)
	}
	if err != nil || x.tip == "" {
		return r, err
	}
	if r.File, err = x.stateAt(x.tip); err != nil {
		return r, err
	}
	l, _, _ := x.leaseAt(x.tip) // the host of an invalid lease is unknown
	r.Host = l.Host
	files, err := x.kept(x.tip)
	if err == nil {
		err = ledger.Open(carriedLedger).ScanText(files[carriedLedger], totals.Add, func(int, string) {})
	}
	r.Used = totals.Account()
	return r, err
}

// divergedFrom is the error for a state of the remote and a local one that both have work which the other
// does not have.
func (x exchange) divergedFrom(theirs string) error {
	f, err := x.stateAt(theirs)
	if err != nil {
		return err
	}
	what := fmt.Errorf("cannot pull %s of %s: it is at %.12s (%s), and the local one at %.12s has other work (%s)",
		stateRef, x.Conf.Remote.Name, theirs, summary(f), x.tip, summary(x.file))
	hint := fmt.Sprintf("git fetch %[1]s '+refs/heads/%[2]s*:refs/remotes/%[1]s/%[2]s*' '+refs/abl/*:refs/abl/*' && "+
		"abl pull --theirs uses the remote's state and moves the local state into .abl/aside-N", x.Conf.Remote.Name, x.prefix())
	return exit.With(exit.Person, what, hint)
}

// moveRefs sets the local refs of published work to the remote's.
func (x exchange) moveRefs(ctx context.Context) error {
	for _, ref := range x.remote.Names() {
		was, err := x.repo.Ref(ref)
		if is := x.remote.Ref(ref); err == nil && was != is {
			err = x.repo.Forward(ctx, ref, was, is)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refsToPush returns the full names of the refs that a run pushes.
func (x exchange) refsToPush() []string {
	all := []string{stateRef, testsRef, sourceRef}
	for _, n := range x.file.Begun() {
		all = append(all, "refs/heads/"+x.PublishedBranch(n))
	}
	return all
}

// lostLease ends a run like a signal does: what runs is stopped.
type lostLease struct{ why error }

func (l lostLease) Error() string { return "this run lost the lease of the project: " + l.why.Error() }

// Unwrap returns why the lease is lost.
func (l lostLease) Unwrap() []error { return []error{l.why, context.Canceled} }
