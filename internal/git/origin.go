package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Origin is a person's repository, of which a workspace is a clone. It is read, and takes
// commits and refs below refs/heads/abl and refs/abl; its work tree, index, config and
// hooks are left alone, and nothing that they name is run.
type Origin struct {
	repository

	head gitdir.Dir // where HEAD stands: the .git of the work tree, of which there may be several
	conf *config.Config
}

// ErrElsewhere marks a .git that leads to a repository of another work tree.
var ErrElsewhere = errors.New("this is the repository of another work tree")

// OpenOrigin opens the repository whose work tree begins at dir. It fails with ErrElsewhere if
// .git leads to a repository that does not lead back.
func OpenOrigin(dir string) (*Origin, error) {
	head, common, err := foldersOf(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot adopt the repository %q: %w", dir, err)
	}
	o := &Origin{repository: repository{dir, common}, head: head}
	o.conf, err = configOf(o.git, "partialclone")
	return o, err
}

// foldersOf returns the folder that has the HEAD of a work tree, and the one that has its refs and
// objects, which differ in a further work tree. An archive may bring a .git file that names any
// folder, so each step has to be confirmed by what git writes at its other end.
func foldersOf(dir string) (head, common gitdir.Dir, err error) {
	file := filepath.Join(dir, ".git")
	path := file
	if data, rerr := hostfs.Read(dir, ".git", maxSteering); rerr == nil {
		path = beside(dir, strings.TrimPrefix(string(data), "gitdir: "))
		back, rerr := hostfs.Read(path, "gitdir", maxSteering)
		if !(rerr == nil && sameFile(beside(path, string(back)), file)) && !isSubmodule(path, dir) {
			return head, common, fmt.Errorf("%q names %q, which does not name %q: %w; remove the file, or if the repository is yours, "+
				"run git worktree repair there, or git config core.worktree \"$PWD\" here", file, path, dir, ErrElsewhere)
		}
	}
	head, err = folderAt(path)
	common = head
	data, rerr := hostfs.Read(path, "commondir", maxSteering)
	if err != nil || rerr != nil {
		return head, common, err
	}
	path = beside(path, string(data))
	if !sameFile(filepath.Join(path, "worktrees", filepath.Base(head.Path)), head.Path) {
		return head, common, fmt.Errorf("%q names %q, which has no such folder in worktrees: %w; remove the file",
			head.Join("commondir"), path, ErrElsewhere)
	}
	common, err = folderAt(path)
	return head, common, err
}

// isSubmodule reports whether the config of a .git folder names dir as its work tree, as that of a
// submodule does.
func isSubmodule(path, dir string) bool {
	for _, name := range []string{"config", "config.worktree"} {
		data, err := hostfs.Read(path, name, maxSteering)
		if err != nil {
			continue
		}
		c, err := parseConfig(data)
		if err != nil {
			continue
		}
		if tree := c.Section("core").Option("worktree"); tree != "" && sameFile(beside(path, tree), dir) {
			return true
		}
	}
	return false
}

// sameFile reports whether two paths lead to one file or folder.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return errors.Join(err1, err2) == nil && os.SameFile(one, two)
}

