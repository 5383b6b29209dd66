package git

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Origin is a person's repository, of which a workspace is a clone. It is read, and takes
// commits and refs below refs/heads/abl and refs/abl; its work tree, index, config and
// hooks are left alone, and nothing that they name is run.
type Origin struct {
	dir  string     // the work tree
	head gitdir.Dir // where HEAD stands: the .git of the work tree
	git  gitdir.Dir // where objects and refs are
	conf *config.Config
}

// OpenOrigin opens the repository whose work tree begins at dir.
func OpenOrigin(dir string) (*Origin, error) {
	head, err := folderOf(filepath.Join(dir, ".git"))
	o := &Origin{dir: dir, head: head, git: head}
	if common, cerr := hostfs.Read(head.Path, "commondir", maxSteering); err == nil && cerr == nil { // of several work trees
		o.git, err = folderOf(beside(head.Path, string(common)))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot adopt the repository %q: %w", dir, err)
	}
	config := o.git.Join("config")
	if o.conf, err = configOf(config); err == nil {
		err = readable(config, o.conf)
	}
	if err == nil {
		err = lenders(o.git.Join("objects"), new(int))
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// lenders refuses objects that are borrowed in a circle, or of more than a few: go-git would
// never end, for it reads those of each lender anew.
func lenders(objects string, read *int) error {
	const most = 64
	objects, err := filepath.EvalSymlinks(objects)
	if err != nil {
		return nil // nobody reads there
	}
	if *read++; *read > most {
		return gitdir.Foreign("objects are borrowed of more than %d repositories, or in a circle: git repack -a -d, and remove objects/info/alternates", most)
	}
	data, err := hostfs.Read(objects, "info/alternates", maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if name := strings.TrimSpace(line); err == nil && name != "" && name[0] != '#' {
			err = lenders(beside(objects, name), read)
		}
	}
	return err
}

// folderOf is a .git folder, or the one that a .git file names, as in a further work tree.
func folderOf(path string) (gitdir.Dir, error) {
	if data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxSteering); err == nil {
		to, is := strings.CutPrefix(string(data), "gitdir: ")
		if !is {
			return gitdir.Dir{}, gitdir.Foreign("%q is no .git of git's", path)
		}
		path = beside(filepath.Dir(path), to)
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = gitdir.Foreign("%q is no folder", path)
	}
	if err != nil {
		return gitdir.Dir{}, err
	}
	return gitdir.At(path, info), nil
}

// beside is the path that a file of git's in dir names.
func beside(dir, name string) string {
	if name = strings.TrimRight(name, "\r\n"); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// Around finds the work tree that dir is in, "" for none.
func Around(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// store reads the objects, those of alternates included.
func (o *Origin) store() *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(o.git.Path), cache.NewObjectLRUDefault(), filesystem.Options{AlternatesFS: osfs.New("/")})
}

// plain is s without its deltas where objects are borrowed: go-git finds none of those.
func (o *Origin) plain(s *filesystem.Storage) storer.EncodedObjectStorer {
	if o.borrows() {
		return struct{ storer.EncodedObjectStorer }{s}
	}
	return s
}

// borrows says whether some objects are another repository's.
func (o *Origin) borrows() bool {
	_, err := os.Lstat(o.git.Join("objects/info/alternates"))
	return err == nil
}

// Head is the branch and the commit on which the person stands; branch is "" where HEAD is
// detached, and commit before the first one.
func (o *Origin) Head() (branch, commit string, err error) {
	if branch, commit, err = o.head.Head(); err == nil && branch != "" {
		commit, err = o.git.Ref("refs/heads/" + branch)
	}
	return branch, commit, err
}

// Tip is the commit that a branch names, here or as it was last fetched from origin; "" for
// none.
func (o *Origin) Tip(branch string) (commit string, err error) {
	if !gitdir.ValidRef(branch) { // as where HEAD is detached
		return "", nil
	}
	for _, ref := range []string{"refs/heads/", "refs/remotes/origin/"} {
		if commit, err = o.git.Ref(ref + branch); err != nil || commit != "" {
			return commit, err
		}
	}
	return "", nil
}

// Holds says whether a commit has a folder; "." is the top.
func (o *Origin) Holds(commit, folder string) bool {
	c, err := object.GetCommit(o.store(), plumbing.NewHash(commit))
	if err != nil || folder == "." {
		return err == nil
	}
	tree, err := c.Tree()
	if err == nil {
		_, err = tree.Tree(folder)
	}
	return err == nil
}

// Files lists what a clone of the person's last commit holds, up to most paths.
func (o *Origin) Files(without []string, most int) (paths []string, err error) {
	_, head, err := o.Head()
	if err != nil || head == "" {
		return nil, err
	}
	all, err := commitContent(o.store(), without, head)
	for _, e := range all.entries[:min(most, len(all.entries))] {
		if !e.SkipWorktree {
			paths = append(paths, e.Name)
		}
	}
	return paths, err
}

// Contains says whether a commit has another among its ancestors, or is it.
func (o *Origin) Contains(commit, ancestor string) (bool, error) {
	return contains(o.store(), commit, ancestor)
}

// Ref is what a ref names, "" for none.
func (o *Origin) Ref(name string) (string, error) { return o.git.Ref(name) }

// Remarks are what in the repository would run something, or leads elsewhere, and what
// becomes of it: a line each.
func (o *Origin) Remarks(commit string, without []string) (all []string, err error) {
	hooks, err := inside(o.git, "hooks", true)
	if err != nil {
		hooks = []string{"hooks"}
	}
	hooks = slices.DeleteFunc(hooks, func(name string) bool { return strings.HasSuffix(name, ".sample") })
	if o.conf.Section("core").Option("hookspath") != "" {
		hooks = append(hooks, "core.hooksPath")
	}
	filters, includes := o.options("filter", ""), append(o.options("include", "path"), o.options("includeif", "path")...)
	left, modules, lfs, err := o.unlike(commit, without)
	if err != nil {
		return nil, err
	}
	some := func(names []string) string { return strings.Join(names[:min(len(names), 5)], ", ") }
	remark := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	remark(len(hooks) > 0, "its hooks are not run ("+some(hooks)+")")
	remark(len(filters) > 0, "its filters are not run, files are as they are committed ("+strings.Join(filters, ", ")+")")
	remark(len(includes) > 0, "the files that its config includes are not read")
	remark(o.borrows(), "objects that it borrows of another repository are copied")
	remark(len(left) > 0, "the clone is without "+strings.Join(left, ", "))
	remark(len(modules) > 0, "its submodules are empty folders in the clone ("+some(modules)+")")
	remark(lfs, "files that Git LFS keeps elsewhere are pointers in the clone")
	return all, nil
}

// options are the names of the sections of a kind that set an option, any for "".
func (o *Origin) options(section, option string) (names []string) {
	for _, s := range o.conf.Sections {
		if !strings.EqualFold(s.Name, section) {
			continue
		}
		if s.HasOption(option) || option == "" && len(s.Options) > 0 {
			names = append(names, section)
		}
		for _, sub := range s.Subsections {
			if option == "" || sub.HasOption(option) {
				names = append(names, cmp.Or(sub.Name, section))
			}
		}
	}
	return names
}

// unlike are the paths of a commit that a clone is without, its submodules, and whether Git LFS
// keeps some of its files.
func (o *Origin) unlike(commit string, without []string) (left, modules []string, lfs bool, err error) {
	s := o.store()
	all, err := commitContent(s, without, commit)
	if err != nil {
		return nil, nil, false, err
	}
	for _, path := range without {
		if slices.ContainsFunc(all.entries, func(e *index.Entry) bool { return e.Name == path || strings.HasPrefix(e.Name, path+"/") }) {
			left = append(left, path)
		}
	}
	for _, e := range all.entries {
		if e.Mode == filemode.Submodule {
			modules = append(modules, e.Name)
		} else if path.Base(e.Name) == ".gitattributes" {
			b, err := object.GetBlob(s, e.Hash)
			if err != nil {
				return nil, nil, false, err
			}
			data, _ := begin(b, maxSteering)
			lfs = lfs || bytes.Contains(data, []byte("filter=lfs"))
		}
	}
	return left, modules, lfs, nil
}

// begin reads the beginning of a blob, up to max bytes.
func begin(b *object.Blob, max int64) ([]byte, error) {
	r, err := b.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, max))
}
