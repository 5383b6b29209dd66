package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"abl/internal/git/ignore"

	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// folder is one directory on the way.
type folder struct {
	path    string // with a trailing slash; "" is the root
	depth   int
	rules   *ignore.Rules
	ignored bool           // only tracked names below it count
	control string         // what the files in it steer, "" for nothing
	known   []*index.Entry // what is tracked below it
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
	n := &node{}
	subs := map[int]*pending{}
	for i := range names {
		if err := w.name(ctx, fd, &f, &names[i], f.take(names[i].key), n, subs); err != nil {
			waitAll(subs) // their errors come second
			return nil, err
		}
	}
	return n, w.gather(n, subs, &f)
}

// take cuts from what is known the entries that belong to the key, and those
// before it, which have gone from the disk.
func (f *folder) take(key string) []*index.Entry {
	for len(f.known) > 0 {
		rel := f.known[0].Name[len(f.path):]
		if i := strings.IndexByte(rel, '/'); i >= 0 {
			rel = rel[:i+1]
		}
		if rel > key {
			break
		}
		count := 1
		if strings.HasSuffix(rel, "/") {
			prefix := f.path + rel
			count = sort.Search(len(f.known), func(i int) bool { return !strings.HasPrefix(f.known[i].Name, prefix) })
		}
		group := f.known[:count]
		f.known = f.known[count:]
		if rel == key {
			return group
		}
	}
	return nil
}

// name decides about one name and adds it to the node.
func (w *walker) name(ctx context.Context, fd int, f *folder, e *name, known []*index.Entry, n *node, subs map[int]*pending) error {
	if f.path == "" && e.plain() == ".git" {
		return nil
	}
	path := f.path + e.plain()
	if w.clear(fd, path, e) {
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
		w.skip(path, why)
		return w.leaveOut(ctx, fd, f, e, path, n, subs)
	}
	if !e.dir() {
		entry, err := w.file(ctx, fd, path, e, known)
		if entry != nil {
			n.items = append(n.items, item{key: e.key, entry: entry})
		}
		return err
	}
	below := folder{path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: ignored, known: known}
	return w.descend(ctx, fd, e, below, n, subs)
}

// maxPath is what the kernel takes, and so git.
const maxPath = 4095

// refuse says why a name is left out. A link that git dislikes but tracks
// already stays: the person put it there.
func refuse(path string, e *name, known []*index.Entry) string {
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
	return refusedName(base, e.link() && !tracked(known, modeLink))
}

const (
	ignoreFile = ".gitignore"
	maxRules   = 1 << 20 // bytes of one ignore file
)

// readRules adds the folder's own ignore file to the rules. Like git it reads
// a regular file only, not one behind a link.
func (w *walker) readRules(fd int, f *folder, names []name) *ignore.Rules {
	i, found := find(names, ignoreFile)
	if !found || !names[i].regular() {
		return f.rules
	}
	path := f.path + ignoreFile
	if names[i].stat.Size > maxRules {
		w.skip(path, "its rules are not applied: it is larger than 1 MiB")
		return f.rules
	}
	file, err := openRegular(fd, &names[i])
	if err == nil {
		defer file.Close()
		var data []byte
		if data, err = readExactly(file, names[i].stat.Size); err == nil {
			return f.rules.Below(f.path, data)
		}
	}
	w.skip(path, "its rules are not applied: it cannot be read")
	return f.rules
}

// pending is a folder that another goroutine may be walking.
type pending struct {
	node *node
	err  error
	done chan struct{}
}

// descend walks a folder below, in a goroutine of its own when one is free.
func (w *walker) descend(ctx context.Context, fd int, e *name, f folder, n *node, subs map[int]*pending) error {
	p := &pending{node: &node{}, done: make(chan struct{})}
	subs[len(n.items)] = p
	n.items = append(n.items, item{key: e.key})
	sub, err := unix.Openat(fd, e.plain(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		close(p.done)
		return w.unreadable(f.path, err)
	}
	walk := func() {
		defer unix.Close(sub)
		defer close(p.done)
		p.node, p.err = w.folder(ctx, sub, f)
	}
	select {
	case w.slots <- struct{}{}:
		go func() {
			defer func() { <-w.slots }()
			walk()
		}()
	default:
		walk()
		return p.err
	}
	return nil
}

func waitAll(subs map[int]*pending) (err error) {
	for _, p := range subs {
		<-p.done
		err = cmp.Or(p.err, err)
	}
	return err
}

// unreadable passes over what has gone meanwhile, lists what may not be read,
// and fails on anything else.
func (w *walker) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // gone, or something else by now
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		w.skip(path, "it may not be read")
		return nil
	}
	return fmt.Errorf("cannot read %q: %w", path[:min(len(path), 200)], err)
}

func find(names []name, key string) (int, bool) {
	return slices.BinarySearchFunc(names, key, func(n name, key string) int { return strings.Compare(n.key, key) })
}
