package git

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// adopt reads what the repository is and refuses what abl cannot keep.
func (r *Repo) adopt() error {
	if _, _, err := r.ordinary(); err != nil {
		return err
	}
	err := r.readConfig()
	if err == nil {
		r.branch, err = onBranch(r)
	}
	if err == nil {
		err = r.settled()
	}
	return err
}

// ordinary refuses a .git whose parts lead elsewhere, and lists its hooks and refs.
func (r *Repo) ordinary() (hooks, refs []string, err error) {
	folders := []string{".", "objects", "objects/pack", "objects/info", "info", "logs", "logs/refs", "logs/refs/heads"}
	for _, name := range folders { // from above, so that none is behind a link
		if _, err := inside(r.git, name, false); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range []string{"HEAD", "config", "index", "packed-refs", "shallow", "info/exclude"} {
		if info, err := os.Lstat(r.git.Join(name)); err == nil && info.IsDir() {
			return nil, nil, gitdir.Foreign("%q is a folder: put back the file that git makes there", r.git.Join(name))
		}
	}
	if hooks, err = inside(r.git, "hooks", true); err == nil {
		refs, err = inside(r.git, "refs", true)
	}
	return hooks, refs, err
}

// inside lists the files in a folder of .git, which may be missing, or also all below
// it, and refuses what is neither file nor folder there: a link leads out of what is
// mounted read-only, and a socket can be talked to through any mount.
func inside(d gitdir.Dir, folder string, below bool) (files []string, err error) {
	top := d.Join(folder)
	err = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return gitdir.Foreign("%q cannot be listed (%v): put back what git makes there", path, err)
		case e.Type()&^fs.ModeDir != 0 || path == top && !e.IsDir():
			return gitdir.Foreign("%q is not what git makes there: remove it, and if it is a socket of git's own watcher end that (git fsmonitor--daemon stop, and git config core.fsmonitor false)", path)
		case len(files) == maxInside:
			return gitdir.Foreign("%q holds more than %d files: git pack-refs --all makes them one", top, maxInside)
		case !e.IsDir():
			files = append(files, folder+strings.TrimPrefix(path, top))
		case !below && path != top:
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// harmless are the extensions that do not change what abl reads and writes, and the
// values with which they do not, "" for any.
var harmless = map[string]string{"noop": "", "preciousobjects": "", "worktreeconfig": "", "objectformat": "sha1", "refstorage": "files"}

// readConfig takes from the config what a snapshot must know, and refuses
// formats that it could not write.
func (r *Repo) readConfig() error {
	path := r.git.Join("config")
	c, err := configOf(path)
	if err != nil {
		return err
	}
	core := c.Section("core")
	is := func(option string) bool {
		return slices.Contains([]string{"true", "yes", "on", "1"}, core.Option(option))
	}
	if core.Option("worktree") != "" || is("bare") {
		return gitdir.Foreign("%q sets core.worktree or core.bare, so its files lie elsewhere: unset it, or choose another directory", path)
	}
	r.noExec = core.HasOption("filemode") && !is("filemode")
	hooks := core.Option("hookspath")
	if filepath.IsAbs(hooks) {
		hooks, _ = filepath.Rel(r.dir, hooks)
	}
	if filepath.IsLocal(hooks) {
		r.hooks = filepath.ToSlash(filepath.Clean(hooks)) + "/"
	}
	return readable(path, c)
}

// configOf reads a config file; without one git takes its defaults.
func configOf(path string) (*config.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read git's config: %w", err)
	}
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(c); err != nil {
		return nil, gitdir.Foreign("%q cannot be read (%v): mend it", path, err)
	}
	return c, nil
}

// readable refuses formats that abl could not write.
func readable(path string, c *config.Config) error {
	for _, o := range c.Section("extensions").Options {
		if value, known := harmless[strings.ToLower(o.Key)]; !known || value != "" && value != o.Value {
			return gitdir.Foreign("%q uses the extension %q, which abl cannot keep: choose another directory, or convert the repository", path, o.Key)
		}
	}
	return nil
}

// unfinished maps what git leaves while an operation waits for a person to
// what ends it.
var unfinished = map[string]string{
	"MERGE_HEAD":       "a merge is not finished: commit it or git merge --abort",
	"CHERRY_PICK_HEAD": "a cherry-pick is not finished: git cherry-pick --continue or --abort",
	"REVERT_HEAD":      "a revert is not finished: git revert --continue or --abort",
	"BISECT_LOG":       "a bisection is not finished: git bisect reset",
	"rebase-merge":     "a rebase is not finished: git rebase --continue or --abort",
	"rebase-apply":     "a rebase or git am is not finished: continue or abort it",
	"sequencer":        "a series of picks or reverts is not finished: continue or abort it",

	"objects/info/alternates":      "its objects lie in another repository: git repack -a -d and remove the file",
	"objects/info/http-alternates": "its objects lie in another repository: git repack -a -d and remove the file",
	"commondir":                    "it is one of several work trees of another repository: choose another directory",
}

// there refuses a repository that is no longer the one that was opened.
func (r *Repo) there() error {
	now, err := os.Lstat(r.git.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return away(r.git.Path)
	case err != nil || !os.SameFile(now, r.id):
		return gitdir.Foreign("%q is no longer the folder that was opened: see who replaced it", r.git.Path)
	}
	return nil
}

// onBranch is the branch that HEAD names.
func onBranch(r *Repo) (string, error) {
	branch, commit, err := r.git.Head()
	if err == nil && commit != "" {
		err = gitdir.Foreign("HEAD of %q is detached at %.12s: switch to a branch (git switch NAME) first", r.dir, commit)
	}
	return branch, err
}

// settled refuses a repository in which something waits for a person, or that
// is no longer the one that was opened.
func (r *Repo) settled() error {
	if err := r.there(); err != nil {
		return err
	}
	for name, what := range unfinished {
		if _, err := os.Lstat(r.git.Join(name)); !errors.Is(err, fs.ErrNotExist) {
			return gitdir.Foreign("%q: %s (found %s)", r.dir, what, path.Base(name))
		}
	}
	branch, err := onBranch(r)
	if err != nil {
		return err
	}
	if branch != r.branch {
		return gitdir.Foreign("%q is on branch %q now and was on %q: switch back, or run abl again", r.dir, branch, r.branch)
	}
	return nil
}

// steering is what in .git decides what a person's git runs and where it reads
// and writes, besides the hooks.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

const (
	maxSteering = 4 << 20 // bytes of a config or a hook
	maxInside   = 100_000 // files in a folder of .git
)

// Seal says what .git is like now: what steers git by its hash, and where the
// history stands. The index, objects, packs and logs are the person's git's
// own business, and so are the branches of remotes, which it fetches by itself.
// An error that Is ErrForeign names something that must not be there.
func (r *Repo) Seal() (s state.Seal, err error) {
	hooks, refs, err := r.ordinary()
	if err == nil {
		err = r.settled()
	}
	if err != nil {
		return s, err
	}
	s.Steering = map[string]string{}
	for _, name := range append(hooks, steering...) {
		if strings.HasSuffix(name, ".sample") {
			continue // git runs none
		}
		if err := hash(r.git, name, s.Steering); err != nil {
			return s, err
		}
	}
	s.History, err = r.history(refs)
	return s, err
}

func hash(d gitdir.Dir, name string, into map[string]string) error {
	data, err := hostfs.Read(d.Path, name, maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		return gitdir.Foreign("%q: %v: put back what git makes there", d.Path, err)
	}
	mode := "" // git runs a hook only when it is executable
	if info, err := os.Lstat(d.Join(name)); err == nil && info.Mode()&0o111 != 0 {
		mode = "+x"
	}
	into[name] = fmt.Sprintf("%x%s", sha256.Sum256(data), mode)
	return nil
}

// history is what HEAD and every ref name, the loose ones among them.
func (r *Repo) history(loose []string) (map[string]string, error) {
	refs, err := r.git.Packed()
	if err != nil {
		return nil, err
	}
	for _, name := range append(loose, "HEAD") {
		data, err := hostfs.Read(r.git.Path, name, maxSteering)
		switch {
		case err == nil:
			refs[name] = strings.TrimSpace(string(data))
		case !errors.Is(err, hostfs.ErrAbsent): // packed just now, say
			return nil, gitdir.Foreign("%q: %v: put back what git makes there", r.git.Path, err)
		}
	}
	maps.DeleteFunc(refs, func(name, _ string) bool {
		return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
	})
	return refs, nil
}
