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
	_, err := ordinary(r.git)
	if err == nil {
		err = r.readConfig()
	}
	if err == nil {
		r.branch, err = r.onBranch()
	}
	if err == nil {
		err = r.settled()
	}
	if err == nil {
		err = r.leaveOut()
	}
	return err
}

// ordinary lists the files of .git that are no objects, and refuses what is neither file nor
// folder there: a link leads out of what is mounted read-only, and a socket can be talked to
// through any mount.
func ordinary(d gitdir.Dir) (files []string, err error) {
	below := []string{".", "objects", "objects/pack", "objects/info"} // and all that is below the others
	err = filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.Path, path)
		top, _, _ := strings.Cut(name, "/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return gitdir.Foreign("%q cannot be listed (%v): put back what git makes there", path, err)
		case e.Type()&^fs.ModeDir != 0:
			return gitdir.Foreign("%q is not what git makes there: remove it, and if it is a socket of git's own watcher end that (git fsmonitor--daemon stop, and git config core.fsmonitor false)", path)
		case len(files) == maxInside:
			return gitdir.Foreign("%q holds more than %d files: git pack-refs --all makes one of those in refs", d.Path, maxInside)
		case !e.IsDir():
			files = append(files, name)
		case !slices.Contains([]string{"hooks", "info", "logs", "refs"}, top) && !slices.Contains(below, name):
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// files finds those of .git by a pattern; where nothing can be read are none.
func files(d gitdir.Dir, pattern string) []string {
	all, _ := fs.Glob(os.DirFS(d.Path), pattern)
	return all
}

// harmless are the extensions that do not change what abl reads and writes, and the
// values with which they do not, "" for any.
var harmless = map[string]string{"noop": "", "preciousobjects": "", "worktreeconfig": "", "objectformat": "sha1", "refstorage": "files"}

// readConfig takes from the config what a snapshot must know.
func (r *Repo) readConfig() error {
	c, err := configOf(r.git)
	if err != nil {
		return err
	}
	core := c.Section("core")
	is := func(option string) bool {
		return slices.Contains([]string{"true", "yes", "on", "1"}, core.Option(option))
	}
	if core.Option("worktree") != "" || is("bare") {
		return gitdir.Foreign("%q sets core.worktree or core.bare, so its files lie elsewhere: unset it, or choose another directory", r.git.Join("config"))
	}
	r.noExec = core.HasOption("filemode") && !is("filemode")
	hooks := core.Option("hookspath")
	if filepath.IsAbs(hooks) {
		hooks, _ = filepath.Rel(r.dir, hooks)
	}
	if filepath.IsLocal(hooks) {
		r.hooks = filepath.ToSlash(filepath.Clean(hooks)) + "/"
	}
	return nil
}

// configOf reads the config, and refuses formats that abl could not write. Without one git
// takes its defaults.
func configOf(d gitdir.Dir) (*config.Config, error) {
	path := d.Join("config")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read git's config: %w", err)
	}
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(c); err != nil {
		return nil, gitdir.Foreign("%q cannot be read (%v): mend it", path, err)
	}
	for _, o := range c.Section("extensions").Options {
		if value, known := harmless[strings.ToLower(o.Key)]; !known || value != "" && value != o.Value {
			return nil, gitdir.Foreign("%q uses the extension %q, which abl cannot keep: choose another directory, or convert the repository", path, o.Key)
		}
	}
	return c, nil
}

// unfinished is what git leaves while an operation waits for a person.
var unfinished = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"}

// elsewhere is by what a repository has a part in another.
var elsewhere = []string{"objects/info/alternates", "objects/info/http-alternates", "commondir"}

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
func (r *Repo) onBranch() (string, error) {
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
	found := func(name string) bool {
		_, err := os.Lstat(r.git.Join(name))
		return !errors.Is(err, fs.ErrNotExist)
	}
	if i := slices.IndexFunc(unfinished, found); i >= 0 {
		return gitdir.Foreign("%q: a merge, rebase, pick, revert or bisection is not finished (found %s): git status says how to go on or to abort it", r.dir, unfinished[i])
	}
	if i := slices.IndexFunc(elsewhere, found); i >= 0 {
		return gitdir.Foreign("%q: a part of it lies in another repository (found %s): git repack -a -d and remove that file, or choose another directory", r.dir, path.Base(elsewhere[i]))
	}
	branch, err := r.onBranch()
	if err == nil && branch != r.branch {
		err = gitdir.Foreign("%q is on branch %q now and was on %q: switch back, or run abl again", r.dir, branch, r.branch)
	}
	return err
}

// steering is what in .git decides what a person's git runs and where it reads
// and writes, besides the hooks.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

const (
	maxSteering = 4 << 20 // bytes of a config or a hook
	maxInside   = 100_000 // files of .git that are no objects
)

// Seal says what .git is like now: what steers git by its hash, and where the
// history stands. The index, objects, packs and logs are the person's git's
// own business, and so are the branches of remotes, which it fetches by itself.
// An error that Is ErrForeign names something that must not be there.
func (r *Repo) Seal() (s state.Seal, err error) {
	files, err := ordinary(r.git)
	if err == nil {
		err = r.settled()
	}
	if err == nil {
		s.History, err = r.git.Packed()
	}
	if err != nil {
		return s, err
	}
	s.Steering = map[string]string{}
	for _, name := range files {
		hook := strings.HasPrefix(name, "hooks/") && !strings.HasSuffix(name, ".sample") // git runs no sample
		ref := strings.HasPrefix(name, "refs/") || name == "HEAD"
		if !hook && !ref && !slices.Contains(steering, name) {
			continue
		}
		data, err := hostfs.Read(r.git.Path, name, maxSteering)
		switch {
		case errors.Is(err, hostfs.ErrAbsent): // a ref that was packed just now, say
		case err != nil:
			return s, gitdir.Foreign("%q: %v: put back what git makes there", r.git.Path, err)
		case ref:
			s.History[name] = strings.TrimSpace(string(data))
		default:
			s.Steering[name] = fmt.Sprintf("%x%s", sha256.Sum256(data), runs(r.git.Join(name)))
		}
	}
	maps.DeleteFunc(s.History, func(name, _ string) bool {
		return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
	})
	return s, nil
}

// runs tells of the mode of a file, since git runs a hook only when it is executable.
func runs(path string) string {
	if info, err := os.Lstat(path); err == nil && info.Mode()&0o111 != 0 {
		return "+x"
	}
	return ""
}
