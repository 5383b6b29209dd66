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
type name struct {
	base string
	stat unix.Stat_t
}

func (n *name) format() uint32 { return uint32(n.stat.Mode) & unix.S_IFMT }
func (n *name) dir() bool      { return n.format() == unix.S_IFDIR }
func (n *name) link() bool     { return n.format() == unix.S_IFLNK }
func (n *name) regular() bool  { return n.format() == unix.S_IFREG }
func (n *name) exec() bool     { return n.stat.Mode&0o100 != 0 }

// kinds are what no tree can hold.
var kinds = map[uint32]string{
	unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket", unix.S_IFCHR: "a character device", unix.S_IFBLK: "a block device",
}

// special is which of them a name is, "" for a file, a folder or a link.
func (n *name) special() string { return kinds[n.format()] }

// folder walks an open folder, which it closes.
func (w *walker) folder(d *os.File, f folder) error {
	defer d.Close()
	names, err := w.list(d)
	if err != nil {
		return err
	}
	fd := int(d.Fd())
	if !f.ignored {
		f.rules = w.readRules(fd, &f, names)
	}
	w.markBare(&f, names)
	for i := range names {
		if err := w.name(fd, &f, &names[i]); err != nil {
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
			names = append(names, name{base: base})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a folder: %w", err)
		}
	}
	fd := int(d.Fd())
	var looks sync.WaitGroup
	for some := range slices.Chunk(names, 50) {
		looks.Go(func() {
			for i := range some {
				n := &some[i]
				if unix.Fstatat(fd, n.base, &n.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
					n.base = "" // it has just gone
				}
			}
		})
	}
	looks.Wait()
	return slices.DeleteFunc(names, func(n name) bool { return n.base == "" }), nil
}

// name decides about one name.
func (w *walker) name(fd int, f *folder, n *name) error {
	path := f.path + n.base
	if path == ".git" || w.clear(fd, path, n) {
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
		return w.leaveOut(fd, f, n, path)
	case n.dir():
		return w.descend(fd, n, folder{path: path + "/", depth: f.depth + 1, rules: f.rules, ignored: ignored})
	}
	return w.file(fd, path, n, was)
}

func (w *walker) descend(fd int, n *name, f folder) error {
	d, err := openFolder(fd, n.base)
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
	if strings.EqualFold(n.base, ".git") {
		return "a nested repository: its files are taken, its history is not"
	}
	if len(path) > maxPath {
		return "the path is too long"
	}
	fresh := was == nil || was.Mode != filemode.Symlink
	return cmp.Or(n.special(), refusedName(n.base, n.link() && fresh))
}

const (
	ignoreFile = ".gitignore"
	maxRules   = 1 << 20 // bytes of one ignore file
)

// readRules adds the folder's own ignore file to the rules. Like git it reads
// a regular file only, not one behind a link.
func (w *walker) readRules(fd int, f *folder, names []name) *ignore.Rules {
	i := slices.IndexFunc(names, func(n name) bool { return n.base == ignoreFile && n.regular() })
	if i < 0 {
		return f.rules
	}
	file, err := openRegular(fd, &names[i])
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
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // gone, or something else by now
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		w.skip(path, "it may not be read")
		return nil
	}
	return fmt.Errorf("cannot read %q: %w", path[:min(len(path), 200)], err)
}
