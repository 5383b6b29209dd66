// Package project opens the folder of a project for a command: its settings, lock, state, players, costs
// and records. It publishes the results to the user's repository and pulls them, and holds the lease of
// a shared project. Package phase runs the project's phases.
package project

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
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
)

// Folder is the folder of a project with its settings. Its methods read files, and need no lock, no engine
// and no terminal.
type Folder struct {
	Paths state.Project
	Conf  *config.Loaded
	// Prices returns the prices of models: the project's before abl's. It reads them once.
	Prices func() (ledger.Prices, error)
}

// Project is a project that a command has opened.
type Project struct {
	Folder
	In *cli.Input

	Unfetched error // branches of phases were fetched without their state

	held *hostfs.Held // the project's lock; nil if this process does not hold it

	remote *git.Remote // that holds the state, nil without one
	holds  *holding    // the lease in it, while this process holds it
}

// Action is what a command does with the project that it opened.
type Action func(context.Context, *Project) error

// Opened returns a command that acts on the project. It fails if settings of the repository act on this
// machine and the user has not trusted them, except with --dry-run.
func Opened(do Action) func(context.Context, *cli.Input) error {
	return Looking(func(ctx context.Context, s *Project) error {
		if !s.In.Bool("dry-run") {
			if err := s.Trusted(ctx); err != nil {
				return err
			}
		}
		return do(ctx, s)
	})
}

// Looking returns a command that only reads the project.
func Looking(do Action) func(context.Context, *cli.Input) error {
	return func(ctx context.Context, in *cli.Input) error {
		s, err := Open(in)
		if err != nil {
			return err
		}
		return do(ctx, s)
	}
}

// Trusted returns a usage error if settings of user scope came with the repository and the user has not
// trusted them, or if a record of abl came with it.
func (s *Project) Trusted(ctx context.Context) error {
	if err := trust.Check(ctx, s.In, s.Paths.Root, s.Conf); err != nil {
		return err
	}
	return trust.CheckRecords(ctx, s.Paths.Root)
}

// Locked returns a command that acts on the project and holds its lock.
func Locked(do Action) func(context.Context, *cli.Input) error {
	return Opened(func(ctx context.Context, s *Project) error {
		unlock, err := s.Lock()
		if err != nil {
			return err
		}
		defer unlock()
		return do(ctx, s)
	})
}

// Open finds the project of the command line and opens it.
func Open(in *cli.Input) (*Project, error) {
	root, err := state.Find(cmp.Or(in.String("project"), "."))
	switch {
	case errors.Is(err, state.ErrNone):
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot find a project: %w", err),
			"run `abl init` in the directory of your project")
	case err != nil:
		return nil, exit.With(exit.Usage, err, "name a directory in a project with -C")
	}
	return OpenAt(in, root)
}

// OpenAt opens the project at root and reads its settings. It changes nothing.
func OpenAt(in *cli.Input, root string) (s *Project, err error) {
	if root, err = state.Real(root); err != nil {
		return nil, fmt.Errorf("cannot open the project: %w", err)
	}
	if err := state.CheckOwn(root); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot open the project: %w", err),
			"replace it with a regular file or a directory: abl follows no links in .abl")
	}
	s = &Project{In: in}
	if s.Conf, err = money.Settings(in, root, settings(in)); err == nil {
		err = cmp.Or(s.Conf.CheckDirs(root), checkSecrets(s.Conf))
	}
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	s.Prices = sync.OnceValues(func() (ledger.Prices, error) { return money.Prices(root, s.Conf) })
	s.Paths = state.NewProject(root, s.Conf.Directories.Src, s.Conf.Directories.Tests)
	return s, nil
}

// Flags returns the flags of commands that run phases.
func Flags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		{Name: "json", Usage: "print one JSON event per line on stdout (docs/events.md)"},
		{Name: "progress", Value: "HOW", Default: "auto", Values: []string{"auto", "tty", "plain", "json"},
			Usage: "how to show progress"},
		{Name: "agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "agent for both roles (docs/agents.md)"},
		{Name: "builder-agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "agent for the Builder"},
		{Name: "verifier-agent", Value: "NAME", Values: agent.Names(), Open: true,
			Usage: "agent for the Verifier, best of another model family than the Builder's"},
		{Name: "model", Short: "m", Value: "NAME", Usage: "model for both roles, or several in order: first,second"},
		{Name: "max-iterations", Value: "N",
			Usage: "maximum of iterations per round (default: loop.max_verifier_iterations)"},
		{Name: "quiet", Short: "q", Usage: "print errors only; the exit code is the verdict"},
		{Name: "no-baseline", Usage: "do not start your committed app before the first call (adopt.baseline: off)"},
		{Name: "take-mine", Usage: "commit your changes to the source, and continue from there"},
	}, money.Flags(), cli.EnvironmentFlags())
}

