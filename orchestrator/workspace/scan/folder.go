package scan

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitname"
)

// node is what a folder came to.
type node struct {
	left    Ignored // files in it that are left out
	items   []item
	entries int  // in it and below it
	same    bool // content and modes are what the index says, nothing more, nothing less
	hash    gitindex.Hash
}

// item is a file (entry) or a folder (sub) in a node; key orders it.
type item struct {
	key   string
	entry *gitindex.Entry
	sub   *node
}

func (w *walker) folder(ctx context.Context, fd int, f folder) (*node, error) {
	names, err := w.readNames(ctx, fd)
	if err != nil {
		return nil, err
	}
	if !f.ignored {
		f.rules = w.readRules(fd, &f, names)
	}
	w.markBare(&f, names)
	n := &node{same: true}
	subs := map[int]*pending{}
	for i := range names {
		known, gone := f.take(names[i].key)
		n.same = n.same && !gone
		if err := w.name(ctx, fd, &f, &names[i], known, n, subs); err != nil {
			waitAll(subs) // their errors come second
			return nil, err
		}
	}
	w.keepIgnored(n)
	n.same = n.same && len(f.known) == 0
	return n, w.gather(n, subs, &f)
}

// take cuts from what is known the entries that belong to the key, and says
// whether entries before it have gone from the disk.
func (f *folder) take(key string) (mine []gitindex.Entry, gone bool) {
	for len(f.known) > 0 {
		rel := f.known[0].Path[len(f.path):]
		if i := strings.IndexByte(rel, '/'); i >= 0 {
			rel = rel[:i+1]
		}
		if rel > key {
			break
		}
		count := 1
		if strings.HasSuffix(rel, "/") {
			count = f.below(len(f.path) + len(rel))
		}
		group := f.known[:count]
		f.known = f.known[count:]
		if rel == key {
			return group, gone
		}
		gone = true
	}
	return nil, gone
}

// below counts the known entries that share the first one's first n bytes.
func (f *folder) below(n int) int {
	prefix := f.known[0].Path[:n]
	lo, hi := 1, len(f.known)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if strings.HasPrefix(f.known[mid].Path, prefix) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// name decides about one name and adds it to the node.
func (w *walker) name(ctx context.Context, fd int, f *folder, e *name, known []gitindex.Entry, n *node, subs map[int]*pending) error {
	if f.path == "" && e.plain() == ".git" {
		return nil
	}
	path := f.pathOf(e, known)
	if w.clear(fd, path, e) {
		n.same = n.same && len(known) == 0
		return nil
	}
	ignored := f.ignored || (e.dir() || len(known) == 0) && f.rules.Ignored(path, e.dir())
	tooDeep := ""
	if e.dir() && f.depth >= w.MaxDepth {
		tooDeep = fmt.Sprintf("it lies deeper than %d folders", w.MaxDepth)
	}
	if ignored && len(known) == 0 {
		if tooDeep != "" && w.Sweep {
			w.skip(path, tooDeep)
		}
		return w.leaveOut(ctx, fd, f, e, path, n, subs)
	}
	if why := cmp.Or(refuse(path, e, known), tooDeep); why != "" {
		n.same = n.same && len(known) == 0
		w.skip(path, why)
		return w.leaveOut(ctx, fd, f, e, path, n, subs)
	}
	if !e.dir() {
		entry, err := w.file(ctx, fd, path, e, known)
		n.add(e.key, entry, known)
		return err
	}
	below := folder{
		path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: ignored,
		known: known, cached: f.cached.Sub(e.plain()),
	}
	n.items = append(n.items, item{key: e.key})
	return w.descend(ctx, fd, e, below, subs, len(n.items)-1)
}

// pathOf spares most files, which are tracked, a string of their own.
func (f *folder) pathOf(e *name, known []gitindex.Entry) string {
	if len(known) > 0 && !e.dir() {
		return known[0].Path
	}
	return f.path + e.plain()
}

// add puts a file's entry into the node; nil when the file is left out.
func (n *node) add(key string, entry *gitindex.Entry, known []gitindex.Entry) {
	if entry == nil {
		n.same = n.same && len(known) == 0
		return
	}
	n.items = append(n.items, item{key: key, entry: entry})
	n.entries++
	n.same = n.same && len(known) == 1 && !known[0].IntentToAdd &&
		known[0].Hash == entry.Hash && known[0].Mode == entry.Mode
}

// maxPath is what the kernel takes, and so git.
const maxPath = 4095

// refuse says why a name is left out. A link that git dislikes but tracks
// already stays: the person put it there.
func refuse(path string, e *name, known []gitindex.Entry) string {
	base := e.plain()
	if strings.EqualFold(base, ".git") {
		return "a nested repository: its files are taken, its history is not"
	}
	if len(path) > maxPath {
		return "the path is too long"
	}
	if e.special() {
		return e.kind()
	}
	tracked := len(known) == 1 && known[0].Mode == gitindex.ModeLink
	return gitname.Refused(base, e.link() && !tracked)
}

func clip(path string) string { return path[:min(len(path), 200)] }
