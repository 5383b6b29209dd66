package codecommit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/wording"
	"abl/prompts"
	"abl/roles/environment"
	"abl/roles/model"
)

// Project is the project of a run.
type Project struct {
	// The command's name: code-commit, or abl code-commit.
	Self string
	Root string // absolute, without links
	Profile
	Logs string            // absolute; contains the log folders
	Env  map[string]string // of .env
}

// problem returns an error before a run that the user can fix.
func problem(do, format string, args ...any) error {
	return &environment.Error{Class: environment.Usage, Do: do, Err: fmt.Errorf(format, args...)}
}

// LogsBelow returns the folder of the logs relative to the project, "" if it is outside.
func (p Project) LogsBelow() string {
	if rel, err := filepath.Rel(p.Root, p.Logs); err == nil && filepath.IsLocal(rel) && rel != "." {
		return filepath.ToSlash(rel)
	}
	return ""
}

// lockFile is a file in Profile.Own.
const lockFile = ".lock"

// Lock locks the project. It undoes interrupted changes of a killed run and removes its other files.
func (p Project) Lock() (unlock func() error, restored []string, err error) {
	own := filepath.Join(p.Root, p.Own)
	if err = hostfs.MkdirAll(p.Root, p.Own); err == nil {
		unlock, err = hostfs.Lock(filepath.Join(own, lockFile))
	}
	if errors.Is(err, hostfs.ErrHeld) {
		err = fmt.Errorf("another code-commit works on this project: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, protocol := range []string{V1, V2} {
		paths, torn := Recover(p.Root, ProfileOf(protocol).Stage())
		restored = append(restored, paths...)
		if torn != nil {
			const do = "run git status, and restore the old files from the directory in this message"
			torn = fmt.Errorf("an interrupted change was not undone: %w", torn)
			err = errors.Join(err, &environment.Error{Class: environment.Person, Do: do, Err: torn})
		}
	}
	if err == nil {
		err = errors.Join(hostfs.SweepTemps(own), os.RemoveAll(p.Handed().Root))
	}
	if err != nil {
		return nil, restored, errors.Join(err, unlock())
	}
	return unlock, restored, nil
}

// Tidy removes what a killed run of either protocol left. It creates nothing.
func (p Project) Tidy() (restored []string, err error) {
	for _, name := range []string{V1, V2} {
		p.Profile = ProfileOf(name)
		if _, err := os.Lstat(filepath.Join(p.Root, p.Own, lockFile)); err != nil {
			continue
		}
		unlock, paths, err := p.Lock()
		restored = append(restored, paths...)
		if err != nil {
			return restored, err
		}
		folders, _ := fs.Glob(os.DirFS(p.Logs), "2*") // named after their time
		for _, name := range folders {
			err = errors.Join(err, hostfs.SweepTemps(filepath.Join(p.Logs, name)))
		}
		if err := errors.Join(err, unlock()); err != nil {
			return restored, err
		}
	}
	return restored, nil
}

func (p Project) keyFiles() (all []string) {
	for _, provider := range model.Providers() {
		all = append(all, p.KeyFile(provider.Name))
	}
	return all
}

// Exposed returns the files with keys that git does not ignore. It fails for a project of the
// protocol v2 whose .gitignore lacks their folder.
func (p Project) Exposed(ctx context.Context) ([]string, error) {
	if err := p.CheckIgnored(); err != nil && p.Name == V2 {
		return nil, err
	}
	files := append(p.keyFiles(), ".env")
	ignored, err := Ignored(ctx, p.Root, files...)
	if _, is := errors.AsType[*environment.Error](err); is {
		return nil, err
	}
	if err != nil {
		return nil, problem("the project must be in a git repository: run git init", "%w", err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Lstat(filepath.Join(p.Root, file))
		return err != nil || ignored[file]
	}), nil
}

// CheckIgnored checks that .gitignore has a line for the folder with the keys and no exception for
// it. git ignores exceptions in an ignored folder, but other tools may not.
func (p Project) CheckIgnored() error {
	text, _, err := p.text(".gitignore")
	if err != nil {
		return err
	}
	const add = "add a line /" + ConfigDir + " to the end of .gitignore"
	wrong := fmt.Sprintf(".gitignore has no line /%s, so a commit could contain your keys", ConfigDir)
	do := add + ", as " + p.Self + " init does"
	for i, l := range strings.Split(wording.Unix(text), "\n") {
		l = strings.TrimRight(l, " \t")
		pattern, negated := strings.CutPrefix(l, "!")
		first, _, _ := strings.Cut(strings.TrimLeft(pattern, "/"), "/")
		again, _ := filepath.Match(first, ConfigDir)
		switch {
		case negated && again:
			wrong, do = fmt.Sprintf(".gitignore line %d, %q, includes /%s again, which contains the keys", i+1, l,
				ConfigDir), add
		case strings.TrimSuffix(strings.TrimPrefix(l, "/"), "/") == ConfigDir:
			wrong = ""
		}
	}
	if wrong == "" {
		return nil
	}
	return problem(do, "%s", wrong)
}

// Unchanged fails if git status shows changes. In a submodule git would run filters of the
// submodule's own config, so Unchanged only compares the submodule's commit.
func (p Project) Unchanged(ctx context.Context) error {
	options, err := withoutFilters(ctx, p.Root)
	var out string
	if err == nil {
		out, err = git(ctx, "", p.Root, append(options, "status", "--porcelain", "--ignore-submodules=dirty", "--", ".")...)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	if n := strings.Count(out, "\n"); n > 0 {
		err = fmt.Errorf("git status shows %d changes, and --require-clean was given", n)
		return &environment.Error{Class: environment.Person, Do: "commit or stash them first", Err: err}
	}
	return nil
}

// withoutFilters returns options that disable the filters in the repository's own config. Filters of
// the user's config, such as those of Git LFS, stay.
func withoutFilters(ctx context.Context, root string) (options []string, err error) {
	said, err := git(ctx, "", root, "config", "-z", "--show-scope", "--name-only", "--get-regexp", `^filter\.`)
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && exit.ExitCode() == 1 {
		return nil, nil // there is no filter
	}
	fields := strings.Split(said, "\x00") // a scope and a name for each setting
	for i := 0; i+1 < len(fields) && err == nil; i += 2 {
		scope, name := fields[i], fields[i+1]
		switch {
		case scope != "local" && scope != "worktree":
		case strings.Contains(name, "="):
			err = fmt.Errorf("the config of the repository has the filter %q, whose name has a =: rename it", name)
		case strings.HasSuffix(name, ".required"):
			options = append(options, "-c", name+"=false")
		default:
			options = append(options, "-c", name+"=")
		}
	}
	return options, err
}

// Ignored returns which of some paths of a project git ignores: by .gitignore files, by the
// repository's info/exclude, or by the user's own excludes. Tracked files are treated alike. No link
// may be in a path.
func Ignored(ctx context.Context, root string, names ...string) (map[string]bool, error) {
	// git treats a name that begins with a colon specially.
	asked := "./" + strings.Join(names, "\x00./")
	said, err := git(ctx, asked, root, "check-ignore", "--no-index", "-z", "--stdin")
	const noMatch = 1
	if exit, ended := errors.AsType[*exec.ExitError](err); err != nil && !(ended && exit.ExitCode() == noMatch) {
		return nil, err
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(said, "\x00") {
		ignored[strings.TrimPrefix(name, "./")] = true
	}
	return ignored, nil
}

// git runs the user's git in a folder and returns its output.
func git(ctx context.Context, stdin, dir string, args ...string) (string, error) {
	cmd := proc.Git(ctx, dir, args...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("cannot list ignored or changed files: %w %s", err, stderr.String())
		if strings.Contains(stderr.String(), "dubious ownership") {
			do := "if you trust its owner: git config --global --add safe.directory " + dir
			err = &environment.Error{Class: environment.Person, Do: do, Err: err}
		}
	}
	return string(out), err
}

// mostText is the largest size of a file of the user, in bytes.
const mostText = 256 << 20

// text returns a file of the project, and whether it exists. A file without a name does not exist.
func (p Project) text(name string) (text string, there bool, err error) {
	data, err := hostfs.Read(p.Root, name, mostText)
	switch {
	case name == "" || errors.Is(err, hostfs.ErrAbsent):
		return "", false, nil
	case err != nil:
		return "", false, problem("", "%w", err)
	}
	return hostfs.Text(data), true, nil
}

// need returns a file that must exist.
func (p Project) need(name, what, do string) (string, error) {
	text, there, err := p.text(name)
	if err == nil && !there {
		err = problem(do, "cannot find %s, %s", name, what)
	}
	return text, err
}

// codebase returns the code that the model gets.
func (p Project) codebase() (string, error) {
	do := "create it with ./codeRollup.sh, which " + p.Self + " init writes, or with your own script"
	text, err := p.need(p.Codebase, "the code rollup", do)
	if err == nil && strings.TrimSpace(text) == "" {
		err = problem(do, "%s, the code rollup, is empty", p.Codebase)
	}
	return text, err
}

// ReadInputs reads the inputs of the prompts of a run.
func (p Project) ReadInputs(protected []string) (in Inputs, err error) {
	in.Protected = protected
	if in.Query, err = p.need(p.Query, "the query", "write your request into it; "+p.Self+" init creates the files"); err != nil {
		return in, err
	}
	if in.Codebase, err = p.codebase(); err != nil {
		return in, err
	}
	if p.Name == V1 {
		in.System, err = p.need(p.System, "the system prompt", "write the instructions for the model into it")
		return in, err
	}
	there := false
	if in.Structure, there, err = p.text(p.Structure); !there {
		in.Structure = prompts.CommitStructure
	}
	return in, err
}

// ReportInputs returns the user's question, if any, and the code.
func (p Project) ReportInputs() (in Inputs, err error) {
	// The last one counts.
	for _, name := range []string{p.Query, ConfigDir + "/consistency-query.txt"} {
		query, there, err := p.text(name)
		if err != nil {
			return in, err
		}
		if there && query != firstQuery { // the user has written into it
			in.Query = query
		}
	}
	in.Codebase, err = p.codebase()
	return in, err
}

// The files that init writes.
var (
	//go:embed first/query.txt
	firstQuery string
	//go:embed first/build.sh
	firstBuild string
	//go:embed first/codeRollup.sh
	firstRollup string
)

// FirstFiles returns the paths and contents of the files that init writes for a project of the
// protocol v2.
func (p Profile) FirstFiles() [][2]string {
	return [][2]string{
		{p.Query, firstQuery},
		{p.Structure, prompts.CommitStructure},
		{Script, firstBuild},
		{"codeRollup.sh", firstRollup},
	}
}

// Untouched fails if the user has not written one of init's files yet, because a run would cost
// money and achieve nothing.
func (p Project) Untouched(query string, dry bool) error {
	const write = "write into it what you want changed"
	build, _, _ := p.text(Script) // Runnable reports errors
	switch {
	case strings.TrimSpace(query) == "":
		return problem(write, "%s is empty", p.Query)
	case query == firstQuery:
		return problem(write, "%s is unchanged since init", p.Query)
	case build == firstBuild && !dry:
		return problem("write into it how this project is built and tested",
			"build.sh is unchanged since init, so no build can pass")
	}
	return nil
}

// Key is a provider's key. Where is where it was found, since the user may have several.
type Key struct {
	Value, Where string
	Personal     bool // of the environment, not of the project
}

// provider returns the provider of a model.
func (p Project) provider(name string) (model.Provider, error) {
	listed, _, err := p.text(p.Models)
	if err != nil {
		return model.Provider{}, err
	}
	of, err := model.Of(name, p.Models, []byte(listed))
	if err != nil {
		return of, problem("", "%w", err)
	}
	if of.Name != "" {
		return of, nil
	}
	do := "use a model of Gemini, Claude or OpenAI"
	if p.Models != "" {
		do = "add a line to " + p.Models + ": the name of the model and its provider, " + model.Words
	}
	return of, problem(do, "model %q is of an unknown provider", name)
}

// keys returns the keys for a provider in order of precedence: from its file, from the environment,
// from .env.
func (p Project) keys(of model.Provider) (all []Key, err error) {
	file := p.KeyFile(of.Name)
	text, _, err := p.text(file)
	for _, k := range []Key{
		{text, file, false},
		{os.Getenv(of.KeyVar), of.KeyVar + " of the environment", true},
		{p.Env[of.KeyVar], of.KeyVar + " in .env", false},
	} {
		k.Value = strings.Trim(k.Value, "\ufeff \t\r\n")
		if k.Value != "" {
			all = append(all, k)
		}
	}
	return all, err
}

// key returns the key for a model.
func (p Project) key(name string, of model.Provider) (Key, error) {
	all, err := p.keys(of)
	if err != nil {
		return Key{}, err
	}
	if len(all) == 0 {
		do := "put it into " + of.KeyVar + " in the environment or in .env"
		if file := p.KeyFile(of.Name); file != "" {
			do += ", or into " + file
		}
		return Key{}, problem(do, "cannot find a key for %s", name)
	}
	k, odd := all[0], func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if len(k.Value) < redact.Shortest || strings.ContainsFunc(k.Value, odd) {
		const why = "it is too short, or has blanks, line ends or other invalid characters"
		err = problem("", "the content of %s is not a key: %s", k.Where, why)
	}
	return k, err
}

// Client returns the client for a model.
func (p Project) Client(name string, c model.Config) (client *model.Client, key Key, err error) {
	if c.Provider, err = p.provider(name); err == nil {
		key, err = p.key(name, c.Provider)
	}
	if err != nil {
		return nil, key, err
	}
	c.Key, c.Base = key.Value, os.Getenv(c.Provider.BaseVar)
	if c.Base == "" && !key.Personal {
		// The project's address gets only the project's key, never the user's own key.
		c.Base = p.Env[c.Provider.BaseVar]
	}
	if client, err = model.New(name, c); err != nil {
		err = problem("", "%w", err)
	}
	return client, key, err
}

// Secrets returns two redactors, and calls hide with all secrets: the key in use, other providers' keys, and
// secrets of .env. all removes them from everything that a run writes and sends; keys removes only the keys.
// The last two characters of each secret stay visible.
func (p Project) Secrets(key string, hide func(...string)) (all, keys *redact.Redactor) {
	known := []string{key}
	for _, provider := range model.Providers() {
		// An unreadable file cannot leak in this run.
		others, _ := p.keys(provider)
		for _, k := range others {
			known = append(known, k.Value)
		}
	}
	secrets, _ := redact.Secrets(p.Env, true)
	secrets = append(secrets, known...)
	hide(secrets...)
	return redact.New(secrets...), redact.New(known...)
}
