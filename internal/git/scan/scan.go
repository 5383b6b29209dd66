// Package scan walks a work tree that an agent has written and says what git
// would commit of it. It opens folders and regular files only, one name at a
// time from the folder above, so it follows no link, never leaves the
// directory, and hangs on nothing that was put there. It knows no repository:
// what is tracked it is told, and what is new it hands on.
package scan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// ErrTooLarge marks a tree beyond the limits of a walk.
var ErrTooLarge = errors.New("the tree is too large")

// Options say what to walk and how far.
type Options struct {
	Root    string
	Known   []*index.Entry // what is tracked, in git's order
	Written time.Time      // when the index was written; zero trusts no entry
	Reread  bool           // read every file: no entry is trusted
	Names   bool           // read no file: the entries have no hash
	Read    *Result        // of an earlier walk of this process, nil for none: what it has read of tracked files is not read again
	Exclude []byte         // the repository's info/exclude
	NoExec  bool           // the executable bit means nothing here (core.fileMode=false)

	// Sweep takes away what no role needs and walks what is left out of the tree
	// too. No container that could race it may run.
	Sweep bool

	// Put takes the content of a file that is new, of size bytes and with this hash,
	// else it is hostfs.ErrChanged. Without Put content is hashed and not kept.
	Put func(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error

	// SizeOf is asked for the size of a tracked object when a file is beyond MaxFile.
	SizeOf func(plumbing.Hash) (int64, error)

	MaxFile              int64
	MaxDepth, MaxEntries int
}

// Skipped is a path that was left out.
type Skipped struct{ Path, Why string }

// maxSkipped is how many skipped paths are named.
const maxSkipped = 1000

// Result is what git would have in its index after git add -A.
type Result struct {
	Entries []*index.Entry
	Skipped []Skipped
	Out     []string  // folders that git ignores, or that ignore themselves, without those in them
	Ignores []Skipped // the uppermost files and folders that git ignores, at most maxSkipped

	read []*index.Entry // files that were read so long after a change that the next one sets another time

	// With Sweep alone.
	Cleared []state.Thing
	Marks   []Mark
	Ignored state.Ignored
}

// Walk reads the tree below o.Root.
func Walk(ctx context.Context, o Options) (*Result, error) {
	top, err := hostfs.OpenDir(unix.AT_FDCWD, o.Root)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", o.Root, err)
	}
	w := &walker{Options: o, ctx: ctx, settled: time.Now().Add(-tick), told: map[string]int{}}
	if root := (&name{hostfs.Entry{Dir: unix.AT_FDCWD, Name: o.Root}}); o.Sweep && root.Look() == nil {
		w.shut(".", root)
	}
	if err := w.folder(top, folder{rules: ignore.Exclude(o.Exclude)}); err != nil {
		return nil, err
	}
	r := &w.result
	for _, all := range [][]*index.Entry{r.Entries, r.read} {
		slices.SortFunc(all, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, all := range [][]Skipped{r.Skipped, r.Ignores} {
		slices.SortFunc(all, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	}
	r.Cleared = state.InOrder(r.Cleared)
	r.Ignored.Finish()
	return r, nil
}

type walker struct {
	Options
	ctx     context.Context
	settled time.Time // files changed since may change again within one tick
	met     int
	told    map[string]int // how many things of a kind were found
	result  Result
}

func (w *walker) skip(path, why string) {
	if len(w.result.Skipped) < maxSkipped {
		w.result.Skipped = append(w.result.Skipped, Skipped{path, why})
	}
}

// count fails when the walk has met too much, or is no longer wanted.
func (w *walker) count(names int) error {
	if w.met += names; w.met > w.MaxEntries {
		return fmt.Errorf("cannot walk %q: more than %d names: %w", w.Root, w.MaxEntries, ErrTooLarge)
	}
	return w.ctx.Err()
}

// tracked is the index's entry of a file, or the first one below a folder, nil for none.
func (w *walker) tracked(path string, folder bool) *index.Entry {
	if !folder {
		return entryAt(w.Known, path)
	}
	path += "/"
	i, _ := slices.BinarySearchFunc(w.Known, path, byName)
	if i < len(w.Known) && strings.HasPrefix(w.Known[i].Name, path) {
		return w.Known[i]
	}
	return nil
}

func byName(e *index.Entry, name string) int { return strings.Compare(e.Name, name) }

// entryAt returns the one of sorted entries that has a path, nil for none.
func entryAt(entries []*index.Entry, path string) *index.Entry {
	if i, is := slices.BinarySearchFunc(entries, path, byName); is {
		return entries[i]
	}
	return nil
}

// folder is one directory on the way.
type folder struct {
	path    string // with a trailing slash; "" is the root
	depth   int
	rules   *ignore.Rules
	ignored bool   // only tracked names below it count
	control string // what the files in it steer, "" for nothing
}

// name is one name in a folder.
type name struct{ hostfs.Entry }

func (n *name) dir() bool     { return n.Kind() == unix.S_IFDIR }
func (n *name) link() bool    { return n.Kind() == unix.S_IFLNK }
func (n *name) regular() bool { return n.Kind() == unix.S_IFREG }
func (n *name) exec() bool    { return n.Stat.Mode&0o100 != 0 }

// special is what no tree can hold, "" for a file, a folder or a link.
func (n *name) special() string {
	if n.dir() || n.link() || n.regular() {
		return ""
	}
	return n.What()
}

// folder walks an open folder, which it closes.
func (w *walker) folder(d *os.File, f folder) error {
	defer d.Close()
	names, err := w.list(d)
	if err != nil {
		return err
	}
	if !f.ignored {
		f.rules = w.readRules(&f, names)
	}
	w.markBare(&f, names)
	for i := range names {
		if err := w.name(&f, &names[i]); err != nil {
			return err
		}
	}
	return nil
}

// list is what is in a folder.
func (w *walker) list(d *os.File) (names []name, err error) {
	for {
		some, err := d.Readdirnames(1024)
		if err := w.count(len(some)); err != nil {
			return nil, err
		}
		for _, base := range some {
			n := name{hostfs.Entry{Dir: int(d.Fd()), Name: base}}
			if n.Look() == nil { // else it has just gone
				names = append(names, n)
			}
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a folder: %w", err)
		}
	}
}

// name decides about one name.
func (w *walker) name(f *folder, n *name) error {
	path := f.path + n.Name
	if path == ".git" || w.clear(path, n) {
		return nil
	}
	was := w.tracked(path, n.dir())
	by := ""
	if !f.ignored && (n.dir() || was == nil) {
		by = f.rules.By(path, n.dir())
	}
	ignored := f.ignored || by != ""
	tooDeep := ""
	if n.dir() && f.depth >= w.MaxDepth {
		tooDeep = fmt.Sprintf("it lies deeper than %d folders", w.MaxDepth)
	}
	why := cmp.Or(refuse(path, n, was), tooDeep)
	out := ignored && was == nil
	if out {
		why = tooDeep
	}
	if why != "" && (w.Sweep || !out) {
		w.skip(path, why)
	}
	if out && by != "" && len(w.result.Ignores) < maxSkipped {
		w.result.Ignores = append(w.result.Ignores, Skipped{path, "ignored by " + by})
	}
	switch {
	case out || why != "":
		if out && !f.ignored && (n.dir() || n.Name == ignoreFile) { // by which a tool's folder ignores itself
			w.result.Out = append(w.result.Out, strings.TrimSuffix(path, "/"+ignoreFile))
		}
		return w.leaveOut(f, n, path)
	case n.dir():
		return w.descend(n, folder{path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: ignored})
	}
	return w.file(path, n, was)
}

func (w *walker) descend(n *name, f folder) error {
	d, err := hostfs.OpenDir(n.Dir, n.Name)
	if err != nil {
		return w.unreadable(f.path, err)
	}
	return w.folder(d, f)
}

// maxPath is what the kernel takes, and so git.
const maxPath = 4095

// refuse says why a name is left out. A link that git dislikes but tracks
// already stays: the person put it there.
func refuse(path string, n *name, was *index.Entry) string {
	if strings.EqualFold(n.Name, ".git") {
		return "a nested repository: its files are taken, its history is not"
	}
	if len(path) > maxPath {
		return "the path is too long"
	}
	fresh := was == nil || was.Mode != filemode.Symlink
	return cmp.Or(n.special(), refusedName(n.Name, n.link() && fresh))
}

const (
	ignoreFile = ".gitignore"
	maxRules   = 1 << 20 // bytes of one ignore file
)

// readRules adds the folder's own ignore file to the rules. Like git it reads
// a regular file only, not one behind a link.
func (w *walker) readRules(f *folder, names []name) *ignore.Rules {
	i := slices.IndexFunc(names, func(n name) bool { return n.Name == ignoreFile && n.regular() })
	if i < 0 {
		return f.rules
	}
	file, err := names[i].Open()
	if err == nil {
		defer file.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(file, maxRules+1)); err == nil && len(data) <= maxRules {
			return f.rules.Below(f.path, data)
		}
	}
	w.skip(f.path+ignoreFile, "its rules are not applied: it cannot be read, or is larger than 1 MiB")
	return f.rules
}

// unreadable passes over what has gone meanwhile, lists what may not be read,
// and fails on anything else.
func (w *walker) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, hostfs.ErrAbsent), errors.Is(err, hostfs.ErrNotRegular):
		return nil // gone, or something else by now
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		w.skip(path, "it may not be read")
		return nil
	}
	return fmt.Errorf("cannot read %q: %w", path[:min(len(path), 200)], err)
}

