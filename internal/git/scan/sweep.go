package scan

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/state"

	"golang.org/x/sys/unix"
)

// rightsBits make a program run as its owner or group.
const rightsBits = unix.S_ISUID | unix.S_ISGID

// capability is the attribute in which a file's capabilities stand.
const capability = "security.capability"

// clear takes away what no role needs, and says whether the name has gone with
// it. A folder keeps its setgid bit: it hands the group on, and no right.
func (w *walker) clear(fd int, path string, e *name) (gone bool) {
	switch rights := e.rights(); {
	case !w.Sweep:
	case rights != 0:
		// Below a folder that nobody else can write there is nothing to be exchanged.
		if err := unix.Fchmodat(fd, e.plain(), uint32(e.stat.Mode)&0o7777|rights, 0); err != nil {
			w.found(path, fmt.Sprintf("shut to its owner, and cannot be opened: %v", err), false)
			return false
		}
		w.found(path, "shut to its owner, opened", false)
		if unix.Fstatat(fd, e.plain(), &e.stat, unix.AT_SYMLINK_NOFOLLOW) != nil || e.rights() != 0 {
			return false
		}
		return w.clear(fd, path, e)
	case e.special():
		if err := unix.Unlinkat(fd, e.key, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			w.found(path, fmt.Sprintf("%s, which cannot be removed: %v", e.kind(), err), true)
			return false
		}
		w.found(path, e.kind()+", removed", false)
		return true
	case e.regular() && e.stat.Mode&rightsBits != 0:
		if err := dropBits(fd, e); err != nil {
			w.found(path, fmt.Sprintf("a setuid or setgid bit, which cannot be cleared: %v", err), true)
		} else {
			w.found(path, "a setuid or setgid bit, cleared", true)
		}
	}
	return false
}

// rights are those that its owner is given back who cannot even read it, 0 for none.
func (n *name) rights() uint32 {
	switch mode := uint32(n.stat.Mode); {
	case n.dir() && mode&0o500 != 0o500:
		return 0o700
	case n.regular() && mode&0o400 == 0:
		return 0o600
	}
	return 0
}

// dropBits clears the bits of the very file that was looked at, and looks again.
func dropBits(fd int, e *name) error {
	f, err := openRegular(fd, e)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fchmod(int(f), uint32(e.stat.Mode)&0o7777&^rightsBits); err != nil {
		return err
	}
	return unix.Fstat(int(f), &e.stat)
}

// disarm takes away the capabilities of an open file, and says whether it had
// any. Giving a file capabilities changes the time by which that is told.
func (w *walker) disarm(f regular, path string) bool {
	n, err := unix.Fgetxattr(int(f), capability, nil)
	if err != nil || n == 0 {
		return false
	}
	what := "capabilities of its own, cleared"
	if err := unix.Fremovexattr(int(f), capability); err != nil {
		what = fmt.Sprintf("capabilities of its own, which cannot be cleared: %v", err)
	}
	w.found(path, what, true)
	return true
}

// disarmAt does so for a file that is in no tree.
func (w *walker) disarmAt(fd int, path string, e *name) {
	if !e.regular() {
		return
	}
	if f, err := openRegular(fd, e); err == nil { // else nobody can run it either
		w.disarm(f, path)
		f.Close()
	}
}

// leaveOut notes a name that is in no tree, and goes on into a folder.
func (w *walker) leaveOut(ctx context.Context, fd int, f *folder, e *name, path string, n *node, subs map[int]*pending) error {
	if !w.Sweep {
		return nil
	}
	control := f.control
	if control == "" {
		control = steers(e.plain(), e.dir())
	}
	switch {
	case strings.EqualFold(e.plain(), ".git"):
		control = ""
		w.mark(path, "a nested repository", true, touched(fd, e.plain(), e.plain()+"/config", e.plain()+"/hooks"))
	case control != "" && !e.dir():
		w.mark(path, control, Runs(control) || e.exec(), touched(fd, e.plain()))
	}
	if e.dir() && f.depth >= w.MaxDepth {
		return w.deep(ctx, fd, e, path)
	}
	if e.dir() {
		below := folder{path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: true, control: control}
		return w.descend(ctx, fd, e, below, n, subs)
	}
	w.disarmAt(fd, path, e)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Ignored.Add(path, e.stat.Size)
	return nil
}

// deep clears what lies too deep to be listed: it may be nested beyond the number
// of descriptors.
func (w *walker) deep(ctx context.Context, fd int, e *name, path string) error {
	return hostfs.WalkAt(fd, e.plain(), func(in hostfs.Entry) error {
		if err := w.count(ctx, 1); err != nil {
			return err
		}
		n := name{key: in.Name, stat: in.Stat}
		below := path + "/…/" + in.Name
		if !w.clear(in.Dir, below, &n) {
			w.disarmAt(in.Dir, below, &n)
		}
		return nil
	})
}

// tally counts things found, so that many that do not run hide none that does.
type tally struct{ runs, other int }

// room says whether one more is kept: one beyond what can be named tells of the rest.
func (t *tally) room(runs bool) bool {
	n := &t.other
	if runs {
		n = &t.runs
	}
	*n++
	return *n <= state.MaxThings+1
}

func (w *walker) found(path, what string, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clears.room(runs) {
		w.result.Cleared = append(w.result.Cleared, state.Thing{Path: path, What: what, Runs: runs})
	}
}

// Mark is something that steers a person's tools and is in no tree: an ignored
// control file, or a repository within the workspace.
type Mark struct {
	state.Thing
	State string // changes when the thing does
}

func (w *walker) mark(path, what string, runs bool, changed string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marked.room(runs) {
		w.result.Marks = append(w.result.Marks, Mark{state.Thing{Path: path, What: what, Runs: runs}, changed})
	}
}

// markBare notes a folder that git takes for a repository without a work tree,
// with a config of its own.
func (w *walker) markBare(f *folder, names []name) {
	if !w.Sweep || f.path == "" {
		return
	}
	for _, part := range []string{"HEAD", "objects/", "refs/"} {
		if _, there := find(names, part); !there {
			return
		}
	}
	if base := strings.TrimSuffix(f.path, "/"); !strings.EqualFold(base[strings.LastIndexByte(base, '/')+1:], ".git") {
		w.mark(f.path, "a bare repository", true, "")
	}
}

// touched sums up when some names in a folder were changed last.
func touched(fd int, names ...string) string {
	h := sha256.New()
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			fmt.Fprintln(h, st.Ino, st.Size, st.Ctim, st.Mtim, st.Mode)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
