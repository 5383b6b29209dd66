package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Origin is the user's repository, from which a workspace is cloned. abl reads it, adds commits,
// and sets refs below refs/heads/abl and refs/abl. It never changes the work tree, the index, the
// config or hooks, and runs nothing that they name.
type Origin struct {
	repository

	head gitdir.Dir // the directory with HEAD, which differs from git in an additional work tree
	conf *config.Config
}

// ErrElsewhere means that .git points to the repository of another work tree.
var ErrElsewhere = errors.New("this is the repository of another work tree")

// OpenOrigin opens the repository whose work tree begins at dir. It returns ErrElsewhere if .git
// points to a repository that does not point back.
func OpenOrigin(dir string) (*Origin, error) {
	head, common, err := foldersOf(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot adopt the repository %q: %w", dir, err)
	}
	o := &Origin{repository: repository{dir, common}, head: head}
	if o.conf, err = configOf(o.git, "partialclone"); err != nil {
		return nil, err
	}
	return o, o.git.PlainRefs()
}

// foldersOf returns the directory with the HEAD of a work tree, and the one with its refs and
// objects, which differ in an additional work tree. An archive may contain a .git file that names
// any directory, so each step must be confirmed by git's file at the other end.
func foldersOf(dir string) (head, common gitdir.Dir, err error) {
	file := filepath.Join(dir, ".git")
	path := file
	if data, rerr := hostfs.Read(dir, ".git", maxSteering); rerr == nil {
		path = beside(dir, strings.TrimPrefix(string(data), "gitdir: "))
		back, rerr := hostfs.Read(path, "gitdir", maxSteering)
		if !(rerr == nil && sameFile(beside(path, string(back)), file)) && !isSubmodule(path, dir) {
			return head, common, fmt.Errorf("%q names %q, which does not name %q: %w; remove the file, or if the "+
				"repository is yours, "+
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
		return head, common, fmt.Errorf("%q names %q, which has no such directory in worktrees: %w; remove the file",
			head.Join("commondir"), path, ErrElsewhere)
	}
	common, err = folderAt(path)
	return head, common, err
}

// isSubmodule reports whether the config in a .git directory names dir as its work tree, as in a
// submodule.
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

// sameFile reports whether two paths lead to the same file or directory.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return errors.Join(err1, err2) == nil && os.SameFile(one, two)
}

// folderAt returns a .git directory. It fails for a link or a file.
func folderAt(path string) (gitdir.Dir, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = gitdir.Foreign("%q is a link or a file: move the repository itself there", path)
	}
	if err != nil {
		return gitdir.Dir{}, err
	}
	return gitdir.At(path, info), nil
}

