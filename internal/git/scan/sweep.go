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

// clear removes what no role needs. It reports whether the entry was removed. A directory keeps its
// setgid bit, which only sets the group of new files.
func (w *walker) clear(path string, n *name) (gone bool) {
	if !w.Sweep {
		return false
	}
	if rights := n.rights(); rights != 0 {
		// No other user can write here, so no one can replace the entry.
		err := unix.Fchmodat(n.Dir, n.Name, uint32(n.Stat.Mode)&0o7777|rights, 0)
		w.cleared(path, "not accessible to its owner, ", "made accessible", err, false)
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

// shut removes access control lists, which new files would inherit, and the write permission of
// other users.
func (w *walker) shut(path string, n *name) {
	const group, others = 0o020, 0o002
	if !n.dir() && !n.regular() {
		return
	}
	had, err := n.DropACLs()
	open := uint32(others)
	if had || err != nil {
		w.cleared(path, "an access control list, ", "removed", err, false)
		open |= group // without the list, the bits of its mask apply to the group
	}
	if uint32(n.Stat.Mode)&open != 0 {
		w.cleared(path, "write permission for others, ", "cleared", n.Clear(open), false)
	}
}

// cleared records what was done to an entry, or why that failed.
func (w *walker) cleared(path, what, done string, err error, runs bool) {
	if err != nil {
		done = fmt.Sprintf("which cannot be %s: %v", done, err)
	}
	if w.room("cleared", runs) {
		w.result.Cleared = append(w.result.Cleared, state.Thing{Path: path, What: what + done, Runs: runs})
	}
}

// room reports whether another finding of this type fits the list. Findings that run something have
// a separate limit, so that others cannot crowd them out. One more than the limit shows that there
// are more.
func (w *walker) room(kind string, runs bool) bool {
	kind = fmt.Sprint(kind, runs)
	w.findings[kind]++
	return w.findings[kind] <= state.MaxThings+1
}

// rights returns the permissions to restore if the owner cannot read the entry, 0 if none are
// missing.
func (n *name) rights() uint32 {
	switch mode := uint32(n.Stat.Mode); {
	case n.dir() && mode&0o500 != 0o500:
		return 0o700
	case n.regular() && mode&0o400 == 0:
		return 0o600
	}
	return 0
}

// leaveOut records an entry that is not committed and descends into a directory.
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
	case n.dir() && f.depth >= maxDepth:
		return w.deep(n, path)
	case n.dir():
		return w.descend(n, folder{
			path:    path + "/",
			depth:   f.depth + 1,
			ignored: true,
			control: control,
		})
	}
	w.result.Ignored.Add(path, n.Stat.Size)
	return nil
}

// deep clears everything below a directory at maxDepth, which may be nested deeper than the limit
// of descriptors.
func (w *walker) deep(n *name, path string) error {
	return hostfs.WalkAt(n.Dir, n.Name, "", func(in hostfs.Entry) error {
		w.clear(path+"/…/"+in.Name, &name{in})
		return w.count(1)
	})
}

// Mark is an uncommitted entry that steers a tool of the user: an ignored control file, or a nested
// repository.
type Mark struct {
	state.Thing
	State string // changes with the entry
}

func (w *walker) mark(path, what string, runs bool, changed string) {
	if w.room("marked", runs) {
		w.result.Marks = append(w.result.Marks, Mark{state.Thing{Path: path, What: what, Runs: runs}, changed})
	}
}

// markBare records a directory that git treats as a bare repository with its own config.
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

// touched returns a hash of the status of some entries of a directory.
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
