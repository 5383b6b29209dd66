package scan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace/gitindex"

	"golang.org/x/sys/unix"
)

// Ignored are the files of one folder that are in no tree.
type Ignored struct {
	Folder string // with a trailing slash; "" is the root
	Files  []IgnoredFile
}

// IgnoredFile is a regular file or a link. Stat and Mode change whenever its
// content does, unless Unsettled.
type IgnoredFile struct {
	Name      string
	Size      int64
	Mode      uint32
	Stat      gitindex.Stat
	Unsettled bool // it changed so lately that it may change again unseen
}

// Mark is something that steers a person's tools and is in no tree: an ignored
// control file, or a repository within the workspace.
type Mark struct {
	sweep.Thing
	Key string // changes when the thing does
}

// leaveOut notes a name that is in no tree, and goes on into a folder.
func (w *walker) leaveOut(ctx context.Context, fd int, f *folder, e *name, path string, n *node, subs map[int]*pending) error {
	if !w.Sweep {
		return nil
	}
	control := f.control
	if control == "" {
		control = Steers(e.plain(), e.dir())
	}
	switch {
	case strings.EqualFold(e.plain(), ".git"):
		control = ""
		w.mark(Mark{sweep.Thing{Path: path, What: "a nested repository", Runs: true}, key(fd, e.plain(), e.plain()+"/config", e.plain()+"/hooks")})
	case control != "" && !e.dir():
		w.mark(Mark{sweep.Thing{Path: path, What: control, Runs: Runs(control) || e.exec()}, key(fd, e.plain())})
	}
	if e.dir() && f.depth >= w.MaxDepth {
		return w.deep(ctx, fd, e, path)
	}
	if e.dir() {
		below := folder{path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: true, control: control}
		n.items = append(n.items, item{key: e.key})
		return w.descend(ctx, fd, e, below, subs, len(n.items)-1)
	}
	if !e.special() { // one that could not be removed
		file := IgnoredFile{Name: e.key, Size: e.stat.Size, Mode: uint32(e.stat.Mode), Stat: statOf(&e.stat)}
		file.Unsettled = !w.hasSettled(&file.Stat)
		n.left.Folder = f.path
		n.left.Files = append(n.left.Files, file)
	}
	return nil
}

func (w *walker) keepIgnored(n *node) {
	if len(n.left.Files) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ignored = append(w.ignored, n.left)
	n.left = Ignored{}
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
	return *n <= sweep.MaxThings+1
}

func (w *walker) mark(m Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marked.room(m.Runs) {
		w.marks = append(w.marks, m)
	}
}

// markBare notes a folder that git takes for a repository without a work tree,
// with a config of its own.
func (w *walker) markBare(f *folder, names []name) {
	if !w.Sweep || f.path == "" {
		return
	}
	for _, part := range []string{"HEAD", "objects/", "refs/"} {
		_, there := slices.BinarySearchFunc(names, part, func(n name, key string) int { return strings.Compare(n.key, key) })
		if !there {
			return
		}
	}
	if base := strings.TrimSuffix(f.path, "/"); !strings.EqualFold(base[strings.LastIndexByte(base, '/')+1:], ".git") {
		w.mark(Mark{Thing: sweep.Thing{Path: f.path, What: "a bare repository", Runs: true}})
	}
}

// key sums up when some names in a folder were changed last.
func key(fd int, names ...string) string {
	var b []byte
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			s := statOf(&st)
			for _, n := range []uint32{s.Ino, s.Size, s.CSec, s.CNsec, s.MSec, s.MNsec, uint32(st.Mode)} {
				b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
			}
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