// folderAt returns a .git folder.
func folderAt(path string) (gitdir.Dir, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = gitdir.Foreign("%q is a link or no folder: put the repository itself there", path)
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
// becomes of it in a clone that is without some paths: a line each.
func (o *Origin) Remarks(commit string, without []string) (all []string, err error) {
	hooks := slices.DeleteFunc(pathsIn(o.git, "hooks"), func(name string) bool { return strings.HasSuffix(name, ".sample") })
	if o.conf.Section("core").Option("hookspath") != "" {
		hooks = append(hooks, "core.hooksPath")
	}
	var filters, left []string
	for _, filter := range o.conf.Section("filter").Subsections {
		filters = append(filters, filter.Name)
	}
	holds, err := o.contentOf(commit, nil)
	for _, name := range without {
		if entryAt(holds.entries, name) != nil || below(holds.entries, name) {
			left = append(left, name)
		}
	}
	s, lfs := o.git.Store(), false
	for _, e := range holds.entries {
		if path.Base(e.Name) == ".gitattributes" && err == nil {
			var data []byte
			data, err = read(s, e.Hash, maxSteering)
			lfs = lfs || bytes.Contains(data, []byte("filter=lfs"))
		}
	}
	var modules []string
	if err == nil {
		_, modules, err = o.modules([]gitdir.Dir{o.head, o.git}, commit, without)
	}
	some := func(names []string) string { return strings.Join(names[:min(len(names), 5)], ", ") }
	remark := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	remark(len(hooks) > 0, "its hooks are not run ("+some(hooks)+")")
	remark(len(filters) > 0, "its filters are not run, files are as they are committed ("+strings.Join(filters, ", ")+")")
	includes := o.conf.Section("include").HasOption("path") || len(o.conf.Section("includeif").Subsections) > 0
	remark(includes, "the files that its config includes are not read")
	remark(o.borrows(), "objects that it borrows of another repository are copied")
	remark(len(left) > 0, "the clone is without "+strings.Join(left, ", "))
	remark(len(modules) > 0, "its submodules are empty folders in the clone ("+some(modules)+"): git submodule update --init --recursive fetches them")
	remark(o.InTheWay(BranchPrefix) != "", NoRoom)
	remark(lfs, "files that Git LFS keeps elsewhere are pointers in the clone")
	return all, err
}

// BranchPrefix is the beginning of the names of published branches, unless the settings say otherwise.
const BranchPrefix = "abl/"

// NoRoom is the remark about a branch beside which no branch with BranchPrefix can exist.
const NoRoom = "the branch abl allows no branch abl/phaseN beside it: set publish.prefix"

// InTheWay returns the branch of the repository beside which no branch with a prefix can exist, "" for
// none.
func (o *Origin) InTheWay(prefix string) string {
	for at := strings.LastIndex(prefix, "/"); at > 0; at = strings.LastIndex(prefix[:at], "/") {
		if commit, err := o.Ref("refs/heads/" + prefix[:at]); err == nil && commit != "" {
			return prefix[:at]
		}
	}
	return ""
}

// ErrBehind marks a ref that has moved to what is not known here: somebody else published.
var ErrBehind = errors.New("somebody else has published meanwhile")

// lockWait is how long another git's lock in the person's repository is waited for.
const lockWait = 5 * time.Second

// Receive takes a commit of a clone, or of another repository of abl's, with its history, and
// sets a ref to it, fast-forward only. A branch that some work tree stands on is refused.
func (o *Origin) Receive(ctx context.Context, from *Repo, ref, commit string) error {
	was, err := o.Ref(ref)
	if err != nil || was == commit {
		return err
	}
	if err := o.free(ref); err != nil {
		return err
	}
	if was != "" {
		after, err := from.Contains(commit, was)
		if err != nil {
			return err
		}
		if !after {
			return fmt.Errorf("%w: %s names %s, which %s does not have", ErrBehind, ref, was[:12], commit[:12])
		}
	}
	s := from.git.Store()
	objects, err := lacking(ctx, s, o.git.Store(), commit)
	if err == nil {
		err = writePack(o.git, s, objects, deltaWindow)
	}
	if err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit, lockWait)
}

// deltaWindow is git's own: so many objects each is compared with. Deltas that are there
// are taken over.
const deltaWindow = 10

