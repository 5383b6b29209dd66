package app

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// dependencies returns a directory with the files that app.prepare makes for a commit and that the
// commit does not contain. The directory is cached under the commit's lock files and manifests, the
// command and the image. Without lock files and manifests it is cached under the whole commit.
// export is a directory with the commit.
func (a *App) dependencies(ctx context.Context, key, commit, export string) (dir, failed string, err error) {
	content, err := a.Commits.Content(commit)
	if err != nil {
		return "", "", err
	}
	name, named := a.dependencyKey(content)
	if !named {
		name += "-" + filepath.Base(export)
	}
	return cache{a.Project}.layer("deps", name, func(dir string) (string, error) {
		return a.Prepare.inExport(ctx, a, key, commit, layers{export}, dir)
	})
}

// layer returns a directory of the cache. If it does not exist, fill writes it. A directory whose
// fill reports a failure is deleted.
func (c cache) layer(
	kind, name string, fill func(dir string) (failed string, err error),
) (dir, failed string, err error) {
	dir, err = c.ensure(kind, name, func(dir string) error {
		failed, err = fill(dir)
		if err == nil && failed != "" {
			err = errNotPrepared
		}
		return err
	})
	if errors.Is(err, errNotPrepared) {
		return "", failed, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot prepare the app (%s): %w", kind, err)
	}
	return dir, "", nil
}

// errNotPrepared prevents that the directory of a failed command is cached.
var errNotPrepared = errors.New("the command failed")

// inExport runs the command in dir, a copy of a commit and of the layers that the command
// needs. Afterwards it removes the copied files that did not change from dir. It reports a failure
// if the command changed a file of the commit.
func (p *Prepare) inExport(ctx context.Context, a *App, key, commit string, from layers, dir string) (failed string, err error) {
	if err := a.Engine.Remove(ctx, a.Name(p.key())); err != nil { // left by a killed abl
		return "", err
	}
	err = a.repeated(ctx, key, func() error {
		failed, err = p.once(ctx, a, key, commit, from, dir)
		return err
	})
	return failed, err
}

func (p *Prepare) once(
	ctx context.Context, a *App, key, commit string, from layers, dir string,
) (failed string, err error) {
	begun, in := time.Now(), a.Project
	in.Src = dir
	err = errors.Join(clearFolder(dir), a.Commits.ExportTo(ctx, dir, commit, ""))
	for _, lower := range from[1:] {
		if err == nil {
			err = hostfs.CopyInto(dir, lower, a.UID, a.GID)
		}
	}
	if err != nil {
		return "", err
	}
	a.emit(key, state.Event{Kind: state.Preparing, Text: p.command(a)})
	end, err := p.run(ctx, a, in)
	if err != nil {
		return "", err
	}
	changed, err := removeCopied(from[0], dir, false)
	for _, lower := range from[1:] {
		_, rerr := removeCopied(lower, dir, true)
		err = errors.Join(err, rerr)
	}
	err = errors.Join(err, hostfs.Remove(dir, ".git"))
	if err == nil {
		err = removeUnsafe(dir)
	}
	if err != nil {
		return "", err
	}
	return p.report(a, key, begun, end, changed), nil
}

// clearFolder removes everything in a directory.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, hostfs.Remove(dir, e.Name()))
	}
	return err
}

// removeCopied removes the files of export from dir, which was a copy of it, and returns the paths
// that had changed. With keep the changed files stay.
func removeCopied(export, dir string, keep bool) (changed []string, err error) {
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
		if keep && !equal && e.IsDir() {
			return fs.SkipDir
		}
		if keep && !equal {
			return nil
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
// makes a folder readable in the second one.
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

// removeUnsafe clears setuid and setgid bits and access control lists below dir, and removes devices,
// FIFOs and sockets.
func removeUnsafe(dir string) error {
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

// built returns a directory with the files that app.build makes from a commit and the layers of its
// dependencies. The cache's key is a hash of the layers, the command, the folder, the image and the
// variables. failed is why the build failed, or "".
func (a *App) built(ctx context.Context, key, commit string, from layers) (dir, failed string, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q", a.Spec.App.Build, a.Spec.Dir, a.Image, a.Env)
	for _, layer := range from {
		fmt.Fprintf(h, " %q", filepath.Base(layer))
	}
	return cache{a.Project}.layer("builds", fmt.Sprintf("%x", h.Sum(nil)), func(dir string) (string, error) {
		return a.Build.inExport(ctx, a, key, commit, from, dir)
	})
}
