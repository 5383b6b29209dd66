// Package scan walks a work tree that an agent has written and determines what git would commit.
//
// It opens only directories and regular files, each relative to its parent. So it follows no links,
// stays in the directory and never blocks. It does not access the repository: the caller passes the
// tracked entries and receives the new objects.
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

// ErrTooLarge means that a tree exceeds the limits of a walk.
var ErrTooLarge = errors.New("the tree is too large")

// Options describe a walk.
type Options struct {
	Root    string
	Known   []*index.Entry // tracked entries in git's order
	Written time.Time      // time of the index; zero trusts no entry
	Reread  bool           // read every file: no entry is trusted
	Names   bool           // read no file: new entries have no hash
	Read    *Result        // earlier result of this process, or nil; its unchanged files are not read again
	Exclude []byte         // content of info/exclude
	NoExec  bool           // ignore the executable bit (core.fileMode=false)

	// Sweep removes what no role needs, and also walks ignored files. No container that could
	// change the files may run.
	Sweep bool

	// Put stores the content of a new file. It returns hostfs.ErrChanged if the content does not
	// match size and hash. Without Put the content is only hashed.
	Put func(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error

	// SizeOf returns the size of a tracked object. It is called for files larger than MaxFile.
	SizeOf func(plumbing.Hash) (int64, error)

	MaxFile int64
}

const (
	maxDepth = 256       // of directories whose files are committed
	maxNames = 2_000_000 // in a walk
)

// Skipped is a path that was left out, with the reason.
type Skipped struct{ Path, Why string }

// maxSkipped is the maximum number of listed skipped paths.
const maxSkipped = 1000

// Result is the index after git add -A.
type Result struct {
	Entries []*index.Entry
	Skipped []Skipped
	Out     []string  // topmost directories that git ignores, or that ignore themselves
	Ignores []Skipped // topmost files and directories that git ignores, at most maxSkipped

	read []*index.Entry // files whose next change is certain to set another time

	// Only with Sweep:
	Cleared []state.Thing
	Marks   []Mark
	Ignored state.Ignored
}

// Walk walks the tree below o.Root.
func Walk(ctx context.Context, o Options) (*Result, error) {
	top, err := hostfs.OpenDir(unix.AT_FDCWD, o.Root)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", o.Root, err)
	}
	w := &walker{
		Options:  o,
		ctx:      ctx,
		settled:  time.Now().Add(-tick),
		findings: map[string]int{},
	}
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
	ctx      context.Context
	settled  time.Time // later changes may be followed by another one within the same tick
	met      int
	findings map[string]int // number of findings by type
	result   Result
}

func (w *walker) skip(path, why string) {
	if len(w.result.Skipped) < maxSkipped {
		w.result.Skipped = append(w.result.Skipped, Skipped{path, why})
	}
}

// count fails if the walk has seen too many names or ctx is done.
func (w *walker) count(names int) error {
	if w.met += names; w.met > maxNames {
		return fmt.Errorf("cannot walk %q: more than %d names: %w", w.Root, maxNames, ErrTooLarge)
	}
	return w.ctx.Err()
}

// tracked returns the tracked entry of a file, or the first one below a directory, or nil.
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

// entryAt returns the entry with a path from sorted entries, nil if there is no such entry.
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
	ignored bool   // only tracked files below it count
	control string // description of what its files steer, or ""
}

// name is one name in a folder.
type name struct{ hostfs.Entry }

func (n *name) dir() bool     { return n.Kind() == unix.S_IFDIR }
func (n *name) link() bool    { return n.Kind() == unix.S_IFLNK }
func (n *name) regular() bool { return n.Kind() == unix.S_IFREG }
func (n *name) exec() bool    { return n.Stat.Mode&0o100 != 0 }

// special describes an entry that git cannot store, "" for a file, a directory or a link.
func (n *name) special() string {
	if n.dir() || n.link() || n.regular() {
		return ""
	}
	return n.What()
}

// folder walks an open directory and closes it.
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

// list returns the entries of a directory.
func (w *walker) list(d *os.File) (names []name, err error) {
	for {
		some, err := d.Readdirnames(1024)
		if err := w.count(len(some)); err != nil {
			return nil, err
		}
		for _, base := range some {
			n := name{hostfs.Entry{Dir: int(d.Fd()), Name: base}}
			if n.Look() == nil { // an error means that it was removed
				names = append(names, n)
			}
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a directory: %w", err)
		}
	}
}

// name handles one entry.
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
	if n.dir() && f.depth >= maxDepth {
		tooDeep = fmt.Sprintf("deeper than %d directories", maxDepth)
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
		// directories of some tools contain one that ignores everything
		if out && !f.ignored && (n.dir() || n.Name == ignoreFile) {
			w.result.Out = append(w.result.Out, strings.TrimSuffix(path, "/"+ignoreFile))
		}
		return w.leaveOut(f, n, path)
	case n.dir():
		return w.descend(n, folder{
			path:    path + "/",
			depth:   f.depth + 1,
			rules:   f.rules,
			ignored: ignored,
		})
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

// maxPath is the maximum path length of the kernel and so of git.
const maxPath = 4095

// refuse returns why an entry is left out, "" if it is not. A tracked link that git dislikes stays,
// because the user added it.
func refuse(path string, n *name, was *index.Entry) string {
	if strings.EqualFold(n.Name, ".git") {
		return "a nested repository: its files are committed, but not its history"
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

// readRules adds the rules of the directory's own ignore file. Like git it reads only a regular
// file.
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
	w.skip(f.path+ignoreFile, "rules not applied: the file cannot be read, or is larger than 1 MiB")
	return f.rules
}

// unreadable ignores entries that disappeared, lists those that may not be read, and returns any
// other error.
func (w *walker) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, hostfs.ErrAbsent), errors.Is(err, hostfs.ErrNotRegular):
		return nil // removed or replaced
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		w.skip(path, "no permission to read it")
		return nil
	}
	return fmt.Errorf("cannot read %q: %w", path[:min(len(path), 200)], err)
}

// attempts is how often a changing file is read.
const attempts = 3

// refusal is the reason why the content of a file is left out.
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
		err = refusal("changing too fast to be read")
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
		e.Size = 0 // makes git and the next walk read the file again
	}
	if settled(e.CreatedAt, begun.Add(-tick)) {
		w.result.read = append(w.result.read, e)
	}
	w.result.Entries = append(w.result.Entries, e)
	return nil
}

// mode returns the mode of an entry. On a disk without the executable bit, it is the committed one.
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

// lookAgain updates the status of a changed file. It returns false if it is of another type now.
func lookAgain(n *name, e *index.Entry) bool {
	mode := n.Stat.Mode
	if n.Look() != nil {
		return false
	}
	setStat(e, &n.Stat)
	return n.Stat.Mode == mode
}

// refuseSize rejects a file larger than MaxFile, unless it has the size of the tracked one and so
// may be unchanged.
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
		return w.store(n, e, was, int64(size), bytes.NewReader(target[:size]))
	}
	f, err := n.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.refuseSize(n, was); err != nil {
		return err
	}
	return w.store(n, e, was, n.Stat.Size, f)
}

// store sets the hash of the content, and passes new content to Put. It reads the content twice, so
// that its size does not matter.
func (w *walker) store(n *name, e, was *index.Entry, size int64, r io.ReadSeeker) error {
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
