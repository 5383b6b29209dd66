// Package phase opens a project for a command, and takes a phase of it, or a shell in
// one, from the settings to the end: who plays, workspaces, what may be spent, the
// environment. What a phase does in there is the orchestrator's, and what a command
// prints its own.
package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/cmd/internal/trust"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/pricelist"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
)

// Project is a project opened by a command: its paths, settings and secrets.
type Project struct {
	In    *cli.Input
	Paths state.Project
	Conf  *config.Loaded
	// Prices is what models cost in this project: its own prices before abl's. It is read once.
	Prices func() (pricelist.List, error)

	held *hostfs.Held // the project's lock, while it is taken
	net  *roles.Net   // what is known of the engine's networks; nil before anybody asked

	remote *git.Remote // that holds the state, nil without one
	holds  *holding    // the lease in it, while this process holds it
}

// Opened is a command that acts on the project: it fails where settings of the repository act on
// this machine and the user has not trusted them. With --dry-run it only looks.
func Opened(do func(context.Context, *Project) error) func(context.Context, *cli.Input) error {
	return Looking(func(ctx context.Context, s *Project) error {
		if !s.In.Bool("dry-run") {
			if err := s.Trusted(ctx); err != nil {
				return err
			}
		}
		return do(ctx, s)
	})
}

// Looking is a command that only looks at the project.
func Looking(do func(context.Context, *Project) error) func(context.Context, *cli.Input) error {
	return func(ctx context.Context, in *cli.Input) error {
		s, err := Open(in)
		if err != nil {
			return err
		}
		return do(ctx, s)
	}
}

// Trusted returns a usage error that lists the settings of user scope which came with the
// repository and which the user has not trusted, or that names a record of abl's that came with it.
// It returns nil when there are none.
func (s *Project) Trusted(ctx context.Context) error {
	if err := trust.Check(ctx, s.In, s.Paths.Root, s.Conf); err != nil {
		return err
	}
	return trust.CheckRecords(ctx, s.Paths.Root)
}

// Locked is one that keeps other processes from the project meanwhile.
func Locked(do func(context.Context, *Project) error) func(context.Context, *cli.Input) error {
	return Opened(func(ctx context.Context, s *Project) error {
		unlock, err := s.Lock()
		if err != nil {
			return err
		}
		defer unlock()
		return do(ctx, s)
	})
}

// Open finds the project and reads its settings. It changes nothing.
func Open(in *cli.Input) (*Project, error) {
	root, err := state.Find(cmp.Or(in.String("project"), "."))
	switch {
	case errors.Is(err, state.ErrNone):
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot find a project: %w", err), "run `abl init` where your project stands")
	case err != nil:
		return nil, exit.With(exit.Usage, err, "-C names a directory in a project")
	}
	return OpenAt(in, root)
}

// OpenAt opens the project at root.
func OpenAt(in *cli.Input, root string) (s *Project, err error) {
	if root, err = state.Real(root); err != nil {
		return nil, fmt.Errorf("cannot open the project: %w", err)
	}
	if err := state.CheckOwn(root); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot open the project: %w", err), "replace it by a regular file or a directory: abl follows no link in .abl")
	}
	s = &Project{In: in}
	if s.Conf, err = money.Settings(in, root, settings(in)); err == nil {
		err = cmp.Or(s.Conf.CheckDirs(root), checkSecrets(s.Conf))
	}
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	s.Prices = sync.OnceValues(func() (pricelist.List, error) { return money.Prices(root, s.Conf) })
	s.Paths = state.NewProject(root, s.Conf.Directories.Src, s.Conf.Directories.Tests)
	return s, nil
}

// Flags are the flags of everything that plays a phase.
func Flags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		{Name: "json", Usage: "one JSON event a line on stdout (docs/events.md)"},
		{Name: "progress", Value: "HOW", Default: "auto", Values: []string{"auto", "tty", "plain", "json"}, Usage: "how progress is shown"},
		{Name: "agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play both roles with this agent (docs/agents.md)"},
		{Name: "builder-agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play the Builder with this agent"},
		{Name: "verifier-agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play the Verifier with this agent, best of another family than the Builder's"},
		{Name: "model", Short: "m", Value: "NAME", Usage: "have both roles use this model, or several in order: first,second"},
		{Name: "max-iterations", Value: "N", Usage: "iterations of a round at most (default: loop.max_verifier_iterations)"},
		{Name: "quiet", Short: "q", Usage: "print errors only; the exit code is the verdict"},
		{Name: "no-baseline", Usage: "do not start the app as you committed it before the first call of an adopted repository"},
		{Name: "take-mine", Usage: "commit what you changed in the source by hand, and go on from it"},
	}, money.Flags(), cli.EnvironmentFlags())
}

