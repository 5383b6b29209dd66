package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
	"abl/roles/replay"
)

// Records returns the audit records of phase n, oldest first. It redacts values that are secrets now.
func (s *Project) Records(n int) (all []audit.Record, err error) {
	steps, err := audit.Steps(s.Paths, n)
	for _, step := range steps {
		r, err := audit.Load(s.Paths, n, step)
		if err == nil {
			err = s.In.Safe.Clean(&r)
		}
		if err != nil {
			return nil, exit.With(exit.Person, err, "move the file away; the phase itself does not need it")
		}
		all = append(all, r)
	}
	return all, err
}

// Built returns the newest commit of phase n. It fails if the phase has built nothing.
func (s Folder) Built(n int) (f *state.File, commit string, err error) {
	if f, err = s.State(); err == nil {
		commit = f.Phase(n).SrcCommit
	}
	if err == nil && commit == "" {
		err = exit.With(exit.Usage, fmt.Errorf("phase %d has built nothing yet", n), "abl status lists the phases")
	}
	return f, commit, err
}

// began opens a workspace and returns the commit with which phase n began, before its commits up to tip.
func (s *Project) began(ctx context.Context, n int, dir, tip string) (repo *git.Repo, commit string, err error) {
	unlock, err := s.Lock() // opening the source completes an interrupted merge
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	f, err := s.State()
	if err != nil {
		return nil, "", err
	}
	o, start := git.Options{}, ""
	if dir == s.Paths.Src {
		o, start = s.SourceOptions(), f.Start
	}
	o.Begun = true // create no repository
	if repo, err = git.Open(dir, o); err != nil {
		return nil, "", err
	}
	commit, err = git.Before(ctx, repo, tip, fmt.Sprintf("p%d-", n), start)
	return repo, commit, err
}

// Changes calls each for every file that phase n changed in the source.
func (s *Project) Changes(ctx context.Context, n int, each func(git.Change) error) error {
	_, tip, err := s.Built(n)
	if err != nil {
		return err
	}
	src, from, err := s.began(ctx, n, s.Paths.Src, tip)
	if err != nil {
		return err
	}
	return git.Changes(ctx, src, from, tip, each)
}

// FilesChanged counts the paths that phase n changed in the source, without the Builder's run
// reports. It returns -1 if the number is unknown or a phase is running.
func (s *Project) FilesChanged(ctx context.Context, n int) int {
	count, reports := 0, path.Join(s.Conf.Source.Dir, roles.Builder.Reports)+"/"
	if err := s.Changes(ctx, n, func(c git.Change) error {
		if !strings.HasPrefix(c.Path, reports) {
			count++
		}
		return nil
	}); err != nil {
		return -1
	}
	return count
}

// StepChanges calls each for the files that every iteration of phase n changed in a workspace, newest
// iteration first. i is the index of the iteration's record and from its first commit, "" if it has none.
func (s *Project) StepChanges(ctx context.Context, n int, dir string, records []audit.Record,
	each func(i int, from string, c git.Change) error) error {
	if len(records) == 0 {
		return nil
	}
	var commits []string
	for _, r := range records {
		commits = append(commits, map[bool]string{true: r.Commits.Source, false: r.Commits.Tests}[dir == s.Paths.Src])
	}
	repo, from, err := s.began(ctx, n, dir, commits[0])
	commits = append([]string{from}, commits...)
	for i := len(records) - 1; i >= 0 && err == nil; i-- {
		if from, to := commits[i], commits[i+1]; from != to && to != "" {
			err = git.Changes(ctx, repo, from, to, func(c git.Change) error { return each(i, from, c) })
		}
	}
	return err
}

// Call is one call on disk.
type Call struct {
	roles.Record
	roles.KeyParts
	roles.Intent
	Round     int // 0 if it is not known
	Iteration int // 0 if it is not known
	Outcome   roles.Outcome
	Ended     bool
	Unread    error // why a part of the record cannot be read
}

// maxCalls is the largest number of records of a project.
const maxCalls = 1_000_000

