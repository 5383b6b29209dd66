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

// module is a submodule of a commit whose repository exists locally.
type module struct {
	path   string
	commit string
	from   repository
}

// modules returns the submodules of a commit whose commits are in a repository below .git/modules
// or in their own directories, and the paths of the others. Submodules with an omitted path count
// as others.
func (r *repository) modules(heads []gitdir.Dir, commit string,
	left []string) (have []module, lack []string, err error) {
	all, err := r.contentOf(commit, nil)
	if err != nil {
		return nil, nil, err
	}
	names := r.moduleNames(all.entries)
	for _, e := range all.entries {
		if e.Mode != filemode.Submodule || without(left, e.Name) {
			continue
		}
		inside := func(p string) bool { return strings.HasPrefix(p, e.Name+"/") }
		from, ok := moduleAt(heads, r.dir, e, names[e.Name])
		if !ok || slices.ContainsFunc(left, inside) {
			lack = append(lack, e.Name)
			continue
		}
		have = append(have, module{e.Name, e.Hash.String(), from})
	}
	return have, lack, nil
}

// moduleNames maps the paths of submodules to their names in .gitmodules.
func (r *repository) moduleNames(entries []*index.Entry) map[string]string {
	names := map[string]string{}
	e := entryAt(entries, ".gitmodules")
	if e == nil || e.Mode == filemode.Symlink {
		return names
	}
	data, err := read(r.git.Store(), e.Hash, maxSteering)
	if err != nil {
		return names
	}
	c, err := parseConfig(data)
	if err != nil {
		return names
	}
	for _, s := range c.Section("submodule").Subsections {
		names[s.Option("path")] = s.Name
	}
	return names
}

// moduleAt opens the repository that has the commit of a submodule: below modules of a .git
// directory, or in the directory of the submodule. It follows no links.
func moduleAt(heads []gitdir.Dir, dir string, e *index.Entry, name string) (repository, bool) {
	var places []string
	for _, head := range heads {
		for _, at := range []string{name, e.Name} {
			if filepath.IsLocal(at) && at != "." {
				places = append(places, head.Join("modules", at))
			}
		}
	}
	if filepath.IsLocal(e.Name) && dir != "" {
		places = append(places, filepath.Join(dir, e.Name, ".git"))
	}
	for _, path := range places {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		at := repository{filepath.Join(dir, e.Name), gitdir.At(path, info)}
		if _, err := object.GetCommit(at.git.Store(), e.Hash); err == nil {
			return at, true
		}
	}
	return repository{}, false
}

// bring copies the content of a commit's submodules, also of nested ones, into a clone.
func (o *Origin) bring(ctx context.Context, to *repository, commit string, left []string) error {
	return bring(ctx, &o.repository, []gitdir.Dir{o.head, o.git}, to, commit, left, maxNested)
}

func bring(ctx context.Context, from *repository, heads []gitdir.Dir, to *repository, commit string, left []string,
	depth int) error {
	have, _, err := from.modules(heads, commit, left)
	if err != nil || depth == 0 {
		return err
	}
	for _, m := range have {
		s, err := newScratch(ctx, to.git, &m.from)
		if err != nil {
			return err
		}
		list, err := s.run(ctx, "rev-list", "--objects", "--no-walk", m.commit, "--")
		if err == nil {
			err = s.copyMissing(ctx, to, list)
		}
		s.close()
		if err == nil {
			err = bring(ctx, &m.from, []gitdir.Dir{m.from.git}, to, m.commit, nil, depth-1)
		}
		if err != nil {
			return gitdir.Foreign("cannot copy the submodule %q: %v", m.path, err)
		}
	}
	return nil
}

// copyMissing copies the objects in the output of git rev-list that a repository lacks.
func (s *scratch) copyMissing(ctx context.Context, to *repository, list string) error {
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
