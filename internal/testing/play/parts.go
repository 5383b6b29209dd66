package play

import (
	"context"
	"os"

	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/internal/usage"
	"abl/orchestrator"
	"abl/roles/agent"
)

// Tiny returns an agent that runs the engine's script and always reports success.
func Tiny() agent.Agent {
	a := agent.Program("scripted", agent.Command{Argv: []string{"/bin/true"}})
	a.NewReader = func(c agent.Call) agent.Reader { return worked(int64(c.Step)) }
	return a
}

// worked is a successful result whose usage differs from step to step.
type worked int64

func (worked) Line([]byte, bool) []agent.Message { return nil }
func (w worked) Result(int) agent.Result {
	n := int64(w)
	return agent.Result{Finished: true, Requests: 1, Usage: []agent.Usage{{Model: "m", Count: usage.Count{Total: &n}}}}
}

// book adapts the ledger to the loop's interface.
type book struct{ *ledger.Ledger }

func openBook(path string) (book, error) {
	b := book{ledger.Open(path)}
	_, err := b.EnsureHeader()
	return b, err
}

func (b book) Append(rows []ledger.Row) error {
	_, err := b.Ledger.Append(rows)
	return err
}

// repo adapts a repository to the loop's workspace interface.
type repo struct{ *git.Repo }

func (r repo) Tip() (string, error) {
	c, _, err := r.Head()
	return c.Hash, err
}

func (r repo) Restore(ctx context.Context, aside string) ([]string, error) {
	return r.Repo.Restore(ctx, aside, os.Getuid(), os.Getgid())
}

func (r repo) ExportTo(ctx context.Context, dir, commit, earlier string) error {
	return r.Repo.ExportTo(ctx, dir, commit, earlier, git.Owner{UID: os.Getuid(), GID: os.Getgid()})
}

func (r repo) Snapshot(
	ctx context.Context, subject, key string, ifChanged bool, keep func(state.Found) error,
) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, git.Message{Subject: subject, Call: key, IfChanged: ifChanged, Keep: keep})
	return orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}, err
}