// Calls returns the calls on disk, oldest first. It leaves out records of calls that never started.
func (s *Project) Calls() ([]Call, error) {
	names, err := hostfs.Names(s.Paths.Calls(), ".", maxCalls)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	f, err := s.State()
	if err != nil { // only the iterations are missing then
		s.In.Warn(err)
		f = &state.File{}
	}
	var all []Call
	for _, name := range names {
		k, ok := roles.ParseKey(name)
		if !ok {
			continue
		}
		c := Call{Record: roles.Record{Dir: s.Paths.Call(name)}, KeyParts: k}
		c.Round, c.Iteration = placeOf(f.Phase(c.Phase), c.Step)
		var ierr, oerr error
		c.Intent, _, ierr = c.Record.Intent()
		c.Outcome, c.Ended, oerr = c.Record.Outcome()
		c.Key, c.Unread = name, errors.Join(ierr, oerr)
		if c.Ended || c.Started() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Call) int { return a.Begun.Compare(b.Begun) })
	return all, nil
}

// Starts returns the starts of the app whose output is on disk, oldest first: for calls of the Verifier,
// failed starts before such a call, and starts for the user.
func (s *Project) Starts() ([]Call, error) {
	names, err := hostfs.Names(s.Paths.Calls(), ".", maxCalls)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	f, ferr := s.State()
	if err := errors.Join(err, ferr); err != nil {
		return nil, fmt.Errorf("cannot list the starts of the app: %w", err)
	}
	var all []Call
	for _, name := range names {
		c := Call{Record: roles.Record{Dir: s.Paths.Call(name)}}
		c.KeyParts, _ = roles.ParseKey(name)
		c.Key = name
		c.Round, c.Iteration = placeOf(f.Phase(c.Phase), c.Step)
		for _, rec := range append(replay.Earlier(c.Record), c.Record) {
			if log, err := os.Lstat(rec.App().Output()); err == nil { // the app's own start comes last
				c.Record, c.Begun = rec, log.ModTime()
			}
		}
		if !c.Begun.IsZero() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Call) int { return a.Begun.Compare(b.Begun) })
	return all, nil
}

// placeOf returns the round and the iteration of a step from the phase's history, 0 if they are unknown.
func placeOf(p state.Phase, step int) (round, iteration int) {
	if p.Step == step {
		return p.Round, p.Iteration
	}
	for _, h := range p.History {
		if h.Step == step {
			return h.Round, h.Iteration
		}
	}
	return 0, 0
}

// Failed reports whether the call ended without finishing its task.
func (c Call) Failed() bool { return c.Ended && c.Outcome.Class != outcome.Done }

// Proofs returns the proofs in the call's record: of its container and of the app's container.
func (c Call) Proofs() (all []roles.Boundary, err error) {
	own, ok, err := c.Boundary()
	if ok {
		all = append(all, own)
	}
	app, ok, aerr := c.App().Boundary()
	if ok {
		all = append(all, app)
	}
	return all, errors.Join(err, aerr)
}

// Transcript calls each for the messages of a call's agent, in order, or for its requests to the model
// if there is no message.
func (s *Project) Transcript(c Call, each func(agent.Message)) error {
	silent := true
	to := s.Messages(c, func(m agent.Message) {
		silent = false
		each(m)
	})
	err := roles.Lines(context.Background(), c.Stdout(), to, func() (bool, error) { return true, nil })
	if to(nil, false); silent {
		s.Requests(c, each)
	}
	return err
}

// Requests calls each for the requests of a call to its model.
func (s *Project) Requests(c Call, each func(agent.Message)) {
	for _, text := range environment.Requests(c.Record) {
		each(agent.Message{Kind: agent.Called, Text: s.In.Safe.Line(text)})
	}
}

// Messages returns a function that parses the lines of a call's output and calls each for the messages of
// its agent. The caller passes nil after the last line.
func (s *Project) Messages(c Call, each func(agent.Message)) func(line []byte, cut bool) {
	a, err := agent.Find(c.Agent)
	if s.Conf.Agents[c.Agent].Own() {
		a, err = s.agents().Find(c.Agent)
	}
	if err != nil { // the settings no longer have it: each line is a message
		a = agent.Custom(agent.Agent{Name: c.Agent}, agent.Settings{})
	}
	return roles.Messages(a.NewReader(agent.Call{Model: c.Model}), s.In.Safe, each)
}
