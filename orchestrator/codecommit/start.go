package codecommit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/nearest"
	"abl/prompts"
	"abl/roles/model"
)

const (
	firstBuild = `#!/bin/sh
# Exit code 0 means that the project builds. Put your own commands here:
# compile, check, test.
set -eu
echo "build.sh does not say yet how to build this project" >&2
exit 1
`
	firstQuery  = "Describe here, in your own words, the change that you want.\n"
	firstRollup = `#!/bin/sh
# Writes agent-config/codeRollup.txt, the code that the model is shown: every text
# file that git does not ignore, but for files with a private key and for the names
# below, in any folder. Add here what else it need not see, or must not.
set -eu
set -- .
for name in '.env*' '*.pem' '*.key' '*.p12' '*.pfx' '*.keystore' '*.jks' \
  'id_rsa*' 'id_ed25519*' 'id_ecdsa*' '*-key.txt' .npmrc .netrc .pypirc \
  'credentials*' 'secrets.*' '*.sum' '*.lock' package-lock.json \
  npm-shrinkwrap.json pnpm-lock.yaml packages.lock.json gradle.lockfile; do
  set -- "$@" ":(exclude,glob,icase)**/$name"
done
files=$(mktemp)
trap 'rm -f "$files"' EXIT
git ls-files -z --cached --others --exclude-standard -- "$@" >"$files"
xargs -0 sh -ec 'for f; do
  [ -f "$f" ] && [ ! -L "$f" ] && { [ ! -s "$f" ] || grep -Iq -- . "$f"; } || continue
  ! grep -q -- "PRIVATE KEY-\{5\}" "$f" || continue
  echo "--- FILE $f ---"; cat -- "$f"; echo
done' - <"$files" >agent-config/codeRollup.txt
`
)

// Made is a step of Init.
type Made struct {
	Do   string `json:"do"` // write, add or keep
	Path string `json:"path"`
}

// Init makes the files that a run reads. What is there stays as it is.
func (p Project) Init(ctx context.Context) (steps []Made, err error) {
	if err := os.MkdirAll(filepath.Join(p.Root, ConfigDir), 0o755); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name, text string
		perm       os.FileMode
	}{
		{p.Query, firstQuery, 0o644}, {ConfigDir + "/project-structure.txt", prompts.CommitStructure, 0o644},
		{Script, firstBuild, 0o755}, {"codeRollup.sh", firstRollup, 0o755},
	} {
		do, err := appendTo(filepath.Join(p.Root, f.name), f.text, os.O_EXCL, f.perm)
		if err != nil {
			return nil, err
		}
		steps = append(steps, Made{do, f.name})
	}
	do, err := p.ignore(ctx)
	return append(steps, Made{do, ".gitignore"}), err
}

// appendTo adds to a file, or, with O_EXCL, makes it unless something stands there.
func appendTo(path, text string, how int, perm os.FileMode) (do string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|how, perm)
	if errors.Is(err, fs.ErrExist) {
		return "keep", nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return "write", errors.Join(err, f.Close())
}

// ignore adds to .gitignore what has to stay out of the repository.
func (p Project) ignore(ctx context.Context) (do string, err error) {
	const most = 1 << 20
	data, err := hostfs.Read(p.Root, ".gitignore", most)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return "", err
	}
	ignored, err := Ignored(ctx, p.Root, "logs/x", ".env")
	if err != nil {
		return "", err
	}
	add := ""
	if p.CheckIgnored() != nil {
		add += "/agent-config\n"
	}
	if !ignored["logs/x"] {
		add += "/logs\n"
	}
	if !ignored[".env"] {
		add += ".env\n"
	}
	if add == "" {
		return "keep", nil
	}
	_, err = appendTo(filepath.Join(p.Root, ".gitignore"), line(string(data))[len(data):]+add, 0, 0o644)
	return "add", err
}

// Untouched says which of Init's files a person still has to write: a run with them
// would cost money and come to nothing.
func (p Project) Untouched(query string, dry bool) error {
	const write = "write into it what you want changed"
	if strings.TrimSpace(query) == "" {
		return problem(write, "%s is empty", p.Query)
	}
	if query == firstQuery {
		return problem(write, "%s is as init wrote it", p.Query)
	}
	data, err := hostfs.Read(p.Root, Script, int64(len(firstBuild)))
	if err == nil && string(data) == firstBuild && !dry {
		return problem("write into it how this project is built and tested", "build.sh is as init wrote it, so no build can pass")
	}
	return nil
}

// Provider is who answers for a model, of those that are known and the project's own.
func (p Project) Provider(name string) (string, error) {
	const most = 64 << 10
	known := model.Known()
	if p.Models != "" {
		data, err := hostfs.Read(p.Root, p.Models, most)
		if err == nil {
			known, err = known.With(p.Models, data)
		}
		if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return "", problem("", "%w", err)
		}
	}
	if provider := known[name]; provider != "" {
		return provider, nil
	}
	do := ""
	if near := nearest.Word(name, known.Names()); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	} else if p.Models != "" {
		do = "a line in " + p.Models + " adds one: its name and its provider, " + strings.Join(model.Providers(), " or ")
	}
	return "", problem(do, "--model must be %s, not %q", strings.Join(known.Names(), " or "), name)
}

// Client asks a model. warn is told of a file with the key that git does not ignore.
func (p Project) Client(ctx context.Context, name string, c model.Config, warn func(file string)) (*model.Client, Key, error) {
	var err error
	if c.Provider, err = p.Provider(name); err != nil {
		return nil, Key{}, err
	}
	key, err := p.FindKey(name, c.Provider)
	if err != nil {
		return nil, key, err
	}
	if key.Dotenv {
		files, err := p.unignored(ctx, ".env")
		if err != nil {
			return nil, key, err
		}
		for _, file := range files {
			warn(file)
		}
	}
	c.Key, c.Base = key.Value, os.Getenv(model.BaseVar(c.Provider))
	if c.Base == "" && !key.Personal {
		c.Base = p.Env[model.BaseVar(c.Provider)] // where a project wants its own key to go; the person's own key goes nowhere on its word
	}
	client, err := model.New(name, c)
	if err != nil {
		err = problem("", "%w", err)
	}
	return client, key, err
}
