package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"abl/internal/sandbox"
	"abl/internal/state"
)

// ErrSource means that what a container is about to see of this machine is not
// what abl laid out. An engine follows links, as root, and asks nobody.
var ErrSource = errors.New("cannot show this to a container")

// checkSources looks at everything of this machine that mounts would show,
// right before a container is made: real directories below the project, reached
// without a link, none of them in another, and nothing mounted inside what is
// read-only. The files for output are plain files.
func checkSources(p state.Project, mounts []sandbox.Mount) error {
	if err := apart(p); err != nil {
		return err
	}
	mounted, err := mountPoints()
	if err != nil {
		return fmt.Errorf("%w: cannot tell what is mounted where: %w", ErrSource, err)
	}
	for _, m := range mounts {
		if m.What.IsVolume() {
			continue // the engine's own storage
		}
		way, err := wayTo(p, m.Source)
		if err != nil {
			return err
		}
		if err := judge(p, m, way[len(way)-1], mounted); err != nil {
			return err
		}
	}
	return nil
}

// judge looks at one source.
func judge(p state.Project, m sandbox.Mount, is fs.FileInfo, mounted []string) error {
	if m.What == sandbox.CallOut {
		if !is.Mode().IsRegular() {
			return refuse(p, m.Source, "it is not a plain file")
		}
		return nil
	}
	if !is.IsDir() {
		return refuse(p, m.Source, "it is not a directory")
	}
	for _, other := range elsewhere(p) {
		if os.SameFile(is, other) {
			return refuse(p, m.Source, "it is the project itself, or the home or root directory, under another name")
		}
	}
	for _, at := range mounted {
		if m.What != sandbox.Workspace && strings.HasPrefix(at, m.Source+"/") {
			return refuse(p, m.Source, fmt.Sprintf("something is mounted at %q, which a read-only mount does not show: unmount it", p.Rel(at)))
		}
	}
	return nil
}

// wayTo looks at every step from the project's root down to path, the root
// first. None of them may be a link.
func wayTo(p state.Project, path string) ([]fs.FileInfo, error) {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil, refuse(p, path, "it is not below the project")
	}
	var way []fs.FileInfo
	at := p.Root
	for _, step := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = filepath.Join(at, step)
		is, err := os.Lstat(at)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		if is.Mode()&fs.ModeSymlink != 0 {
			return nil, refuse(p, path, fmt.Sprintf("%q is a link; put the real directory there", p.Rel(at)))
		}
		way = append(way, is)
	}
	return way, nil
}

// apart refuses workspaces, specs and records of which one is, or lies in,
// another, be it under another name, as a bind mount gives one.
func apart(p state.Project) error {
	places := []string{p.Src, p.Tests, p.Specs(), p.Calls()}
	ways := make([][]fs.FileInfo, len(places))
	for i, path := range places {
		way, err := wayTo(p, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // of that whoever mounts it is told
			return err
		}
		ways[i] = way
	}
	for i, inner := range ways {
		for k, outer := range ways {
			if i != k && passes(inner, outer) {
				return refuse(p, places[i], fmt.Sprintf("it is, or lies in, %q", p.Rel(places[k])))
			}
		}
	}
	return nil
}

// passes says whether one way leads through the end of another.
func passes(way, other []fs.FileInfo) bool {
	for _, step := range way {
		if len(other) > 0 && os.SameFile(step, other[len(other)-1]) {
			return true
		}
	}
	return false
}

// elsewhere is what no container is ever to see.
func elsewhere(p state.Project) (all []fs.FileInfo) {
	home, _ := os.UserHomeDir() // "" is none
	for _, path := range []string{p.Root, filepath.Dir(p.State()), home, "/"} {
		if is, err := os.Stat(path); err == nil {
			all = append(all, is)
		}
	}
	return all
}

func refuse(p state.Project, path, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrSource, p.Rel(path), why)
}

// mountPoints lists where something is mounted, as this process sees it.
func mountPoints() ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, nil // there the engine has a kernel of its own, with its own mounts
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		const point = 4 // the fifth field, in which the kernel writes a space and its like as \040
		if f := strings.Fields(line); len(f) > point {
			at, err := strconv.Unquote(`"` + strings.ReplaceAll(f[point], `"`, `\"`) + `"`)
			if err != nil {
				return nil, fmt.Errorf("cannot read %q: %w", f[point], err)
			}
			all = append(all, at)
		}
	}
	return all, nil
}
