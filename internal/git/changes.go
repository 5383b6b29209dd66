package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Change is a path that two commits do not hold alike.
type Change struct {
	Path     string
	Old, New *string // the text on each side, nil where there is no file
	Note     string  // what the texts do not say: another mode, or why there are none
}

// Changes tells each path that differs between two commits, in order; from may be "", which
// holds nothing.
func Changes(ctx context.Context, r *Repo, from, to string, each func(Change) error) error {
	was, err1 := r.content(from)
	is, err2 := r.content(to)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s := r.git.Store()
	for _, path := range differing(was.entries, is.entries) {
		c, err := changeOf(s, path, entryAt(was.entries, path), entryAt(is.entries, path))
		if err = cmp.Or(ctx.Err(), err); err == nil {
			err = each(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func changeOf(s *filesystem.Storage, path string, from, to *index.Entry) (c Change, err error) {
	c.Path = path
	if from != nil && to != nil && from.Mode != to.Mode {
		c.Note = fmt.Sprintf("mode %o, was %o", to.Mode, from.Mode)
	}
	for side, e := range map[**string]*index.Entry{&c.Old: from, &c.New: to} {
		if e == nil {
			continue
		}
		if *side = new(string); e.Mode == filemode.Submodule {
			**side = e.Hash.String() + "\n"
			continue
		}
		var err error
		**side, err = textOf(s, e.Hash)
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return Change{Path: path, Note: "it is left out of the clone"}, nil
		case errors.Is(err, ErrConflict):
			return Change{Path: path, Note: fmt.Sprintf("it is no text, or larger than %d MiB", maxText>>20)}, nil
		case err != nil:
			return c, err
		}
	}
	return c, nil
}

// Before is the commit of a repository that the first of a run of commits follows, the last of which is tip: the
// commits of calls whose name has this prefix, and what a person committed between them. It
// is "" where they begin the history. No call's is looked for from start on, "" for none.
func Before(ctx context.Context, r *Repo, tip, prefix, start string) (before string, err error) {
	s := r.git.Store()
	before = tip
	for at := tip; at != "" && at != start; {
		full, err := r.commit(s, at)
		if errors.Is(err, plumbing.ErrObjectNotFound) { // of a shallow clone there is no more
			break
		}
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return "", err
		}
		c := readCommit(full)
		if !strings.HasPrefix(c.Call, prefix) && c.Call != "" {
			break
		}
		if c.Call != "" {
			before = c.Parent
		}
		at = c.Parent
	}
	return before, nil
}
