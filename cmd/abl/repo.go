package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"abl/internal/git"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles/prompt"
)

// files lists a workspace for the project map.
func files(repo *git.Repo) orchestrator.Files {
	return func(ctx context.Context) ([]prompt.File, error) {
		paths, err := repo.Files(ctx, 50_000)
		if err != nil {
			return nil, err
		}
		all := make([]prompt.File, 0, len(paths))
		for _, p := range paths {
			f := prompt.File{Path: p}
			if fi, err := os.Lstat(filepath.Join(repo.Dir(), p)); err == nil {
				f.Size = fi.Size()
			}
			all = append(all, f)
		}
		return all, nil
	}
}

// repo lets the loop commit through a workspace.
type repo struct{ *git.Repo }

// Tip is the last commit, "" before the first.
func (r repo) Tip() (string, error) {
	c, _, err := r.Head()
	return c.Hash, err
}

// Snapshot commits the tree under the call's key.
func (r repo) Snapshot(ctx context.Context, subject, key string, keep func(state.Found) error) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, git.Message{Subject: subject, Trailers: [][2]string{{"Abl-Call", key}}, When: time.Now(), Keep: keep})
	if err != nil {
		return orchestrator.Commit{}, err
	}
	c := orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}
	for _, skipped := range s.Skipped {
		c.Skipped = append(c.Skipped, skipped.Path+": "+skipped.Why)
	}
	return c, nil
}
