package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"abl/internal/outlet"
	"abl/internal/tartree"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/orchestrator/event"
	"abl/orchestrator/ledger"
	"abl/orchestrator/project"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/projectmap"
)

// Names of the environment that make this test binary the supervisor.
const (
	childRoot   = "ABL_CRASH_ROOT"   // of its project
	childSocket = "ABL_CRASH_SOCKET" // of its engine
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := supervise(root, dial(os.Getenv(childSocket))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tiny is an agent whose work is a script of the engine's.
type tiny struct{ agent.Scripted }

func (tiny) Command(agent.Call) (agent.Command, error) {
	return agent.Command{Argv: []string{"/bin/true"}}, nil
}
func (tiny) NewReader(c agent.Call) agent.Reader { return worked(int64(c.Step)) }

type worked int64

func (worked) Line([]byte, bool) string { return "" }
func (w worked) Result(int) agent.Result {
	n := int64(w)
	return agent.Result{Finished: true, Requests: 1, Usage: []agent.Usage{{Model: "m", Total: &n}}}
}

// book is the ledger as the loop wants it.
type book struct{ *ledger.Ledger }

func (b book) Append(rows []ledger.Row) error {
	_, err := b.Ledger.Append(rows)
	return err
}

// repo is a workspace as the loop wants it.
type repo struct{ *workspace.Repo }

func (r repo) Tip() (string, error) {
	c, _, err := r.Head()
	return c.Hash, err
}

func (r repo) Snapshot(ctx context.Context, subject, key string, keep func(sweep.Found) error) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, workspace.Message{Subject: subject, Trailers: [][2]string{{"Abl-Call", key}}, When: time.Now(), Keep: keep})
	return orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}, err
}

func none(context.Context) ([]projectmap.File, error) { return nil, nil }

// supervise takes phase 1 to its end, as abl phase 1 does, on an engine of the
// test's: all that cmd/abl adds are its lock, its lease and its view.
func supervise(root string, engine *remote) error {
	ctx := context.Background()
	p, out := project.New(root, "src", ".abl/tests"), outlet.New(nil)
	f, err := state.Load(p.State())
	if err != nil {
		return err
	}
	specs, _ := spec.LoadDir(p.Specs())
	this, ok := specs.Phase(1)
	src, err1 := workspace.Open(p.Src, workspace.Options{})
	tests, err2 := workspace.Open(p.Tests, workspace.Options{})
	book := book{ledger.Open(p.Ledger())}
	_, err3 := book.EnsureHeader()
	if err := errors.Join(err1, err2, err3); err != nil || !ok {
		return fmt.Errorf("cannot begin: %v, a spec: %v", err, ok)
	}
	site := &roles.Site{Engine: engine, ID: f.Project, Phase: 1, Image: "holder", Pool: "10.231.0.0/16"}
	runner := &roles.Runner{Engine: engine, Project: p, ID: f.Project, UID: 1000, GID: 1000, Output: 1 << 20, Timeout: time.Minute, Out: event.Discard, Outlet: out}
	app := &roles.App{
		Engine: engine, Site: site, Project: p, ID: f.Project, Image: "app", UID: 1000, GID: 1000, Copy: "tar", Out: event.Discard, Outlet: out,
		Tree:    func(w io.Writer, as string) error { return tartree.Write(w, as, p.Src, ".git") },
		Silence: time.Minute, Life: time.Hour, Spec: dirs.BrokerSpec{Port: dirs.BrokerPort, Dir: dirs.Src},
	}
	cast := &orchestrator.Cast{
		Number: 1, Project: p, Specs: specs, Players: map[string]orchestrator.Player{}, Holder: site.Holder, Outlet: out,
		Files: map[string]orchestrator.Files{roles.Builder.Name: none, roles.Verifier.Name: none},
	}
	for _, r := range []roles.Role{roles.Builder, roles.Verifier} {
		cast.Players[r.Name] = orchestrator.Player{Agent: tiny{}, Model: "m", Image: "tools", Template: prompts.Default(r.Name)}
	}
	loop := &orchestrator.Loop{
		Number: 1, Max: 5, Spec: this, Law: orchestrator.Law{Specs: specs}, Project: p, File: f, Save: func() error { return state.Save(p.State(), f) },
		Calls: runner, App: app, Jobs: cast, Src: repo{src}, Tests: repo{tests}, Ledger: book,
		Before: func(*state.Phase) error { return nil }, Out: event.Discard, Outlet: out,
		Replay: &roles.Replayer{App: app, Image: "tools", Holder: site.Holder, Tests: func(ctx context.Context, w io.Writer, _, as string) error {
			return tartree.Write(w, as, p.Tests, ".git")
		}},
		Challenge: orchestrator.Challenge{Away: true},
	}
	if f.Phases["1"] == nil {
		f.Phases["1"] = &state.Phase{Status: state.Ready}
	}
	r, err := loop.Run(ctx)
	if err == nil && r.Status != state.Passed {
		err = fmt.Errorf("it came to rest as %s: %v", r.Status, r.Phase.Why)
	}
	if err != nil {
		return err
	}
	_, err = engine.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
	return err
}
