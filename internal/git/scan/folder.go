package scan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

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

// list is what is in a folder. Names are looked at some at a time on all processors,
// which is most of the time of a walk in which little has changed.
func (w *walker) list(d *os.File) (names []name, err error) {
	for {
		some, err := d.Readdirnames(1024)
		if err := w.count(len(some)); err != nil {
			return nil, err
		}
		for _, base := range some {
			names = append(names, name{hostfs.Entry{Dir: int(d.Fd()), Name: base}})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a folder: %w", err)
		}
	}
	var looks sync.WaitGroup
	for some := range slices.Chunk(names, 50) {
		looks.Go(func() {
			for i := range some {
				if some[i].Look() != nil {
					some[i].Name = "" // it has just gone
				}
			}
		})
	}
	looks.Wait()
	return slices.DeleteFunc(names, func(n name) bool { return n.Name == "" }), nil
}

// name decides about one name.
func (w *walker) name(f *folder, n *name) error {
	path := f.path + n.Name
	if path == ".git" || w.clear(path, n) {
		return nil
	}
	was := w.tracked(path, n.dir())
	ignored := f.ignored || (n.dir() || was == nil) && f.rules.Ignored(path, n.dir())
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
	switch {
	case out || why != "":
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
