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

// Project is where a run works.
type Project struct {
	// What the person calls the program: code-commit, or abl code-commit.
	Self string
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

// lockFile is in the tool's own folder.
const lockFile = ".lock"

// Lock keeps others from working here, puts back what a run that was killed has left by
// half, and removes what else it left in the project.
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
			const do = "look at git status; what the edits replaced is in the folder that is named"
			torn = fmt.Errorf("files are changed by half: %w", torn)
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

// Tidy removes what a run of either protocol that was killed has left in the files. It
// makes nothing where nobody has worked.
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
		folders, _ := fs.Glob(os.DirFS(p.Logs), "2*") // which are named by the time
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
		all = append(all, p.KeyFile(provider))
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
	if _, told := errors.AsType[*environment.Error](err); told {
		return nil, err
	}
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
	text, _, err := p.text(".gitignore")
	if err != nil {
		return err
	}
	const add = "add a line /" + ConfigDir + " to the end of .gitignore"
	wrong := fmt.Sprintf(".gitignore has no line /%s, so a commit could carry your keys away", ConfigDir)
	do := add + ", which " + p.Self + " init does"
	for i, l := range strings.Split(wording.Unix(text), "\n") {
		l = strings.TrimRight(l, " \t")
		pattern, negated := strings.CutPrefix(l, "!")
		first, _, _ := strings.Cut(strings.TrimLeft(pattern, "/"), "/")
		again, _ := filepath.Match(first, ConfigDir)
		switch {
		case negated && again:
			wrong, do = fmt.Sprintf(".gitignore line %d, %q, includes /%s again, where the keys are", i+1, l, ConfigDir), add
		case strings.TrimSuffix(strings.TrimPrefix(l, "/"), "/") == ConfigDir:
			wrong = ""
		}
	}
	if wrong == "" {
		return nil
	}
	return problem(do, "%s", wrong)
}

// Unchanged is the error of a project in which git status shows changes. In a submodule git
// would run filters of the submodule's own config, so only the submodule's commit is compared.
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