// settings returns the settings that flags of this command line override, by key.
func settings(in *cli.Input) map[string]string {
	set, keys := map[string]string{}, map[string]string{"agent": "agent", "builder-agent": "agent.builder", "verifier-agent": "agent.verifier"}
	if in.Takes("max-iterations") { // --model of other commands is not a role's
		keys["model"], keys["max-iterations"] = "models", "loop.max_verifier_iterations"
	}
	if in.Takes("remote") {
		keys["remote"] = "remote.name"
	}
	for flag, key := range keys {
		if in.Set(flag) {
			set[key] = in.String(flag)
		}
	}
	return set
}

// Number reads N, or PHASE=N as earlier tools had it.
func Number(arg string) (int, error) {
	text := arg
	if key, value, ok := strings.Cut(arg, "="); ok && strings.EqualFold(key, "phase") {
		text = value
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, exit.With(exit.Usage, fmt.Errorf("cannot run phase %q: a phase is a number from 1 on", arg), "abl phase 1")
	}
	return n, nil
}

// Lock takes the project for this process, if it has not done so before. Giving it back also
// leaves what abl made the person's, whoever abl ran as.
func (s *Project) Lock() (unlock func(), err error) {
	if s.held != nil {
		return func() {}, nil
	}
	held, err := hostfs.Hold(s.Paths.Lock())
	if err != nil {
		return nil, err
	}
	s.held = held
	return s.unlock, nil
}

// unlock gives the project back where it is this process's.
func (s *Project) unlock() {
	if held := s.held; held != nil {
		back := s.holds.giveBack()
		s.held, s.holds = nil, nil
		if err := errors.Join(back, handOver(s.Paths), held.Unlock()); err != nil {
			s.In.Warn(err)
		}
	}
}

// handOver gives what abl made as root in a project of another user's to that
// user, so that they can go on without root.
func handOver(p state.Project) error {
	return hostfs.HandOver(p.Root, state.Dir, p.Rel(p.Src)+"/.git", p.Rel(p.Tests)+"/.git")
}

// Specs reads every phase file; what keeps a phase from running is asked with Check.
func (s *Project) Specs() spec.Set {
	set, _ := spec.LoadDir(s.Paths.Specs())
	return set
}

// State reads state.json; a project that never ran has a new one.
func (s *Project) State() (*state.File, error) {
	f, err := state.Load(s.Paths.State())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state.New(s.Paths.Root), nil
	case err != nil:
		return nil, err
	case f.Root != s.Paths.Root:
		settle(f, s.Paths.Root)
	}
	return f, nil
}

// settle takes up a state whose project stands elsewhere than it did. One that
// was moved is the same project; a copy gets an id of its own, for what stands
// under the old one on the engine is the original's, to be swept by nobody else.
func settle(f *state.File, root string) {
	there, err := state.Load(state.NewProject(f.Root, "", "").State())
	if err == nil && there.Project == f.Project && there.Root == f.Root {
		f.Project = state.New(root).Project
	}
	f.Root = root
}

// atRest are the records of the calls that phases rest in.
func (s *Project) atRest(f *state.File) (all []roles.Record) {
	for _, p := range f.Phases {
		if key := callAtRest(*p); key != "" {
			all = append(all, roles.Record{Dir: s.Paths.Call(key)})
		}
	}
	return all
}

// KeepAtRest makes safe what the calls have printed that nobody may take up again.
func (s *Project) KeepAtRest(f *state.File) (err error) {
	for _, rec := range s.atRest(f) {
		err = errors.Join(err, rec.Clean(s.In.Safe))
	}
	return err
}

// Abandon notes of every call at rest that it is about to be ended on request.
func (s *Project) Abandon(f *state.File) (err error) {
	for _, rec := range s.atRest(f) {
		if _, begun, ierr := rec.Intent(); ierr == nil && begun {
			err = errors.Join(err, rec.Stop(outcome.Interrupted))
		}
	}
	return err
}
