package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/hostfs"
	"abl/internal/state"
)

// Commits is the repository of the source.
type Commits interface {
	Tip() (string, error)
	TreeHash(commit string) (string, error)
	// Content returns the mode and hash of each file of a commit by its path.
	Content(commit string) (map[string]string, error)
	// ExportTo writes the files of a commit into an empty directory. It may create hard links to
	// files of earlier, an earlier export next to dir that is named by its tree, or "".
	ExportTo(ctx context.Context, dir, commit, earlier string) error
}

// layers are the directories that make up an app's source, the uppermost first: the export of a
// commit, the files of app.build, and the files of app.prepare.
type layers []string

// source exports a commit, "" for the last one, installs its dependencies and builds it. failed is
// the failure of app.prepare or app.build, and by is which of them failed.
func (a *App) source(ctx context.Context, key, commit string) (all layers, failed string, by *Prepare, err error) {
	if commit == "" {
		if commit, err = a.Commits.Tip(); err != nil {
			return nil, "", nil, err
		}
	}
	tree, err := a.Commits.TreeHash(commit)
	if err != nil {
		return nil, "", nil, err
	}
	exports := cache{a.Project}
	dir, err := exports.ensure("trees", tree, func(dir string) error {
		return a.Commits.ExportTo(ctx, dir, commit, exports.newest("trees"))
	})
	if err != nil {
		return nil, "", nil, fmt.Errorf("cannot export commit %.12s of the source: %w", commit, err)
	}
	all = layers{dir}
	if a.Prepare != nil {
		deps, failed, err := a.dependencies(ctx, key, commit, dir)
		if err != nil || failed != "" {
			return nil, failed, a.Prepare, err
		}
		all = append(all, deps)
	}
	if a.Build != nil {
		made, failed, err := a.built(ctx, key, commit, all)
		if err != nil || failed != "" {
			return nil, failed, a.Build, err
		}
		all = slices.Insert(all, 1, made) // above the dependencies, which it may have changed
	}
	return all, "", nil, nil
}

// cache is a folder of directories that abl can create again.
type cache struct{ project state.Project }

// cacheKept is the number of cached directories per kind: each may be as large as the source.
const cacheKept = 2

// caching prevents two apps that start at the same time from creating one directory twice. opened
// has the caches that this process has checked.
var (
	caching sync.Mutex
	opened  = map[string]bool{}
)

// ensure returns the directory of a kind and a name. If it does not exist, fill writes it. ensure
// keeps the cacheKept directories that were used last.
func (c cache) ensure(kind, name string, fill func(dir string) error) (string, error) {
	caching.Lock()
	defer caching.Unlock()
	if err := c.open(kind); err != nil {
		return "", err
	}
	dir := c.project.Cache(kind, name)
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		now := time.Now()
		return dir, os.Chtimes(dir, now, now)
	}
	made := c.project.Cache(kind, unfinished+rand.Text())
	err := os.Mkdir(made, 0o755)
	if err == nil {
		err = fill(made)
	}
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		return "", errors.Join(err, hostfs.Remove(filepath.Dir(made), filepath.Base(made)))
	}
	return dir, c.prune(kind, name)
}

// unfinished is the prefix of the name of a directory that is being written.
const unfinished = "new-"

// open creates the folder of a kind. If the machine was restarted, or if that is unknown, open
// empties the cache: exported files are not synced, so a power cut may have emptied them.
func (c cache) open(kind string) error {
	dir, now := c.project.Cache(), hostfs.BootID()
	if !opened[dir] {
		known, _ := hostfs.Read(dir, "boot", 100)
		if now == "" || string(known) != now {
			if err := hostfs.Remove(filepath.Dir(dir), filepath.Base(dir)); err != nil {
				return err
			}
		}
	}
	if err := hostfs.MkdirAll(c.project.Root, c.project.Rel(c.project.Cache(kind))); err != nil || opened[dir] {
		return err
	}
	err := hostfs.Write(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644)
	if err == nil {
		err = hostfs.Write(filepath.Join(dir, "boot"), []byte(now), 0o644)
	}
	opened[dir] = err == nil
	return err
}

// newest returns the directory of a kind that was used last, "" without one.
func (c cache) newest(kind string) (dir string) {
	entries, _ := os.ReadDir(c.project.Cache(kind))
	var last time.Time
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) && !strings.HasPrefix(e.Name(), unfinished) {
			dir, last = c.project.Cache(kind, e.Name()), info.ModTime()
		}
	}
	return dir
}

// prune removes unfinished directories of a killed abl, and the directories of a kind except those
// that were used last.
func (c cache) prune(kind, used string) error {
	entries, err := os.ReadDir(c.project.Cache(kind))
	if err != nil {
		return err
	}
	when := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != used && !strings.HasPrefix(e.Name(), unfinished) {
			when[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return when[b.Name()].Compare(when[a.Name()]) })
	kept := 1
	for _, e := range entries {
		if e.Name() == used {
			continue
		}
		if kept++; kept > cacheKept || when[e.Name()].IsZero() {
			err = errors.Join(err, hostfs.Remove(c.project.Cache(kind), e.Name()))
		}
	}
	return err
}
