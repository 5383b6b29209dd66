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

// clear takes away what no role needs, and says whether the name has gone with
// it. A folder keeps its setgid bit: it hands the group on, and no right.
func (w *walker) clear(path string, n *name) (gone bool) {
	if !w.Sweep {
		return false
	}
	if rights := n.rights(); rights != 0 {
		// Below a folder that nobody else can write there is nothing to be exchanged.
		err := unix.Fchmodat(n.Dir, n.Name, uint32(n.Stat.Mode)&0o7777|rights, 0)
		w.cleared(path, "shut to its owner, ", "opened", err, false)
		if err != nil || n.Look() != nil || n.rights() != 0 {
			return false
		}
	}
	if what := n.special(); what != "" {
		err := unix.Unlinkat(n.Dir, n.Name, 0)
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
		w.cleared(path, what+", ", "removed", err, err != nil)
		return err == nil
	}
	if n.regular() && n.Armed() {
		w.cleared(path, "a setuid or setgid bit, ", "cleared", n.DropRights(), true)
	}
	w.shut(path, n)
	return false
}

// shut takes away what lets others on this machine write: access control lists, which would hand
// themselves on to new files in a folder, and the mode's own bit.
func (w *walker) shut(path string, n *name) {
	const group, others = 0o020, 0o002
	if !n.dir() && !n.regular() {
		return
	}
	had, err := n.DropACLs()
	open := uint32(others)
	if had || err != nil {
		w.cleared(path, "an access control list, ", "removed", err, false)
		open |= group // without the list the bits of its mask are the group's
	}
	if uint32(n.Stat.Mode)&open != 0 {
		w.cleared(path, "writable by others, ", "shut", n.Clear(open), false)
	}
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
	switch mode := uint32(n.Stat.Mode); {
	case n.dir() && mode&0o500 != 0o500:
		return 0o700
	case n.regular() && mode&0o400 == 0:
		return 0o600
	}
	return 0
}

// leaveOut notes a name that is in no tree, and goes on into a folder.
func (w *walker) leaveOut(f *folder, n *name, path string) error {
	if !w.Sweep {
		return nil
	}
	control := f.control
	if control == "" {
		control = steers(n.Name, n.dir())
	}
	switch {
	case strings.EqualFold(n.Name, ".git"):
		control = ""
		w.mark(path, "a nested repository", true, touched(n.Dir, n.Name, n.Name+"/config", n.Name+"/hooks"))
	case control != "" && !n.dir():
		w.mark(path, control, Runs(control) || n.exec(), touched(n.Dir, n.Name))
	}
	switch {
	case n.dir() && f.depth >= w.MaxDepth:
		return w.deep(n, path)
	case n.dir():
		return w.descend(n, folder{path: path + "/", depth: f.depth + 1, ignored: true, control: control})
	}
	w.result.Ignored.Add(path, n.Stat.Size)
	return nil
}

// deep clears what lies too deep to be listed: it may be nested beyond the number
// of descriptors.
func (w *walker) deep(n *name, path string) error {
	return hostfs.WalkAt(n.Dir, n.Name, func(in hostfs.Entry) error {
		w.clear(path+"/…/"+in.Name, &name{in})
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
		if !slices.ContainsFunc(names, func(n name) bool { return n.Name == part && n.dir() == (part != "HEAD") }) {
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
