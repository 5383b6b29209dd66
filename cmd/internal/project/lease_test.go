package project

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/roles"
)

// nodes are two clones of one bare origin. The first published phase 1 during a call of the
// Verifier.
func nodes(t *testing.T, period time.Duration) (a, b *Project) {
	t.Helper()
	a = published(t)
	f, err := a.State()
	must(t, err)
	p := f.Phase(1)
	p.Status, p.Attempt, p.Call = state.Verifying, 1, "p1-verify-1.1"
	f.Phases["1"] = &p
	must(t, state.Save(a.Paths.State(), f))
	origin := filepath.Join(t.TempDir(), "origin.git")
	runGit(t, a.Paths.Root, "clone", "-q", "--bare", a.Paths.Root, origin)
	runGit(t, a.Paths.Root, "remote", "add", "origin", origin)
	root, err := state.Real(t.TempDir())
	must(t, err)
	runGit(t, root, "clone", "-q", origin, ".")
	must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
	b = &Project{In: quiet(), Folder: Folder{Conf: &config.Loaded{}, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")}}
	b.Conf.Source.Repo = "."
	for _, s := range []*Project{a, b} {
		s.Conf.Remote = config.Remote{Name: "origin", Lease: config.Duration(period)}
		t.Cleanup(s.Unlock)
	}
	return a, b
}

// takes fetches the state and takes the lease, as a run of phase 1 does.
func takes(t *testing.T, s *Project) (f *state.File, ctx context.Context) {
	t.Helper()
	must(t, s.fetchState(t.Context()))
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return takesFetched(t, ctx, cancel, s), ctx
}

// takesFetched takes the lease of the state that was fetched.
func takesFetched(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc, s *Project) *state.File {
	t.Helper()
	f, err := s.State()
	must(t, err)
	book := money.Book{Ledger: ledger.Open(s.Paths.Ledger()), Hide: func(s string) string { return s },
		Note: func(string) {}}
	must(t, book.Ready())
	must(t, s.TakeLease(ctx, cancel, f, book, func(string) {}))
	return f
}

// saves saves and pushes the state as a step of phase 1 does.
func saves(t *testing.T, s *Project, f *state.File) error {
	return s.SaveAndPush(t.Context(), f, 1, func(string) {})
}

// dies ends a process without giving the lease back.
func dies(t *testing.T, s *Project) {
	t.Helper()
	s.holds.stop()
	s.holds = nil
	s.Unlock()
}

func wantCode(t *testing.T, what string, err error, want int) {
	t.Helper()
	if got := exit.Code(err); got != want {
		t.Errorf("%s: got %v (exit code %d), want exit code %d", what, err, got, want)
	}
}

// A second node does not run a project whose lease is renewed.
func TestLeaseIsHeld(t *testing.T) {
	a, b := nodes(t, 3*time.Second)
	_, ctx := takes(t, a)
	wantCode(t, "the second node", b.fetchState(t.Context()), exit.Busy)
	if err := errors.Join(a.CheckLock(), context.Cause(ctx)); err != nil {
		t.Errorf("the first node: got %v, want no error", err)
	}
	a.Unlock()
	b.Unlock()
	takes(t, b)
}

// When a lease expires, the call that was running is opened again as the next attempt, and the ledger
// has its cost as unknown. A node that was away stops before its next effect.
func TestLeaseExpires(t *testing.T) {
	a, b := nodes(t, time.Second)
	takes(t, a)
	a.holds.stop() // it hangs, and renews no more
	f, _ := takes(t, b)
	if p := f.Phase(1); p.Attempt != 2 || p.Call != "p1-verify-1.2" || p.Status != state.Verifying {
		t.Errorf("the phase: got %+v, want attempt 2 of the Verifier's call", p)
	}
	var rows []string
	must(t, ledger.Open(b.Paths.Ledger()).Scan(func(r ledger.Row) {
		rows = append(rows, r.CallID+" "+r.Outcome+" "+r.Source+" "+r.CostUSD)
	}, func(int, string) {}))
	if got, want := strings.Join(rows, "\n"), "p1-verify-1.1 lost none "; got != want {
		t.Errorf("the ledger: got %q, want %q", got, want)
	}
	wantCode(t, "an effect of the first node", a.CheckLock(), exit.Busy)
}

// A push that is rejected ends the run, and the work that was not pushed is moved aside.
func TestLeaseIsLost(t *testing.T) {
	a, b := nodes(t, time.Hour)
	first, ctx := takes(t, a)
	b.Conf.Remote.Lease = config.Duration(time.Hour)
	stolen(t, b)
	p := first.Phase(1)
	p.Status, p.Iteration, p.Step = state.Refuted, 7, 7
	first.Phases["1"] = &p
	wantCode(t, "the push", saves(t, a, first), exit.Busy)
	wantCode(t, "the next effect", a.CheckLock(), exit.Busy)
	wantCode(t, "what runs", context.Cause(ctx), exit.Busy)
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error("a lost lease: got an error of its own, want one that counts as a cancellation")
	}
	a.Unlock()
	b.Unlock()
	again, _ := takes(t, a)
	if got := again.Phase(1).Iteration; got != 1 {
		t.Errorf("iteration of the state: got %d, want 1, which was pushed", got)
	}
	if _, err := os.Lstat(filepath.Join(a.Paths.Root, ".abl/aside-1/state.json")); err != nil {
		t.Errorf("the state that was not pushed: got %v, want it in .abl/aside-1", err)
	}
}

// stolen takes the lease from its holder, as a node does that saw it expire.
func stolen(t *testing.T, s *Project) {
	t.Helper()
	_, err := s.Lock()
	must(t, err)
	x, err := s.exchange()
	must(t, err)
	s.remote, err = x.repo.Remote("origin")
	must(t, err)
	must(t, s.remote.Fetch(t.Context(), s.prefix()))
	x.Project = s
	must(t, x.adopt(t.Context()))
	takesFetched(t, t.Context(), func(error) {}, s)
}

// A node that was killed continues its own lease, also if its last commit of the state was not pushed,
// and reattaches to its calls.
func TestLeaseOfAKilledProcess(t *testing.T) {
	a, _ := nodes(t, time.Hour)
	f, _ := takes(t, a)
	origin := runGit(t, a.Paths.Root, "remote", "get-url", "origin")
	must(t, os.Rename(origin, origin+".away"))
	p := f.Phase(1)
	p.Status, p.Iteration, p.Step = state.Refuted, 2, 2
	f.Phases["1"] = &p
	must(t, saves(t, a, f)) // the remote is away, and the lease is valid
	dies(t, a)
	if err := a.fetchState(t.Context()); !errors.Is(err, git.ErrRemote) {
		t.Errorf("without the remote: got %v, want %v", err, git.ErrRemote)
	}
	wantCode(t, "without the remote", a.fetchState(t.Context()), exit.Environment)
	must(t, os.Rename(origin+".away", origin))
	a.Unlock()
	f, _ = takes(t, a)
	if p := f.Phase(1); p.Iteration != 2 || p.Status != state.Refuted {
		t.Errorf("the phase: got %+v, want iteration 2, which was saved here", p)
	}
	a.Unlock()
	if got := runGit(t, origin, "show", "refs/abl/state:state.json"); !strings.Contains(got, `"iteration": 2`) {
		t.Errorf("the state that was pushed: got %s, want iteration 2", got)
	}
	if got := runGit(t, origin, "ls-tree", "--name-only", "refs/abl/state"); strings.Contains(got, leaseFile) {
		t.Errorf("the state at the end: got %q, want no lease", got)
	}
}

// A lease may expire before the first phase has begun. Then there is nothing to restore.
func TestLeaseWithoutAPhase(t *testing.T) {
	a, b := nodes(t, time.Second)
	must(t, state.Save(a.Paths.State(), state.New(a.Paths.Root)))
	origin := runGit(t, a.Paths.Root, "remote", "get-url", "origin")
	for _, dir := range []string{a.Paths.Root, origin} {
		runGit(t, dir, "update-ref", "-d", "refs/abl/state")
	}
	takes(t, a)
	a.holds.stop() // it hangs, and renews no more
	run := Continued(func(context.Context, *Project) error { return nil })
	if err := run(t.Context(), b); err != nil {
		t.Errorf("another node: got %v, want no error", err)
	}
}

// A run ends after the result of its phase was pushed. If that fails, the next run pushes it.
func TestResultIsPushed(t *testing.T) {
	a, _ := nodes(t, time.Second)
	f, _ := takes(t, a)
	origin := runGit(t, a.Paths.Root, "remote", "get-url", "origin")
	must(t, os.Rename(origin, origin+".away"))
	p := f.Phase(1)
	p.Status, p.Call = state.Stuck, ""
	f.Phases["1"] = &p
	wantCode(t, "without the remote", saves(t, a, f), exit.Busy)
	dies(t, a)
	must(t, os.Rename(origin+".away", origin))
	must(t, a.fetchState(t.Context()))
	if got := runGit(t, origin, "show", "refs/abl/state:state.json"); !strings.Contains(got, `"status": "stuck"`) {
		t.Errorf("the state that was pushed: got %s, want a stuck phase", got)
	}
	if got := runGit(t, origin, "ls-tree", "--name-only", "refs/abl/state"); strings.Contains(got, leaseFile) {
		t.Errorf("the state that was pushed: got %q, want no lease", got)
	}
	if got, want := runGit(t, origin, "rev-parse", sourceRef), runGit(t, origin, "rev-parse", Branch(1)); got != want {
		t.Errorf("the source that was pushed: got %s, want %s", got, want)
	}
	tip := runGit(t, origin, "rev-parse", "refs/abl/state")
	must(t, a.fetchState(t.Context()))
	if got := runGit(t, origin, "rev-parse", "refs/abl/state"); got != tip {
		t.Errorf("the state after a run with nothing to push: got %s, want %s", got, tip)
	}
}

// A lease stays while a call is running that this machine could not stop.
func TestLeaseOfARunningCall(t *testing.T) {
	a, _ := nodes(t, time.Hour)
	takes(t, a)
	rec := roles.Record{Dir: a.Paths.Call("p1-verify-1.1")}
	must(t, os.MkdirAll(rec.Dir, 0o755))
	must(t, rec.Write("intent.json", roles.Intent{Key: "p1-verify-1.1"}))
	a.Unlock()
	if got := runGit(t, a.Paths.Root, "ls-tree", "--name-only", "refs/abl/state"); !strings.Contains(got, leaseFile) {
		t.Errorf("the state at the end: got %q, want a lease", got)
	}
}

// If both projects have work that the other lacks, the user must decide.
func TestRemoteOfOtherWork(t *testing.T) {
	a, b := nodes(t, time.Hour)
	takes(t, a)
	a.Unlock()
	f, _ := takes(t, b)
	p := f.Phase(1)
	p.Iteration, p.Step = 2, 2
	f.Phases["1"] = &p
	must(t, saves(t, b, f))
	b.Unlock()
	f, err := a.State()
	must(t, err)
	f.Phases["1"].Iteration, f.Phases["1"].Step = 9, 9
	must(t, state.Save(a.Paths.State(), f))
	_, err = a.Publish(t.Context(), 0)
	must(t, err)
	wantCode(t, "the other", a.fetchState(t.Context()), exit.Person)
}
