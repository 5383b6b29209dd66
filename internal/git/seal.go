package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/state"
)

// steering is what in .git decides what a person's git runs and where it reads
// and writes, besides the hooks.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

const (
	maxSteering = 4 << 20 // bytes of a config or a hook
	maxInside   = 100_000 // names in .git but for the objects
)

// Seal says what .git is like now: what steers git by its hash, and where the
// history stands. The index, objects, packs and logs are the person's git's
// own business, and so are the branches of remotes, which it fetches by itself.
// An error that Is ErrForeign names something that must not be there.
func (r *Repo) Seal() (state.Seal, error) {
	if err := r.ordinary(); err != nil {
		return state.Seal{}, err
	}
	if err := r.settled(); err != nil {
		return state.Seal{}, err
	}
	s := state.Seal{Steering: map[string]string{}}
	hooks, err := inside(r.git, "hooks")
	if err != nil {
		return s, err
	}
	for _, name := range append(hooks, steering...) {
		if strings.HasSuffix(name, ".sample") {
			continue // git runs none
		}
		if err := hash(r.git, name, s.Steering); err != nil {
			return s, err
		}
	}
	s.History, err = r.history()
	return s, err
}

func hash(d gitdir.Dir, name string, into map[string]string) error {
	data, err := hostfs.Read(d.Path, name, maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		return gitdir.Foreign("%q: %v: put back what git makes there", d.Path, err)
	}
	mode := "" // git runs a hook only when it is executable
	if info, err := os.Lstat(d.Join(name)); err == nil && info.Mode()&0o111 != 0 {
		mode = "+x"
	}
	sum := sha256.Sum256(data)
	into[name] = hex.EncodeToString(sum[:]) + mode
	return nil
}

// history is what HEAD and every ref name.
func (r *Repo) history() (map[string]string, error) {
	refs, err := r.git.Packed()
	if err != nil {
		return nil, err
	}
	loose, err := inside(r.git, "refs")
	if err != nil {
		return nil, err
	}
	for _, name := range append(loose, "HEAD") {
		if strings.HasSuffix(name, ".lock") {
			continue
		}
		data, err := hostfs.Read(r.git.Path, name, maxSteering)
		switch {
		case err == nil:
			refs[name] = strings.TrimSpace(string(data))
		case !errors.Is(err, hostfs.ErrAbsent): // packed just now, say
			return nil, gitdir.Foreign("%q: %v: put back what git makes there", r.git.Path, err)
		}
	}
	for name := range refs {
		if strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/") {
			delete(refs, name)
		}
	}
	return refs, nil
}

// inside lists the files below a folder of .git, and refuses what is neither
// file nor folder there: a link leads out of what is mounted read-only, and a
// socket can be talked to through any mount.
func inside(d gitdir.Dir, folder string) ([]string, error) {
	var files []string
	met := 0
	var walk func(folder string) error
	walk = func(folder string) error {
		entries, err := plain(d, folder)
		if met += len(entries); met > maxInside {
			return gitdir.Foreign("%q holds more than %d names: git pack-refs --all makes them one file", d.Join(folder), maxInside)
		}
		for _, e := range entries {
			if name := path.Join(folder, e.Name()); !e.IsDir() {
				files = append(files, name)
			} else if err == nil {
				err = walk(name)
			}
		}
		return err
	}
	return files, walk(folder)
}

// plain lists one folder of .git, which may be missing.
func plain(d gitdir.Dir, folder string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(d.Join(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, gitdir.Foreign("%q cannot be listed (%v): put back what git makes there", d.Join(folder), err)
	}
	for _, e := range entries {
		if kind := e.Type(); kind != 0 && !kind.IsDir() {
			return nil, gitdir.Foreign("%q is %s: nothing but files and folders may stand in .git; remove it%s", d.Join(folder, e.Name()), kindOf(kind), stopsDaemon(e.Name()))
		}
	}
	return entries, nil
}

func kindOf(kind fs.FileMode) string {
	switch {
	case kind&fs.ModeSymlink != 0:
		return "a link"
	case kind&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// stopsDaemon says what to do about the socket of git's own watcher.
func stopsDaemon(name string) string {
	if strings.HasPrefix(name, "fsmonitor--daemon") {
		return " (git fsmonitor--daemon stop, and git config core.fsmonitor false)"
	}
	return ""
}
