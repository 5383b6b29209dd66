package scan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/state"

	"golang.org/x/sys/unix"
)

// rightsBits make a program run as its owner or group. No container of a role's can
// give a file capabilities.
const rightsBits = unix.S_ISUID | unix.S_ISGID

// clear takes away what no role needs, and says whether the name has gone with
// it. A folder keeps its setgid bit: it hands the group on, and no right.
func (w *walker) clear(fd int, path string, n *name) (gone bool) {
	if !w.Sweep {
		return false
	}
	if rights := n.rights(); rights != 0 {
		// Below a folder that nobody else can write there is nothing to be exchanged.
		err := unix.Fchmodat(fd, n.base, uint32(n.stat.Mode)&0o7777|rights, 0)
		w.cleared(path, "shut to its owner, ", "opened", err, false)
		if err != nil || unix.Fstatat(fd, n.base, &n.stat, unix.AT_SYMLINK_NOFOLLOW) != nil || n.rights() != 0 {
			return false
		}
	}
	if what := n.special(); what != "" {
		err := unix.Unlinkat(fd, n.base, 0)
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
		w.cleared(path, what+", ", "removed", err, err != nil)
		return err == nil
	}
	if n.regular() && n.stat.Mode&rightsBits != 0 {
		w.cleared(path, "a setuid or setgid bit, ", "cleared", dropBits(fd, n), true)
	}
	return false
}

// cleared notes what was done about a name, or why it could not be.
func (w *walker) cleared(path, what, done string, err error, runs bool) {
	if err != nil {
		done = fmt.Sprintf("which cannot be %s: %v", done, err)
	}
	if w.room("cleared", runs) {
		w.result.Cleared = append(w.result.Cleared, state.Thing{Path: path, What: what + done, Runs: runs})
	}
}

// room says whether one more of a kind is kept, so that many that do not run hide
// none that does: one beyond what can be named tells of the rest.
func (w *walker) room(kind string, runs bool) bool {
	kind = fmt.Sprint(kind, runs)
	w.told[kind]++
	return w.told[kind] <= state.MaxThings+1
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
func dropBits(fd int, n *name) error {
	f, err := openRegular(fd, n)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fchmod(int(f.Fd()), uint32(n.stat.Mode)&0o7777&^rightsBits); err != nil {
		return err
	}
	return unix.Fstat(int(f.Fd()), &n.stat)
}

// leaveOut notes a name that is in no tree, and goes on into a folder.
func (w *walker) leaveOut(fd int, f *folder, n *name, path string) error {
	if !w.Sweep {
		return nil
	}
	control := f.control
	if control == "" {
		control = steers(n.base, n.dir())
	}
	switch {
	case strings.EqualFold(n.base, ".git"):
		control = ""
		w.mark(path, "a nested repository", true, touched(fd, n.base, n.base+"/config", n.base+"/hooks"))
	case control != "" && !n.dir():
		w.mark(path, control, Runs(control) || n.exec(), touched(fd, n.base))
	}
	switch {
	case n.dir() && f.depth >= w.MaxDepth:
		return w.deep(fd, n, path)
	case n.dir():
		return w.descend(fd, n, folder{path: path + "/", depth: f.depth + 1, ignored: true, control: control})
	}
	w.result.Ignored.Add(path, n.stat.Size)
	return nil
}

// deep clears what lies too deep to be listed: it may be nested beyond the number
// of descriptors.
func (w *walker) deep(fd int, n *name, path string) error {
	return hostfs.WalkAt(fd, n.base, func(in hostfs.Entry) error {
		w.clear(in.Dir, path+"/…/"+in.Name, &name{in.Name, in.Stat})
		return w.count(1)
	})
}

// Mark is something that steers a person's tools and is in no tree: an ignored
// control file, or a repository within the workspace.
type Mark struct {
	state.Thing
	State string // changes when the thing does
}

func (w *walker) mark(path, what string, runs bool, changed string) {
	if w.room("marked", runs) {
		w.result.Marks = append(w.result.Marks, Mark{state.Thing{Path: path, What: what, Runs: runs}, changed})
	}
}

// markBare notes a folder that git takes for a repository without a work tree,
// with a config of its own.
func (w *walker) markBare(f *folder, names []name) {
	if !w.Sweep || f.path == "" || strings.HasSuffix(strings.ToLower("/"+f.path), "/.git/") {
		return
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if !slices.ContainsFunc(names, func(n name) bool { return n.base == part && n.dir() == (part != "HEAD") }) {
			return
		}
	}
	w.mark(f.path, "a bare repository", true, "")
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
