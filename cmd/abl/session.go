package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/pricelist"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
)

// session is a project opened by a command: its paths, settings and secrets.
type session struct {
	in      *cli.Input
	project state.Project
	conf    *config.Loaded
	list    *pricelist.List // what models cost, once somebody asked
	held    *hostfs.Held    // the project's lock, once it is taken
	net     *roles.Net      // what is known of the engine's networks; nil before anybody asked
}

// open finds the project and reads its settings. It changes nothing.
func open(in *cli.Input) (*session, error) {
	root, err := findProject(in)
	if err != nil {
		return nil, err
	}
	return openAt(in, root)
}

// openAt opens the project at root.
func openAt(in *cli.Input, root string) (s *session, err error) {
	if root, err = state.Real(root); err != nil {
		return nil, fmt.Errorf("cannot open the project: %w", err)
	}
	s = &session{in: in}
	weak := in.HideSecrets(root)
	if s.conf, err = config.Load(root, os.LookupEnv, flagSettings(in)); err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	if err := money.Raise(in, &s.conf.Config); err != nil {
		return nil, err
	}
	for _, w := range append(s.conf.Warnings, weak...) {
		in.Warn(w)
	}
	if err := s.conf.CheckDirs(root); err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	if err := s.checkSecrets(); err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	s.project = state.NewProject(root, s.conf.Directories.Src, s.conf.Directories.Tests)
	return s, nil
}

func findProject(in *cli.Input) (string, error) {
	root, err := state.Find(orHere(in.String("project")))
	switch {
	case errors.Is(err, state.ErrNone):
		return "", exit.With(exit.Usage, fmt.Errorf("cannot find a project: %w", err), "run `abl init` where your project stands")
	case err != nil:
		return "", exit.With(exit.Usage, err, "")
	}
	return root, nil
}

// orHere is the directory, or the current one when none is named.
func orHere(dir string) string { return cmp.Or(dir, ".") }

// lock takes the project for this process. Giving it back also leaves what abl
// made the person's, whoever abl ran as.
func (s *session) lock() (unlock func(), err error) {
	s.held, err = hostfs.Hold(s.project.Lock())
	if errors.Is(err, hostfs.ErrHeld) {
		return nil, exit.With(exit.Busy, err, "wait for it, or stop it; the lock is freed when it ends")
	}
	if err != nil {
		return nil, err
	}
	return func() {
		if err := errors.Join(s.handOver(), s.held.Unlock()); err != nil {
			s.in.Warn(err)
		}
	}, nil
}

// handOver gives what abl made as root in a project of another user's to that
// user, so that they can go on without root.
func (s *session) handOver() error {
	p := s.project
	return hostfs.HandOver(p.Root, state.Dir, p.Rel(p.Src)+"/.git", p.Rel(p.Tests)+"/.git")
}

// key is an agent's key and where it was found: .env first (seed 003), then
// abl's own environment, which is where CI has it.
func (s *session) key(name string) (value, from string) {
	if v := s.conf.Dotenv[name]; v != "" {
		return v, ".env"
	}
	if v := os.Getenv(name); v != "" {
		return v, "the environment"
	}
	return "", ""
}

// specs reads every phase file; what keeps a phase from running is asked with Check.
func (s *session) specs() spec.Set {
	set, _ := spec.LoadDir(s.project.Specs())
	return set
}

// state reads state.json; a project that never ran has a new one.
func (s *session) state() (*state.File, error) {
	f, err := state.Load(s.project.State())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state.New(s.project.Root), nil
	case err != nil:
		return nil, err
	case f.Root != s.project.Root:
		s.settle(f)
	}
	return f, nil
}

// settle takes up a state whose project stands elsewhere than it did. One that
// was moved is the same project; a copy gets an id of its own, for what stands
// under the old one on the engine is the original's, to be swept by nobody else.
func (s *session) settle(f *state.File) {
	there, err := state.Load(state.NewProject(f.Root, "", "").State())
	if err == nil && there.Project == f.Project && there.Root == f.Root {
		f.Project = state.New(s.project.Root).Project
	}
	f.Root = s.project.Root
}