// beside returns the path that a file of git in dir contains.
func beside(dir, name string) string {
	if name = strings.TrimRight(name, "\r\n"); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// Around returns the work tree that contains dir, "" if there is no such work tree.
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

// borrows reports whether the repository uses objects of another one.
func (o *Origin) borrows() bool {
	_, err := os.Lstat(o.git.Join("objects/info/alternates"))
	return err == nil
}

// Head returns the user's branch and commit. branch is "" for a detached HEAD, commit is "" before
// the first commit.
func (o *Origin) Head() (branch, commit string, err error) {
	if branch, commit, err = o.head.Head(); err == nil && branch != "" {
		commit, err = o.Ref("refs/heads/" + branch)
	}
	return branch, commit, err
}

// Tip returns the commit of a branch, here or as last fetched from origin, "" if neither exists.
func (o *Origin) Tip(branch string) (commit string, err error) {
	if !gitdir.ValidRef(branch) { // "" for a detached HEAD
		return "", nil
	}
	commit, err = o.Ref("refs/heads/" + branch)
	if err == nil && commit == "" {
		commit, err = o.Ref("refs/remotes/origin/" + branch)
	}
	return commit, err
}

// Holds reports whether a commit has a directory. "." is the top.
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

// Files returns up to most paths of a clone of the user's last commit.
func (o *Origin) Files(without []string, most int) (paths []string, err error) {
	_, head, err := o.Head()
	if err != nil {
		return nil, err
	}
	all, err := o.contentOf(head, nil)
	return names(all.entries, without, most), err
}

// Remarks describes, one per line, the parts of the repository that would run something or point
// elsewhere, and what happens to them in a clone without some paths.
func (o *Origin) Remarks(commit string, without []string) (all []string, err error) {
	var hooks, filters, left []string
	names, _ := hostfs.Names(o.git.Path, "hooks", maxInside) // git ignores an unreadable directory, too
	for _, name := range names {
		if !strings.HasSuffix(name, ".sample") {
			hooks = append(hooks, "hooks/"+name)
		}
	}
	if o.conf.Section("core").Option("hookspath") != "" {
		hooks = append(hooks, "core.hooksPath")
	}
	for _, filter := range o.conf.Section("filter").Subsections {
		filters = append(filters, filter.Name)
	}
	holds, err := o.contentOf(commit, nil)
	for _, name := range without {
		if entryAt(holds.entries, name) != nil || below(holds.entries, name) {
			left = append(left, name)
		}
	}
	var modules []string
	if err == nil {
		_, modules, err = o.modules(commit, without)
	}
	some := func(names []string) string { return strings.Join(names[:min(len(names), 5)], ", ") }
	note := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	note(len(hooks) > 0, "abl does not run its hooks ("+some(hooks)+")")
	note(len(filters) > 0, "abl does not run its filters, files are as committed ("+strings.Join(filters, ", ")+")")
	includes := o.conf.Section("include").HasOption("path") || len(o.conf.Section("includeif").Subsections) > 0
	note(includes, "abl does not read the files that its config includes")
	note(o.borrows(), "the clone gets copies of the objects that it borrows from another repository")
	note(len(left) > 0, "the clone omits "+strings.Join(left, ", "))
	const fetch = "git submodule update --init --recursive fetches them"
	note(len(modules) > 0, "its submodules are empty directories in the clone ("+some(modules)+"): "+fetch)
	note(o.InTheWay(BranchPrefix) != "", NoRoom)
	note(o.usesLFS(holds.entries), "files in Git LFS are pointers in the clone until git lfs fetch has fetched their content")
	return all, err
}

// BranchPrefix is the default prefix of published branches.
const BranchPrefix = "abl/"

// NoRoom is the remark about a branch that prevents branches with BranchPrefix.
const NoRoom = "git cannot create abl/phaseN, because a branch abl exists: set publish.prefix"

// InTheWay returns the branch that prevents branches with a prefix, "" if there is no such branch.
func (o *Origin) InTheWay(prefix string) string {
	for at := strings.LastIndex(prefix, "/"); at > 0; at = strings.LastIndex(prefix[:at], "/") {
		if commit, err := o.Ref("refs/heads/" + prefix[:at]); err == nil && commit != "" {
			return prefix[:at]
		}
	}
	return ""
}

// ErrBehind means that another user published: a ref moved to a commit that is unknown here.
var ErrBehind = errors.New("another user published in the meantime")

// Receive copies a commit of another repository of abl with its history and fast-forwards a ref to
// it. It fails for the current branch of a work tree.
func (o *Origin) Receive(ctx context.Context, from *Repo, ref, commit string) error {
	was, err := o.Ref(ref)
	if err != nil || was == commit {
		return err
	}
	if err := o.free(ctx, ref); err != nil {
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
	if err := errors.Join(o.git.TakeAllLarge(from.git), o.receive(ctx, from, commit, was)); err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit)
}

// receive copies the objects of a commit and its history that the repository lacks. was is a commit
// that it has, "" for none.
func (o *Origin) receive(ctx context.Context, from *Repo, commit, was string) error {
	_, head, err := o.Head()
	if err != nil {
		return err
	}
	args := []string{"--missing=allow-any", commit}
	for _, has := range []string{was, head} {
		if has != "" {
			args = append(args, "^"+has)
		}
	}
	err = copyObjects(ctx, &o.repository, from.git, []*repository{&from.repository, &o.repository}, append(args, "--")...)
	if err != nil {
		return fmt.Errorf("cannot copy commit %s and its history: %w", commit, err)
	}
	return nil
}

// Forward moves a ref from a commit to a later one of the repository. It fails for the current
// branch of a work tree.
func (o *Origin) Forward(ctx context.Context, ref, was, commit string) error {
	if err := o.free(ctx, ref); err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit)
}

// Drop deletes a ref at a commit. It fails for the current branch of a work tree.
func (o *Origin) Drop(ctx context.Context, ref, was string) error {
	err := o.free(ctx, ref)
	if err == nil {
		_, err = o.run(ctx, "update-ref", "-d", ref, was)
	}
	return err
}

// free fails if a ref is the current branch of a work tree.
func (o *Origin) free(ctx context.Context, ref string) error {
	to, err := o.git.Target(ref)
	if err != nil {
		return err
	}
	list, err := o.run(ctx, "worktree", "list", "--porcelain")
	for tree := range strings.SplitSeq(list, "\n\n") {
		if strings.Contains(tree+"\n", "\nbranch "+to+"\n") {
			path, _, _ := strings.Cut(strings.TrimPrefix(tree, "worktree "), "\n")
			return gitdir.Foreign("cannot move %s, because it is the current branch of the work tree %q: switch to another "+
				"branch there", ref, path)
		}
	}
	return err
}

// Keep commits files by their paths to a ref that is not a branch. It does nothing if the files
// have not changed. It fails if the ref is no longer at was.
func (o *Origin) Keep(ctx context.Context, ref, was, subject string,
	files map[string][]byte) (commit string, err error) {
	text, err := Message{Subject: subject}.text()
	if err != nil {
		return "", err
	}
	objects, err := newSpool(&o.repository, Identity{})
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
	_, c, err := objects.commit(ctx, text, entries, nil, was)
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
	if err := objects.finish(); err != nil {
		return "", err
	}
	return c.Hash.String(), o.git.Move(ctx, ref, was, c.Hash.String())
}

// maxKept is the maximum number of bytes that Kept reads.
const maxKept = 256 << 20

// Kept returns the files of a commit of Keep.
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
			err = errors.New("abl did not write it")
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q of commit %s: %w", e.Name, commit, err)
		}
		files[e.Name] = data
	}
	return files, nil
}
