package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	s, sides := r.store(), [2][]*index.Entry{}
	for i, commit := range []string{from, to} {
		if commit == "" {
			continue
		}
		all, err := commitContent(s, r.opts.Without, commit)
		if err != nil {
			return err
		}
		sides[i] = all.entries
	}
	for _, path := range differing(sides[0], sides[1]) {
		c, err := changeOf(s, path, entryAt(sides[0], path), entryAt(sides[1], path))
		if err = cmp.Or(ctx.Err(), err); err == nil {
			err = each(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func byName(e *index.Entry, name string) int { return strings.Compare(e.Name, name) }

func entryAt(sorted []*index.Entry, path string) *index.Entry {
	if i, is := slices.BinarySearchFunc(sorted, path, byName); is {
		return sorted[i]
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
		text, err := textOf(s, e.Hash)
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return Change{Path: path, Note: "it is left out of the clone"}, nil
		case errors.Is(err, ErrConflict):
			return Change{Path: path, Note: fmt.Sprintf("it is no text, or larger than %d MiB", maxText>>20)}, nil
		case err != nil:
			return c, err
		}
		**side = string(text)
	}
	return c, nil
}

// Before is the commit of a repository that the first of a run of commits follows, the last of which is tip: the
// commits of calls whose name has this prefix, and what a person committed between them. It
// is "" where they begin the history. No call's is looked for from start on, "" for none.
func Before(ctx context.Context, r *Repo, tip, prefix, start string) (before string, err error) {
	s := r.store()
	before = tip
	for at := tip; at != "" && at != start; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		c, err := r.commit(s, at)
		if errors.Is(err, plumbing.ErrObjectNotFound) { // of a shallow clone there is no more
			break
		}
		if err != nil {
			return "", err
		}
		switch {
		case strings.HasPrefix(c.Call, prefix):
			before = c.Parent
		case c.Call != "":
			return before, nil
		}
		at = c.Parent
	}
	return before, nil
}
