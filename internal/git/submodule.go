package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// maxNested is the maximum depth of nested submodules.
const maxNested = 8

// module is a checked-out submodule of a commit.
type module struct {
	path   string
	commit string
	from   *Origin
}

// modules returns the submodules of a commit that are checked out and whose repositories have the
// commit, and the paths of the others. Submodules with an omitted path count as others.
func (o *Origin) modules(commit string, left []string) (have []module, lack []string, err error) {
	all, err := o.contentOf(commit, left)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	for _, e := range all.entries {
		if e.Mode != filemode.Submodule || e.SkipWorktree {
			continue
		}
		inside := func(p string) bool { return strings.HasPrefix(p, e.Name+"/") }
		m := module{path: e.Name, commit: e.Hash.String()}
		has := filepath.IsLocal(e.Name) && inTheWay(root, e.Name) == "" && !slices.ContainsFunc(left, inside)
		if has {
			m.from, err = OpenOrigin(filepath.Join(o.dir, e.Name))
			has = err == nil && m.from.Holds(m.commit, ".")
		}
		if has {
			have = append(have, m)
		} else {
			lack = append(lack, e.Name)
		}
	}
	return have, lack, nil
}

// bring copies the content of a commit's submodules into a clone. depth limits nested submodules.
func (o *Origin) bring(ctx context.Context, to *repository, commit string, left []string, depth int) error {
	have, _, err := o.modules(commit, left)
	if err != nil || depth == 0 {
		return err
	}
	for _, m := range have {
		err := copyObjects(ctx, to, to.git, []*repository{&m.from.repository}, "--no-walk", m.commit, "--")
		if err == nil {
			err = m.from.bring(ctx, to, m.commit, nil, depth-1)
		}
		if err != nil {
			return gitdir.Foreign("cannot copy the submodule %q: %v", m.path, err)
		}
	}
	return nil
}

// copyObjects copies the objects that git rev-list prints for some arguments, and that a repository
// lacks, from others. The scratch repository is in the .git directory in.
func copyObjects(ctx context.Context, to *repository, in gitdir.Dir, from []*repository, args ...string) error {
	s, err := newScratch(ctx, in, from...)
	if err != nil {
		return err
	}
	defer s.close()
	list, err := s.run(ctx, append([]string{"rev-list", "--objects"}, args...)...)
	if err != nil {
		return err
	}
	var objects []plumbing.Hash
	there := to.git.Store()
	for line := range strings.Lines(list) {
		hash, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if h := plumbing.NewHash(hash); there.HasEncodedObject(h) != nil {
			objects = append(objects, h)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	pack, err := s.pack(ctx, objects)
	if err != nil {
		return err
	}
	return to.git.TakePack(pack)
}

// withModules returns sorted entries with the files of those submodules whose content the
// repository has.
func (r *repository) withModules(entries []*index.Entry) []*index.Entry {
	if !slices.ContainsFunc(entries, func(e *index.Entry) bool { return e.Mode == filemode.Submodule }) {
		return entries
	}
	s := r.git.Store()
	var add func(all []*index.Entry, entries []*index.Entry, depth int) []*index.Entry
	add = func(all, entries []*index.Entry, depth int) []*index.Entry {
		for _, e := range entries {
			all = append(all, e)
			if e.Mode != filemode.Submodule || e.SkipWorktree || depth == 0 {
				continue
			}
			c, err := object.GetCommit(s, e.Hash)
			below := content{trees: map[string]plumbing.Hash{}}
			if err == nil {
				err = below.add(s, c.TreeHash, e.Name+"/")
			}
			if err != nil {
				continue
			}
			files := slices.DeleteFunc(below.entries, func(f *index.Entry) bool {
				return scan.Refused(f.Name, f.Mode == filemode.Symlink) != ""
			})
			all = add(all, files, depth-1)
		}
		return all
	}
	all := add(nil, entries, maxNested)
	slices.SortFunc(all, inOrder)
	return all
}