// withoutFilters returns the options with which git runs no filter that the repository's own
// config names. The filters of the user's config, such as those of Git LFS, stay.
func withoutFilters(ctx context.Context, root string) (options []string, err error) {
	said, err := git(ctx, "", root, "config", "-z", "--show-scope", "--name-only", "--get-regexp", `^filter\.`)
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && exit.ExitCode() == 1 {
		return nil, nil // there is none
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

// Ignored says which of some paths of a project git leaves out: by .gitignore files,
// by the repository's info/exclude, and by the person's own excludes. Whether a file
// is tracked makes no difference: what is ignored is not a model's business. No link
// may be on the way to a path.
func Ignored(ctx context.Context, root string, names ...string) (map[string]bool, error) {
	// A name that begins with a colon is none to git.
	asked := "./" + strings.Join(names, "\x00./")
	said, err := git(ctx, asked, root, "check-ignore", "--no-index", "-z", "--stdin")
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

// git runs the user's git in a folder and returns what it prints.
func git(ctx context.Context, stdin, dir string, args ...string) (string, error) {
	cmd := proc.Git(ctx, dir, args...)
	var voice strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &voice
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("cannot ask git what it ignores, or shows as changed: %w %s", err, voice.String())
		if strings.Contains(voice.String(), "dubious ownership") {
			do := "if you trust its owner: git config --global --add safe.directory " + dir
			err = &environment.Error{Class: environment.Person, Do: do, Err: err}
		}
	}
	return string(out), err
}

// mostText is how large a file of the person's may be.
const mostText = 256 << 20

// text is a file of the project's, and whether it is there. One that has no name is not.
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

// need is a file that has to be there.
func (p Project) need(name, what, do string) (string, error) {
	text, there, err := p.text(name)
	if err == nil && !there {
		err = problem(do, "cannot find %s, %s", name, what)
	}
	return text, err
}

// codebase is the code that the model is shown.
func (p Project) codebase() (string, error) {
	do := "make it with ./codeRollup.sh, which " + p.Self + " init writes, or with a script of your own"
	text, err := p.need(p.Codebase, "the code rollup", do)
	if err == nil && strings.TrimSpace(text) == "" {
		err = problem(do, "%s, the code rollup, is empty", p.Codebase)
	}
	return text, err
}

// ReadInputs reads what the prompts of a run are made of.
func (p Project) ReadInputs(protected []string) (in Inputs, err error) {
	in.Protected = protected
	if in.Query, err = p.need(p.Query, "the query", "write what you want into it; "+p.Self+" init makes the files"); err != nil {
		return in, err
	}
	if in.Codebase, err = p.codebase(); err != nil {
		return in, err
	}
	if p.Name == V1 {
		in.System, err = p.need(p.System, "the system prompt", "write into it what is to be said to the model")
		return in, err
	}
	there := false
	if in.Structure, there, err = p.text(p.Structure); !there {
		in.Structure = prompts.CommitStructure
	}
	return in, err
}

// ReportInputs are what a person asks about, if anything, and the code.
func (p Project) ReportInputs() (in Inputs, err error) {
	// The last one counts.
	for _, name := range []string{p.Query, ConfigDir + "/consistency-query.txt"} {
		query, there, err := p.text(name)
		if err != nil {
			return in, err
		}
		if there && query != firstQuery { // somebody has written into it
			in.Query = query
		}
	}
	in.Codebase, err = p.codebase()
	return in, err
}

// What init writes.
var (
	//go:embed first/query.txt
	firstQuery string
	//go:embed first/build.sh
	firstBuild string
	//go:embed first/codeRollup.sh
	firstRollup string
)

// FirstFiles are what a project of the protocol v2 needs of the person, as they stand before
// anybody has written into them: paths, each with its text.
func (p Profile) FirstFiles() [][2]string {
	return [][2]string{{p.Query, firstQuery}, {p.Structure, prompts.CommitStructure}, {Script, firstBuild}, {"codeRollup.sh", firstRollup}}
}

// Untouched says which of init's files a person still has to write: a run with them
// would cost money and come to nothing.
func (p Project) Untouched(query string, dry bool) error {
	const write = "write into it what you want changed"
	build, _, _ := p.text(Script) // whether it can be run is told by others
	switch {
	case strings.TrimSpace(query) == "":
		return problem(write, "%s is empty", p.Query)
	case query == firstQuery:
		return problem(write, "%s is as init wrote it", p.Query)
	case build == firstBuild && !dry:
		return problem("write into it how this project is built and tested", "build.sh is as init wrote it, so no build can pass")
	}
	return nil
}

// Key is a provider's key. Where says where it was found, since a person may have
// several.
type Key struct {
	Value, Where string
	Personal     bool // of the environment, not of the project
}

// provider is who answers for a model, of those that are known and the project's own.
func (p Project) provider(name string) (string, error) {
	listed, _, err := p.text(p.Models)
	if err != nil {
		return "", err
	}
	known, err := model.Known().With(p.Models, []byte(listed))
	if err != nil {
		return "", problem("", "%w", err)
	}
	if provider := known[name]; provider != "" {
		return provider, nil
	}
	do := ""
	if near := wording.Near(name, known.Names()); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	} else if p.Models != "" {
		do = "a line in " + p.Models + " adds one: its name and its provider, " + strings.Join(model.Providers(), " or ")
	}
	return "", problem(do, "--model must be %s, not %q", strings.Join(known.Names(), " or "), name)
}

// keys are those that there are for a provider, in the order in which they count: in its
// file, in the environment, in .env.
func (p Project) keys(provider string) (all []Key, err error) {
	variable, file := model.KeyVar(provider), p.KeyFile(provider)
	text, _, err := p.text(file)
	for _, k := range []Key{
		{text, file, false}, {os.Getenv(variable), variable + " of the environment", true}, {p.Env[variable], variable + " in .env", false},
	} {
		if k.Value = strings.Trim(k.Value, "\ufeff \t\r\n"); k.Value != "" {
			all = append(all, k)
		}
	}
	return all, err
}

// key is the one that a model is asked with.
func (p Project) key(name, provider string) (Key, error) {
	all, err := p.keys(provider)
	if err != nil {
		return Key{}, err
	}
	if len(all) == 0 {
		do := "put it into " + model.KeyVar(provider) + " in the environment or in .env"
		if file := p.KeyFile(provider); file != "" {
			do += ", or into " + file
		}
		return Key{}, problem(do, "cannot find a key for %s", name)
	}
	k, odd := all[0], func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if len(k.Value) < redact.Shortest || strings.ContainsFunc(k.Value, odd) {
		err = problem("", "what %s holds is no key: it is too short, or has blanks, line ends or other characters that no key has", k.Where)
	}
	return k, err
}

// Client asks a model.
func (p Project) Client(name string, c model.Config) (client *model.Client, key Key, err error) {
	if c.Provider, err = p.provider(name); err == nil {
		key, err = p.key(name, c.Provider)
	}
	if err != nil {
		return nil, key, err
	}
	c.Key, c.Base = key.Value, os.Getenv(model.BaseVar(c.Provider))
	if c.Base == "" && !key.Personal {
		// Where a project wants its own key to go; the person's own key goes nowhere on its word.
		c.Base = p.Env[model.BaseVar(c.Provider)]
	}
	if client, err = model.New(name, c); err != nil {
		err = problem("", "%w", err)
	}
	return client, key, err
}

// Secrets are what a run takes out of all that it writes and asks, and what hide takes out of
// all that is shown: the key that it uses, other providers' keys, and what .env keeps secret.
// Of each only the last two characters stay. keys know the keys alone.
func (p Project) Secrets(key string, hide func(...string)) (all, keys *redact.Redactor) {
	known := []string{key}
	for _, provider := range model.Providers() {
		// What cannot be read is no secret of this run.
		others, _ := p.keys(provider)
		for _, k := range others {
			known = append(known, k.Value)
		}
	}
	keys, _ = redact.New(known...)
	secrets, _ := redact.Secrets(p.Env, true)
	secrets = append(secrets, known...)
	hide(secrets...)
	all, _ = redact.New(secrets...)
	return all, keys
}
