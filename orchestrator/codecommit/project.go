package codecommit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/roles/environment"
	"abl/roles/model"
)

// Project is where a run works.
type Project struct {
	Self string // what the person calls the program: code-commit, or abl code-commit
	Root string // absolute, without links
	Profile
	Logs string            // absolute; where the folders of the logs are made
	Env  map[string]string // of .env
}

// problem is what keeps a run from beginning, which a person can do something about.
func problem(do, format string, args ...any) error {
	return &environment.Error{Class: environment.Usage, Do: do, Err: fmt.Errorf(format, args...)}
}

// LogsBelow is the folder of the logs as a path of the project, "" when it is elsewhere.
func (p Project) LogsBelow() string {
	if rel, err := filepath.Rel(p.Root, p.Logs); err == nil && filepath.IsLocal(rel) && rel != "." {
		return filepath.ToSlash(rel)
	}
	return ""
}

// Lock keeps others from working here, puts back what a run that was killed has left by
// half, and removes what else it left in the project.
func (p Project) Lock() (unlock func() error, restored []string, err error) {
	file := filepath.Join(p.Root, p.LockFile)
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
		unlock, err = hostfs.Lock(file)
	}
	if errors.Is(err, hostfs.ErrHeld) {
		err = fmt.Errorf("another code-commit works on this project: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, protocol := range []string{V1, V2} {
		paths, torn := Recover(p.Root, ProfileOf(protocol).Stage)
		restored = append(restored, paths...)
		if torn != nil {
			const do = "look at git status; what the edits replaced is in the folder that is named"
			torn = fmt.Errorf("files are changed by half: %w", torn)
			err = errors.Join(err, &environment.Error{Class: environment.Person, Do: do, Err: torn})
		}
	}
	if err == nil {
		err = errors.Join(hostfs.SweepTemps(filepath.Dir(file)), os.RemoveAll(filepath.Join(p.Root, p.Yard)))
	}
	if err != nil {
		return nil, restored, errors.Join(err, unlock())
	}
	return unlock, restored, nil
}

// Tidy removes what a run of either protocol that was killed has left in the files. It
// makes nothing where nobody has worked.
func (p Project) Tidy() (restored []string, err error) {
	for _, name := range []string{V1, V2} {
		p.Profile = ProfileOf(name)
		if _, err := os.Lstat(filepath.Join(p.Root, p.LockFile)); err != nil {
			continue
		}
		unlock, paths, err := p.Lock()
		restored = append(restored, paths...)
		if err != nil {
			return restored, err
		}
		entries, _ := os.ReadDir(p.Logs) // without any, there is nothing to remove
		for _, e := range entries {
			if e.IsDir() {
				err = errors.Join(err, hostfs.SweepTemps(filepath.Join(p.Logs, e.Name())))
			}
		}
		if err := errors.Join(err, unlock()); err != nil {
			return restored, err
		}
	}
	return restored, nil
}

func (p Project) keyFiles() (all []string) {
	for _, provider := range model.Providers() {
		all = append(all, fmt.Sprintf(p.Keys, provider))
	}
	return all
}

// Exposed are the files with keys that git does not leave out. A project of the
// protocol v2 whose .gitignore lacks their folder is refused.
func (p Project) Exposed(ctx context.Context) ([]string, error) {
	if err := p.CheckIgnored(); err != nil && p.Name == V2 {
		return nil, err
	}
	files := append(p.keyFiles(), ".env")
	ignored, err := Ignored(ctx, p.Root, files...)
	if err != nil {
		return nil, problem("the project has to be in a git repository: git init makes one", "%w", err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Lstat(filepath.Join(p.Root, file))
		return err != nil || ignored[file]
	}), nil
}

// CheckIgnored makes sure that .gitignore has a line for the folder that holds the keys,
// and includes nothing of it again: git does not look for exceptions in an ignored
// folder, but the next reader, or the next line, may.
func (p Project) CheckIgnored() error {
	data, err := hostfs.Read(p.Root, ".gitignore", mostText)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return problem("", "%w", err)
	}
	const add = "add a line /" + ConfigDir + " to the end of .gitignore"
	wrong := fmt.Sprintf(".gitignore has no line /%s, so a commit could carry your keys away", ConfigDir)
	do := add + ", which " + p.Self + " init does"
	for i, l := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		l = strings.TrimRight(l, " \t\r")
		if strings.TrimSuffix(strings.TrimPrefix(l, "/"), "/") == ConfigDir {
			wrong = ""
		}
		pattern, negated := strings.CutPrefix(l, "!")
		first, _, _ := strings.Cut(strings.TrimLeft(pattern, "/"), "/")
		if again, _ := filepath.Match(first, ConfigDir); negated && again {
			wrong, do = fmt.Sprintf(".gitignore line %d, %q, includes /%s again, where the keys are", i+1, l, ConfigDir), add
		}
	}
	if wrong == "" {
		return nil
	}
	return problem(do, "%s", wrong)
}

// Changes is how many changes git status shows.
func (p Project) Changes(ctx context.Context) (int, error) {
	out, err := git(ctx, "", "-C", p.Root, "status", "--porcelain", "--", ".")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	return strings.Count(out, "\n"), nil
}

// Ignored says which of some paths of a project git leaves out: by .gitignore files,
// by the repository's info/exclude, and by the person's own excludes. Whether a file
// is tracked makes no difference: what is ignored is not a model's business. No link
// may be on the way to a path.
func Ignored(ctx context.Context, root string, names ...string) (map[string]bool, error) {
	said, err := git(ctx, "./"+strings.Join(names, "\x00./"), "-C", root, "check-ignore", "--no-index", "-z", "--stdin") // a name that begins with a colon is none to git
	const none = 1
	if exit, ended := errors.AsType[*exec.ExitError](err); err != nil && !(ended && exit.ExitCode() == none) {
		return nil, err
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(said, "\x00") {
		ignored[strings.TrimPrefix(name, "./")] = true
	}
	return ignored, nil
}

// git is what the person's own git says.
func git(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := proc.Command(ctx, "git", args...)
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		err = fmt.Errorf("cannot ask git what it ignores, or shows as changed: %w", err)
	}
	return string(out), err
}
