package phase

import (
	"context"
	"fmt"
	"strconv"

	"abl/cmd/internal/exit"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/state"
)

// Records are the audit records of phase n, oldest first, without what has become a secret since.
func Records(s *Project, n int) (all []audit.Record, err error) {
	steps, err := audit.Steps(s.Paths, n)
	for _, step := range steps {
		r, err := audit.Load(s.Paths, n, step)
		if err == nil {
			err = s.In.Safe.Clean(&r)
		}
		if err != nil {
			return nil, exit.With(exit.Person, err, "take the file away; the phase itself does not need it")
		}
		all = append(all, r)
	}
	return all, err
}

// Used adds up the rows of phase n.
func Used(s *Project, n int) (ledger.Sum, error) {
	totals := ledger.Totals{Price: s.CostOf}
	rows, err := Rows(s, n)
	for _, row := range rows {
		totals.Add(row)
	}
	return totals.Account().All, err
}

// Rows are those that the ledger has of phase n; `abl costs` complains of lines that are none.
func Rows(s *Project, n int) (rows []ledger.Row, err error) {
	err = ledger.Open(s.Paths.Ledger()).Scan(func(r ledger.Row) {
		if r.Phase == strconv.Itoa(n) {
			rows = append(rows, r)
		}
	}, func(int, string) {})
	return rows, err
}

// built is the commit that phase n has come to.
func built(s *Project, n int) (f *state.File, commit string, err error) {
	if f, err = s.State(); err == nil {
		commit = f.Phase(n).SrcCommit
	}
	if err == nil && commit == "" {
		err = exit.With(exit.Usage, fmt.Errorf("phase %d has built nothing yet", n), "abl status lists the phases")
	}
	return f, commit, err
}

// began opens the source, and finds the commit with which phase n began that came to tip.
func (s *Project) began(ctx context.Context, n int, tip string) (src *git.Repo, commit string, err error) {
	unlock, err := s.Lock() // a merge that was cut short ends when the source is opened
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	f, err := s.State()
	if err != nil {
		return nil, "", err
	}
	o := s.source()
	o.Begun = true // looking makes no repository
	if src, err = git.Open(s.Paths.Src, o); err != nil {
		return nil, "", err
	}
	commit, err = git.Before(ctx, src, tip, fmt.Sprintf("p%d-", n), f.Start)
	return src, commit, err
}

// Changes tells what phase n changed in the source.
func Changes(ctx context.Context, s *Project, n int, each func(git.Change) error) error {
	_, tip, err := built(s, n)
	if err != nil {
		return err
	}
	src, from, err := s.began(ctx, n, tip)
	if err != nil {
		return err
	}
	return git.Changes(ctx, src, from, tip, each)
}

// FilesChanged counts the paths that phase n changed in the source, -1 where nobody can tell or
// a phase is running.
func FilesChanged(ctx context.Context, s *Project, n int) int {
	count := 0
	if err := Changes(ctx, s, n, func(git.Change) error { count++; return nil }); err != nil {
		return -1
	}
	return count
}

// StepChanges tells what differs between the sources of the iterations of phase n, from the newest
// back: of which record, and which commit it began with, "" for none.
func StepChanges(ctx context.Context, s *Project, n int, records []audit.Record, each func(i int, from string, c git.Change) error) error {
	if len(records) == 0 {
		return nil
	}
	src, from, err := s.began(ctx, n, records[0].Commits.Source)
	commits := []string{from}
	for _, r := range records {
		commits = append(commits, r.Commits.Source)
	}
	for i := len(records) - 1; i >= 0 && err == nil; i-- {
		if from, to := commits[i], commits[i+1]; from != to {
			err = git.Changes(ctx, src, from, to, func(c git.Change) error { return each(i, from, c) })
		}
	}
	return err
}