// attempts is how often a file that changes under the reader is read.
const attempts = 3

// refusal is why a file's content is left out.
type refusal string

func (r refusal) Error() string { return string(r) }

const tooLarge = refusal("larger than the limit for one file")

// file adds the entry of a file or a link, unless its content is refused.
func (w *walker) file(path string, n *name, was *index.Entry) error {
	e := &index.Entry{Name: path, Mode: w.mode(n, was)}
	setStat(e, &n.Stat)
	if was != nil && was.Mode != e.Mode {
		was = nil
	}
	if was != nil && fresh(was, e, w.Written) {
		w.result.Entries = append(w.result.Entries, was)
		return nil
	}
	if w.known(e, was) {
		w.result.read, w.result.Entries = append(w.result.read, e), append(w.result.Entries, e)
		return nil
	}
	if w.Names {
		if w.refuseSize(n, was) == nil && (was != nil || !isModules(n.Name)) {
			w.result.Entries = append(w.result.Entries, e)
		}
		return nil
	}
	begun := time.Now()
	err := w.read(n, e, was)
	for i := 1; i < attempts && errors.Is(err, hostfs.ErrChanged) && lookAgain(n, e); i++ {
		err = w.read(n, e, was)
	}
	if errors.Is(err, hostfs.ErrChanged) {
		err = refusal("it changes while it is read")
	}
	if why := refusal(""); errors.As(err, &why) {
		w.skip(path, why.Error())
		if what := SteersPath(path); what != "" && w.Sweep {
			w.mark(path, what, Runs(what) || n.exec(), touched(n.Dir, n.Name))
		}
		return nil
	}
	if err != nil {
		return w.unreadable(path, err)
	}
	if !settled(e.ModifiedAt, w.settled) {
		e.Size = 0 // so that git and the next walk read the file again
	}
	if settled(e.CreatedAt, begun.Add(-tick)) {
		w.result.read = append(w.result.read, e)
	}
	w.result.Entries = append(w.result.Entries, e)
	return nil
}

