package git

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// Origin is a person's repository, of which a workspace is a clone. It is read, and takes
// commits and refs below refs/heads/abl and refs/abl; its work tree, index, config and
// hooks are left alone, and nothing that they name is run.
type Origin struct {
	repository

	head gitdir.Dir // where HEAD stands: the .git of the work tree, of which there may be several
	conf *config.Config
}

// OpenOrigin opens the repository whose work tree begins at dir.
func OpenOrigin(dir string) (*Origin, error) {
	head, err := folderOf(filepath.Join(dir, ".git"))
	o := &Origin{repository: repository{dir, head}, head: head}
	if common, cerr := hostfs.Read(head.Path, "commondir", maxSteering); err == nil && cerr == nil {
		o.git, err = folderOf(beside(head.Path, string(common)))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot adopt the repository %q: %w", dir, err)
	}
	o.conf, err = configOf(o.git)
	return o, err
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

// borrows says whether some objects are another repository's.
func (o *Origin) borrows() bool {
	_, err := os.Lstat(o.git.Join("objects/info/alternates"))
	return err == nil
}

// Head is the branch and the commit on which the person stands; branch is "" where HEAD is
// detached, and commit before the first one.
func (o *Origin) Head() (branch, commit string, err error) {
	if branch, commit, err = o.head.Head(); err == nil && branch != "" {
		commit, err = o.Ref("refs/heads/" + branch)
	}
	return branch, commit, err
}

// Tip is the commit that a branch names, here or as it was last fetched from origin; "" for
// none.
func (o *Origin) Tip(branch string) (commit string, err error) {
	if !gitdir.ValidRef(branch) { // as where HEAD is detached
		return "", nil
	}
	commit, err = o.Ref("refs/heads/" + branch)
	if err == nil && commit == "" {
		commit, err = o.Ref("refs/remotes/origin/" + branch)
	}
	return commit, err
}

// Holds says whether a commit has a folder; "." is the top.
func (o *Origin) Holds(commit, folder string) bool {
	c, err := o.commit(o.git.Store(), commit)
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
	if err != nil {
		return nil, err
	}
	all, err := o.contentOf(head, without)
	for _, e := range all.entries[:min(most, len(all.entries))] {
		if !e.SkipWorktree {
			paths = append(paths, e.Name)
		}
	}
	return paths, err
}

// Remarks are what in the repository would run something, or leads elsewhere, and what
// becomes of it: a line each.
func (o *Origin) Remarks(commit string, without []string) (all []string, err error) {
	hooks := slices.DeleteFunc(files(o.git, "hooks/*"), func(name string) bool { return strings.HasSuffix(name, ".sample") })
	if o.conf.Section("core").Option("hookspath") != "" {
		hooks = append(hooks, "core.hooksPath")
	}
	var filters []string
	for _, filter := range o.conf.Section("filter").Subsections {
		filters = append(filters, filter.Name)
	}
	includes := o.conf.Section("include").HasOption("path") || len(o.conf.Section("includeif").Subsections) > 0
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
	remark(includes, "the files that its config includes are not read")
	remark(o.borrows(), "objects that it borrows of another repository are copied")
	remark(len(left) > 0, "the clone is without "+strings.Join(left, ", "))
	remark(len(modules) > 0, "its submodules are empty folders in the clone ("+some(modules)+")")
	remark(lfs, "files that Git LFS keeps elsewhere are pointers in the clone")
	return all, nil
}

// unlike are the paths of a commit that a clone is without, its submodules, and whether Git LFS
// keeps some of its files.
func (o *Origin) unlike(commit string, without []string) (left, modules []string, lfs bool, err error) {
	s := o.git.Store()
	all, err := o.contentOf(commit, nil)
	for _, name := range without {
		if entryAt(all.entries, name) != nil || below(all.entries, name) {
			left = append(left, name)
		}
	}
	for _, e := range all.entries {
		if e.Mode == filemode.Submodule {
			modules = append(modules, e.Name)
		} else if path.Base(e.Name) == ".gitattributes" && err == nil {
			var data []byte
			data, err = read(s, e.Hash, maxSteering)
			lfs = lfs || bytes.Contains(data, []byte("filter=lfs"))
		}
	}
	return left, modules, lfs, err
}