// settings returns the settings that flags of this command line override, by key.
func settings(in *cli.Input) map[string]string {
	set, keys := map[string]string{}, map[string]string{"agent": "agent", "builder-agent": "agent.builder",
		"verifier-agent": "agent.verifier"}
	if in.Takes("max-iterations") { // the --model of other commands is not for roles
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

// Number parses the number of a phase, N or PHASE=N.
func Number(arg string) (int, error) {
	text := arg
	if key, value, ok := strings.Cut(arg, "="); ok && strings.EqualFold(key, "phase") {
		text = value
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, exit.With(exit.Usage, fmt.Errorf("phase must be a positive number, not %q", arg), "give a number such as 1")
	}
	return n, nil
}

// Lock locks the project for this process. If this process already holds the lock, it does nothing.
// unlock also gives the files that abl created as root to the user who owns the project.
func (s *Project) Lock() (unlock func(), err error) {
	if s.held != nil {
		return func() {}, nil
	}
	held, err := hostfs.Hold(s.Paths.Lock())
	if err != nil {
		return nil, err
	}
	s.held = held
	return s.Unlock, nil
}

// Unlock releases the lock, if this process holds it.
func (s *Project) Unlock() {
	if held := s.held; held != nil {
		back := s.holds.giveBack()
		s.held, s.holds = nil, nil
		if err := errors.Join(back, s.ChownToUser(), held.Unlock()); err != nil {
			s.In.Warn(err)
		}
	}
}

// ChownToUser gives the files that abl created as root to the user who owns the project, so that the user
// can continue without root.
func (s Folder) ChownToUser() error {
	p := s.Paths
	return hostfs.ChownToUser(p.Root, state.Dir, p.Rel(p.Src)+"/.git", p.Rel(p.Tests)+"/.git")
}

// Held fails if this process lost the project's lock.
func (s *Project) Held() error { return s.held.Verify() }

// Save writes state.json. It fails if this process lost the lock.
func (s *Project) Save(f *state.File) error {
	if err := s.Held(); err != nil {
		return err
	}
	return state.Save(s.Paths.State(), f)
}

// Specs reads the spec of every phase. Check of the set returns the errors.
func (s Folder) Specs() spec.Set {
	set, _ := spec.LoadDir(s.Paths.Specs())
	return set
}

// State reads state.json. For a project that never ran it returns a new state.
func (s Folder) State() (*state.File, error) {
	f, err := state.Load(s.Paths.State())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state.New(s.Paths.Root), nil
	case err != nil:
		return nil, err
	case f.Root != s.Paths.Root:
		adoptMoved(f, s.Paths.Root)
	}
	return f, nil
}

// adoptMoved updates a state whose project was moved or copied to root. A copy gets a new id: the
// containers with the old id belong to the original.
func adoptMoved(f *state.File, root string) {
	there, err := state.Load(state.NewProject(f.Root, "", "").State())
	if err == nil && there.Project == f.Project && there.Root == f.Root {
		f.Project = state.New(root).Project
	}
	f.Root = root
}

// CallBegun reports whether the phase's current call has begun. Its agent may still work, or its result
// is not committed yet, so the source must not change.
func (s Folder) CallBegun(p state.Phase) (bool, error) {
	key := p.Current()
	if key == "" {
		return false, nil
	}
	rec := roles.Record{Dir: s.Paths.Call(key)}
	_, begun, err := rec.Intent()
	return begun || rec.Started() || p.Recheck, err
}

// currentCalls returns the records of the current calls of building and verifying phases.
func (s *Project) currentCalls(f *state.File) (all []roles.Record) {
	for _, p := range f.Phases {
		if key := p.Current(); key != "" {
			all = append(all, roles.Record{Dir: s.Paths.Call(key)})
		}
	}
	return all
}

// RedactCurrent redacts the saved output of the current calls, which no run resumes.
func (s *Project) RedactCurrent(f *state.File) (err error) {
	for _, rec := range s.currentCalls(f) {
		err = errors.Join(err, rec.Clean(s.In.Safe))
	}
	return err
}

// Abandon records for each current call that the user ended it.
func (s *Project) Abandon(f *state.File) (err error) {
	for _, rec := range s.currentCalls(f) {
		if _, begun, ierr := rec.Intent(); ierr == nil && begun {
			err = errors.Join(err, rec.Stop(roles.Stopped{Class: outcome.Interrupted}))
		}
	}
	return err
}