func (w *walker) mode(n *name, was *index.Entry) filemode.FileMode {
	switch {
	case n.link():
		return filemode.Symlink
	case w.NoExec && was != nil && was.Mode != filemode.Symlink:
		return was.Mode
	case n.exec() && !w.NoExec:
		return filemode.Executable
	}
	return filemode.Regular
}

// lookAgain takes a fresh look at a file that changed; false when it has
// become something else.
func lookAgain(n *name, e *index.Entry) bool {
	mode := n.Stat.Mode
	if n.Look() != nil {
		return false
	}
	setStat(e, &n.Stat)
	return n.Stat.Mode == mode
}

// refuseSize refuses a file beyond the limit for one file unless it may be what is tracked.
// Reading more than the limit can prove that.
func (w *walker) refuseSize(n *name, was *index.Entry) error {
	size := n.Stat.Size
	if !n.regular() || size <= w.MaxFile {
		return nil
	}
	if was != nil {
		if tracked, err := w.SizeOf(was.Hash); err == nil && tracked == size {
			return nil
		}
	}
	return tooLarge
}

func (w *walker) read(n *name, e, was *index.Entry) error {
	if n.link() {
		target := make([]byte, unix.PathMax)
		size, err := unix.Readlinkat(n.Dir, n.Name, target)
		if err != nil {
			return err
		}
		return w.keep(n, e, was, int64(size), bytes.NewReader(target[:size]))
	}
	f, err := n.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.refuseSize(n, was); err != nil {
		return err
	}
	return w.keep(n, e, was, n.Stat.Size, f)
}

// keep names content by its hash, and hands on what is new. It is read once for its
// name and once more to be kept, however large it is.
func (w *walker) keep(n *name, e, was *index.Entry, size int64, r io.ReadSeeker) error {
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	if n, err := io.Copy(hasher, io.LimitReader(r, size+1)); err != nil || n != size {
		return errors.Join(err, hostfs.ErrChanged)
	}
	e.Hash = hasher.Sum()
	if was != nil && was.Hash == e.Hash && !was.IntentToAdd {
		return nil
	}
	if size > w.MaxFile {
		return tooLarge
	}
	if n.regular() && isModules(n.Name) {
		return refusal("submodules are not supported")
	}
	if w.Put == nil {
		return nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.Put(plumbing.BlobObject, e.Hash, size, r)
}
