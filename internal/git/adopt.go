package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// adopt reads what the repository is and refuses what abl cannot keep.
func (r *Repo) adopt() error {
	if err := r.ordinary(); err != nil {
		return err
	}
	if err := r.readConfig(); err != nil {
		return err
	}
	branch, err := r.git.Branch()
	if err != nil {
		return err
	}
	r.branch = branch
	if err := r.settled(); err != nil {
		return err
	}
	_, err = r.tip()
	return err
}

// ordinary refuses a .git whose parts lead elsewhere.
func (r *Repo) ordinary() error {
	folders := []string{".", "objects", "objects/pack", "objects/info", "info", "logs", "logs/refs", "logs/refs/heads"}
	for _, name := range folders { // from above, so that none is behind a link
		if _, err := plain(r.git, name); err != nil {
			return err
		}
	}
	for _, name := range []string{"HEAD", "config", "index", "packed-refs", "shallow", "info/exclude"} {
		if info, err := os.Lstat(r.git.Join(name)); err == nil && info.IsDir() {
			return gitdir.Foreign("%q is a folder: put back the file that git makes there", r.git.Join(name))
		}
	}
	for _, name := range []string{"hooks", "refs"} {
		if _, err := inside(r.git, name); err != nil {
			return err
		}
	}
	return nil
}

// readConfig takes from the config what a snapshot must know, and refuses
// formats that it could not write.
func (r *Repo) readConfig() error {
	data, err := os.ReadFile(r.git.Join("config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // git takes its defaults
	}
	if err != nil {
		return fmt.Errorf("cannot read git's config: %w", err)
	}
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(c); err != nil {
		return gitdir.Foreign("%q cannot be read (%v): mend it", r.git.Join("config"), err)
	}
	core := c.Section("core")
	if core.Option("worktree") != "" || truth(core.Option("bare")) {
		return gitdir.Foreign("%q sets core.worktree or core.bare, so its files lie elsewhere: unset it, or choose another directory", r.git.Join("config"))
	}
	r.noExec = core.HasOption("filemode") && !truth(core.Option("filemode"))
	if hooks := core.Option("hookspath"); filepath.IsLocal(hooks) {
		r.hooks = filepath.ToSlash(filepath.Clean(hooks)) + "/"
	} else if rel, err := filepath.Rel(r.dir, hooks); err == nil && filepath.IsLocal(rel) {
		r.hooks = filepath.ToSlash(rel) + "/"
	}
	for _, o := range c.Section("extensions").Options {
		if !harmless(o) {
			return gitdir.Foreign("%q uses the extension %q, which abl cannot keep: choose another directory, or convert the repository", r.git.Join("config"), o.Key)
		}
	}
	return nil
}

func truth(value string) bool {
	switch value {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// harmless knows the extensions that do not change what abl reads and writes.
func harmless(o *config.Option) bool {
	switch {
	case o.IsKey("noop"), o.IsKey("preciousObjects"), o.IsKey("worktreeConfig"):
		return true
	case o.IsKey("objectFormat"):
		return o.Value == "sha1"
	case o.IsKey("refStorage"):
		return o.Value == "files"
	}
	return false
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
	branch, err := r.git.Branch()
	if err != nil {
		return err
	}
	if branch != r.branch {
		return gitdir.Foreign("%q is on branch %q now and was on %q: switch back, or run abl again", r.dir, branch, r.branch)
	}
	return nil
}