// lacking returns the objects of a commit and its history that another repository does not have.
func lacking(ctx context.Context, from, to *gitdir.Store, commit string) (objects []plumbing.Hash, err error) {
	seen := map[plumbing.Hash]bool{}
	take := func(hash plumbing.Hash) bool {
		if seen[hash] || to.HasEncodedObject(hash) == nil {
			return false
		}
		seen[hash], objects = true, append(objects, hash)
		return true
	}
	var tree func(hash plumbing.Hash, depth int) error
	tree = func(hash plumbing.Hash, depth int) error {
		if !take(hash) {
			return nil
		}
		t, err := object.GetTree(from, hash)
		if err == nil && depth > maxTreePath {
			err = ErrTooLarge
		}
		if err != nil {
			return fmt.Errorf("tree %s: %w", hash, err)
		}
		for _, e := range t.Entries {
			switch e.Mode {
			case filemode.Submodule:
			case filemode.Dir:
				err = cmp.Or(err, tree(e.Hash, depth+1))
			default:
				take(e.Hash)
			}
		}
		return err
	}
	ends, err := from.Shallow()
	for todo := []plumbing.Hash{plumbing.NewHash(commit)}; len(todo) > 0 && err == nil; {
		hash := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !take(hash) {
			continue
		}
		c, cerr := object.GetCommit(from, hash)
		if cerr == nil {
			cerr = tree(c.TreeHash, 0)
		}
		if err = cmp.Or(ctx.Err(), cerr); err != nil {
			return nil, fmt.Errorf("cannot read commit %s and what it needs: %w", hash, err)
		}
		if !slices.Contains(ends, hash) {
			todo = append(todo, c.ParentHashes...)
		}
	}
	return objects, err
}

// Forward moves a ref from a commit to a later one that the repository has. It fails for a branch that
// a work tree is on.
func (o *Origin) Forward(ctx context.Context, ref, was, commit string) error {
	if err := o.free(ref); err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit, lockWait)
}

// free refuses a branch on which a work tree stands.
func (o *Origin) free(ref string) error {
	to, err := o.git.Target(ref)
	if err != nil {
		return err
	}
	heads := []string{"HEAD"}
	for _, tree := range pathsIn(o.git, "worktrees") {
		heads = append(heads, tree+"/HEAD")
	}
	for _, name := range heads {
		data, err := hostfs.Read(o.git.Path, name, maxSteering)
		if errors.Is(err, hostfs.ErrAbsent) && name != "HEAD" {
			continue
		}
		if err != nil {
			return err
		}
		at, symbolic := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
		if symbolic {
			if at, err = o.git.Target(at); err != nil {
				return err
			}
		}
		if symbolic && at == to {
			tree := strings.TrimSuffix(o.git.Join(path.Dir(name)), "/.git")
			return gitdir.Foreign("cannot move %s, since the work tree %q stands on it: git switch to another branch there", ref, tree)
		}
	}
	return nil
}

// Keep commits files, by their paths, on a ref that names no branch. Where they are as they
// were nothing is done. The ref must be where it was seen last, at was.
func (o *Origin) Keep(ctx context.Context, ref, was, subject string, files map[string][]byte) (commit string, err error) {
	text, err := Message{Subject: subject}.text()
	if err != nil {
		return "", err
	}
	objects, err := newSpool(o.git)
	if err != nil {
		return "", err
	}
	defer objects.close()
	var entries []*index.Entry
	for path, data := range files {
		hash, err := objects.blob(data)
		if err != nil {
			return "", err
		}
		entries = append(entries, &index.Entry{Name: path, Mode: filemode.Regular, Hash: hash})
	}
	slices.SortFunc(entries, inOrder)
	_, c, err := objects.commit(text, entries, nil, was)
	if err != nil {
		return "", err
	}
	if was != "" {
		before, err := o.commit(o.git.Store(), was)
		if err != nil {
			return "", err
		}
		if before.TreeHash == c.TreeHash {
			return was, nil
		}
	}
	if err := objects.finish(o.git); err != nil {
		return "", err
	}
	return c.Hash.String(), o.git.Move(ctx, ref, was, c.Hash.String(), lockWait)
}

// maxKept bounds what is read of what was kept, in bytes.
const maxKept = 256 << 20

// Kept are the files that a commit of Keep holds.
func (o *Origin) Kept(commit string) (map[string][]byte, error) {
	all, err := o.contentOf(commit, nil)
	if err != nil {
		return nil, err
	}
	s, files, left := o.git.Store(), map[string][]byte{}, int64(maxKept)
	for _, e := range all.entries {
		data, err := read(s, e.Hash, left+1)
		left -= int64(len(data))
		if err == nil && (e.Mode != filemode.Regular || left < 0 || !fs.ValidPath(e.Name)) {
			err = errors.New("it is no plain file of abl's")
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q of commit %s: %w", e.Name, commit, err)
		}
		files[e.Name] = data
	}
	return files, nil
}
