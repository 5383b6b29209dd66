package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/sandbox"
	"abl/internal/state"
)

// ErrSource means that a path of this machine is not the file or directory that abl created for a
// container. An engine follows links as root.
var ErrSource = errors.New("cannot mount this in a container")

// CheckSources checks the sources of mounts right before a container is created. They must be real
// directories below the project, without a link in their path, and none inside of another. The
// files for output must be regular files.
func CheckSources(p state.Project, mounts []sandbox.Mount) error {
	if err := checkSeparate(p); err != nil {
		return err
	}
	for _, m := range mounts {
		if m.What.IsVolume() {
			continue // the engine's own storage
		}
		steps, err := statPath(p, m.Source)
		if err != nil {
			return err
		}
		switch is := steps[len(steps)-1]; {
		case m.What == sandbox.CallOut && !is.Mode().IsRegular():
			return sourceError(p, m.Source, "it is not a plain file")
		case m.What != sandbox.CallOut && !is.IsDir():
			return sourceError(p, m.Source, "it is not a directory")
		case forbidden(p, is):
			return sourceError(p, m.Source, "it is the project itself, or the home or root directory, under another name")
		}
	}
	return nil
}

// forbidden reports whether no container may see a directory.
func forbidden(p state.Project, is fs.FileInfo) bool {
	home, _ := os.UserHomeDir() // "" is ignored below
	return slices.ContainsFunc([]string{p.Root, filepath.Dir(p.State()), home, "/"}, func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(is, other)
	})
}

// statPath returns the file infos of each directory from the project's root to path, the root
// first. It fails if one of them is a link.
func statPath(p state.Project, path string) ([]fs.FileInfo, error) {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil, sourceError(p, path, "it is not below the project")
	}
	var steps []fs.FileInfo
	at := p.Root
	for _, step := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = filepath.Join(at, step)
		is, err := os.Lstat(at)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		if is.Mode()&fs.ModeSymlink != 0 {
			return nil, sourceError(p, path, fmt.Sprintf("%q is a link; put the real directory there", p.Rel(at)))
		}
		steps = append(steps, is)
	}
	return steps, nil
}

// checkSeparate fails if one of the workspaces, the specs and the records is or contains another,
// also under another name, such as through a bind mount.
func checkSeparate(p state.Project) error {
	places := []string{p.Src, p.Tests, p.Specs(), p.Calls()}
	for i, inner := range places {
		steps, err := statPath(p, inner)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a missing path fails at its mount
			return err
		}
		for k, outer := range places {
			end, err := os.Lstat(outer)
			same := func(step fs.FileInfo) bool { return os.SameFile(step, end) }
			if err == nil && i != k && slices.ContainsFunc(steps, same) {
				return sourceError(p, inner, fmt.Sprintf("it is, or is inside of, %q", p.Rel(outer)))
			}
		}
	}
	return nil
}

func sourceError(p state.Project, path, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrSource, p.Rel(path), why)
}
