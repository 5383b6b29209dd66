package roles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/hostfs"
	"abl/internal/state"

	"golang.org/x/sys/unix"
)

// dependencies returns a directory with the files that app.prepare makes for a commit and that
// the commit does not contain. They depend on the commit's lock files and manifests, the command and
// the image: if these are the same, so is the directory. Without any they depend on the whole commit.
// export is a directory with the commit.
func (a *App) dependencies(ctx context.Context, key, commit, export string) (dir, failed string, err error) {
	content, err := a.Commits.Content(commit)
	if err != nil {
		return "", "", err
	}
	name, named := a.standsOn(content)
	if !named {
		name += "-" + filepath.Base(export)
	}
	dir, err = a.cache().ensure("deps", name, func(dir string) error {
		failed, err = a.prepareExport(ctx, key, commit, export, dir)
		if err == nil && failed != "" {
			err = errNotPrepared
		}
		return err
	})
	if errors.Is(err, errNotPrepared) {
		return "", failed, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot prepare the app's dependencies: %w", err)
	}
	return dir, "", nil
}

// errNotPrepared keeps the directory of a command that failed out of the cache.
var errNotPrepared = errors.New("app.prepare failed")

// prepareExport runs app.prepare in dir, a copy of a commit, and removes the commit's files from
// dir afterwards. It fails if the command changed any of them.
func (a *App) prepareExport(ctx context.Context, key, commit, export, dir string) (failed string, err error) {
	if err := a.Engine.Remove(ctx, a.name(prepareKey)); err != nil { // a killed abl left it
		return "", err
	}
	err = a.repeated(ctx, key, func() error {
		failed, err = a.prepareOnce(ctx, key, commit, export, dir)
		return err
	})
	return failed, err
}

func (a *App) prepareOnce(ctx context.Context, key, commit, export, dir string) (failed string, err error) {
	begun, in := time.Now(), a.Project
	in.Src = dir
	if err := errors.Join(clearFolder(dir), a.Commits.ExportTo(ctx, dir, commit, "")); err != nil {
		return "", err
	}
	a.tell(key, state.Event{Kind: state.Preparing, Text: a.Spec.App.Prepare})
	end, err := a.runPrepare(ctx, in)
	if err != nil {
		return "", err
	}
	changed, err := takeOut(export, dir)
	err = errors.Join(err, hostfs.Remove(dir, ".git"))
	if err == nil {
		err = disarm(dir)
	}
	if err != nil {
		return "", err
	}
	return a.reportPrepare(key, begun, end, changed), nil
}

// clearFolder removes everything in a directory.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, hostfs.Remove(dir, e.Name()))
	}
	return err
}

// takeOut removes the files of export from dir, which was a copy, and returns the paths that
// were no longer the same.
func takeOut(export, dir string) (changed []string, err error) {
	was, err := os.OpenRoot(export)
	if err != nil {
		return nil, err
	}
	defer was.Close()
	is, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer is.Close()
	err = fs.WalkDir(was.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		equal, err := sameFile(was, is, name)
		switch {
		case err != nil || equal && e.IsDir():
			return err
		case !equal:
			changed = append(changed, name)
		}
		err = hostfs.Remove(dir, name)
		if err == nil && e.IsDir() {
			err = fs.SkipDir // the command removed the folder or put something else there
		}
		return err
	})
	return changed, err
}

// sameFile reports whether a path is the same file or link, or a folder, in two directories. It
// makes the folder readable.
func sameFile(was, is *os.Root, name string) (bool, error) {
	before, err := was.Lstat(name)
	if err != nil {
		return false, err
	}
	after, err := is.Lstat(name)
	if before.IsDir() {
		if err != nil || !after.IsDir() {
			return false, nil
		}
		return true, is.Chmod(name, after.Mode().Perm()|0o700)
	}
	if err != nil || before.Mode() != after.Mode() || before.Size() != after.Size() {
		return false, nil
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		from, ferr := was.Readlink(name)
		to, terr := is.Readlink(name)
		return from == to, errors.Join(ferr, terr)
	}
	if before.ModTime().Equal(after.ModTime()) {
		return true, nil
	}
	from, ferr := was.ReadFile(name)
	to, terr := is.ReadFile(name)
	return bytes.Equal(from, to), errors.Join(ferr, terr)
}

// disarm clears setuid and setgid bits and access control lists below dir, and removes devices,
// FIFOs and sockets.
func disarm(dir string) error {
	var away []string
	err := hostfs.Walk(dir, "", func(e hostfs.Entry) error {
		switch e.Kind() {
		case unix.S_IFREG, unix.S_IFDIR:
			_, err := e.DropACLs()
			if e.Armed() {
				err = errors.Join(err, e.DropRights())
			}
			return err
		case unix.S_IFLNK:
		default:
			away = append(away, e.Path())
		}
		return nil
	})
	for _, name := range slices.Backward(away) {
		err = errors.Join(err, hostfs.Remove(dir, name))
	}
	return err
}
