package codecommit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
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

// ErrTorn is a run that was killed while it changed files, which cannot be put back.
var ErrTorn = errors.New("files are changed by half")

// LogsBelow is the folder of the logs as a path of the project, "" when it is elsewhere.
func (p Project) LogsBelow() string {
	if rel, err := filepath.Rel(p.Root, p.Logs); err == nil && filepath.IsLocal(rel) && rel != "." {
		return filepath.ToSlash(rel)
	}
	return ""
}

// Guard is what protects the project's files, and the same in words.
func (p Project) Guard() (Guard, []string, error) {
	if p.Name == V1 {
		g := NewV1(p.Root, p.LogsBelow())
		return g, g.List(), nil
	}
	g, err := New(p.Root, p.LogsBelow())
	if err != nil {
		return nil, nil, problem("", "%w", err)
	}
	return g, g.List(), nil
}

func (p Project) lockFile() string {
	dir := ConfigDir
	if p.Name == V1 {
		dir = "logs"
	}
	return filepath.Join(p.Root, dir, ".lock")
}

// Lock keeps others from working here, puts back what a run that was killed has left by
// half, and removes what else it left in the project.
func (p Project) Lock() (unlock func() error, restored []string, err error) {
	file := p.lockFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, nil, err
	}
	if unlock, err = hostfs.Lock(file); err != nil {
		if errors.Is(err, hostfs.ErrHeld) {
			err = fmt.Errorf("another code-commit works on this project: %w", err)
		}
		return nil, nil, err
	}
	for _, stage := range Stages() {
		paths, problem := Recover(p.Root, stage)
		restored = append(restored, paths...)
		if problem != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrTorn, problem))
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
		if p.Profile, err = ProfileOf(name); err != nil {
			return restored, err
		}
		if _, err := os.Lstat(p.lockFile()); err != nil {
			continue
		}
		unlock, paths, err := p.Lock()
		restored = append(restored, paths...)
		if err != nil {
			return restored, err
		}
		entries, err := os.ReadDir(p.Logs)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
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

// Exposed are the files with a key that git does not leave out. A project of the
// protocol v2 whose .gitignore lacks their folder is refused.
func (p Project) Exposed(ctx context.Context) ([]string, error) {
	if p.Ignored {
		return nil, p.CheckIgnored()
	}
	return p.unignored(ctx, slices.Sorted(maps.Values(p.Keys))...)
}

// unignored are those of some files that are there, and not ignored by git.
func (p Project) unignored(ctx context.Context, files ...string) (all []string, err error) {
	ignored, err := Ignored(ctx, p.Root, files...)
	if err != nil {
		return nil, problem("", "%w", err)
	}
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(p.Root, file)); err == nil && !ignored[file] {
			all = append(all, file)
		}
	}
	return all, nil
}

// Changes is how many changes git status shows.
func (p Project) Changes(ctx context.Context) (int, error) {
	out, err := proc.Command(ctx, "git", "-C", p.Root, "status", "--porcelain", "--", ".").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: cannot ask git for its status: %w: %s", ErrEnvironment, err, strings.TrimSpace(string(out)))
	}
	return strings.Count(string(out), "\n"), nil
}

// Key is a provider's key. Where says where it was found, since a person may have
// several.
type Key struct {
	Value, Where string
	Personal     bool // of the environment, not of the project
	Dotenv       bool
}

// FindKey looks for a provider's key: in its file, then in the environment, then in
// .env.
func (p Project) FindKey(name, provider string) (k Key, err error) {
	const most = 64 << 10
	file, variable := p.Keys[provider], model.KeyVar(provider)
	data, err := []byte(nil), hostfs.ErrAbsent
	if file != "" {
		data, err = hostfs.Read(p.Root, file, most)
	}
	switch {
	case err == nil:
		k = Key{Value: string(data), Where: file}
	case !errors.Is(err, hostfs.ErrAbsent):
		return k, problem("", "%w", err)
	case os.Getenv(variable) != "":
		k = Key{Value: os.Getenv(variable), Where: variable + " of the environment", Personal: true}
	default:
		k = Key{Value: p.Env[variable], Where: variable + " in .env", Dotenv: true}
	}
	k.Value = strings.TrimSpace(strings.TrimPrefix(k.Value, "\ufeff"))
	switch {
	case k.Value == "" && data != nil:
		return k, problem("put the key into it, or remove it to use "+variable, "%s is empty", file)
	case k.Value == "":
		do := "put it into " + variable + " in the environment or in .env"
		if file != "" {
			do += ", or into " + file
		}
		return k, problem(do, "cannot find a key for %s", name)
	case strings.ContainsFunc(k.Value, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return k, problem("", "what %s holds is no key: it has blanks, line ends or other characters that no key has", k.Where)
	}
	return k, nil
}

// Secrets are the provider's key, other providers' keys and what .env keeps secret. Of
// each only the last two characters are shown.
type Secrets struct {
	All   *redact.Redactor
	keys  *redact.Redactor
	short *strings.Replacer // of a key too short to be sure of, but the person's
}

// Secrets are those of the project, with the key that a run uses.
func (p Project) Secrets(key string) Secrets {
	keys := []string{key}
	for _, provider := range model.Providers() {
		keys = append(keys, os.Getenv(model.KeyVar(provider)), p.Env[model.KeyVar(provider)])
		if data, err := hostfs.Read(p.Root, p.Keys[provider], 64<<10); err == nil {
			keys = append(keys, strings.TrimSpace(string(data)))
		}
	}
	var s Secrets
	s.keys, _ = redact.New(keys...)
	secrets, _ := redact.Secrets(p.Env, true)
	s.All, _ = redact.New(append(secrets, keys...)...)
	s.short = strings.NewReplacer()
	if key != "" && len(key) < redact.Shortest {
		s.short = strings.NewReplacer(key, "[secret]")
	}
	return s
}

// Clean takes the secrets out of all that is logged or asked.
func (s Secrets) Clean(text string) string { return s.short.Replace(s.All.String(text)) }

// Hold says whether a text holds a provider's key, in whatever spelling.
func (s Secrets) Hold(text string) bool { return s.keys.String(text) != text }
