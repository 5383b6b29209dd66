package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/codecommit/guard"
	"abl/prompts"
	"abl/roles/model"
)

func initCommand(self string) cli.Command {
	return cli.Command{
		Name: "init", Usage: "make the files that a run reads",
		Long: `Makes agent-config/ with a query to fill in and a text about the project's
structure, a build.sh that fails until you say how to build, and lines in
.gitignore that keep agent-config, logs and .env out of the repository. What is
there already stays as it is.`,
		Codes: Codes(),
		Flags: []cli.Flag{{Name: "json", Usage: "print one JSON document (docs/json.md)"}},
		Run:   opened(self, initialise),
	}
}

const (
	firstBuild = `#!/bin/sh
# Exit code 0 means that the project builds. Put your own commands here:
# compile, check, test.
set -eu
echo "build.sh does not say yet how to build this project" >&2
exit 1
`
	firstQuery = "Describe here, in your own words, the change that you want.\n"
)

// untouched says which of init's files a person still has to write, "" for none: a
// run with them would cost money and come to nothing.
func (s *session) untouched(query string, dry bool) error {
	if strings.TrimSpace(query) == "" {
		return exit.With(exit.Usage, fmt.Errorf("%s is empty", s.profile.Query), "write into it what you want changed")
	}
	if query == firstQuery {
		return exit.With(exit.Usage, fmt.Errorf("%s is as init wrote it", s.profile.Query), "write into it what you want changed")
	}
	data, err := hostfs.Read(s.root, build.Script, int64(len(firstBuild)))
	if err == nil && string(data) == firstBuild && !dry {
		return exit.With(exit.Usage, errors.New("build.sh is as init wrote it, so no build can pass"), "write into it how this project is built and tested")
	}
	return nil
}

// made is a step of init.
type made struct {
	Do   string `json:"do"` // write, add or keep
	Path string `json:"path"`
}

func initialise(ctx context.Context, s *session) error {
	in := s.in
	if err := os.MkdirAll(filepath.Join(s.root, codecommit.ConfigDir), 0o755); err != nil {
		return err
	}
	var steps []made
	for _, f := range []struct {
		name, text string
		perm       os.FileMode
	}{
		{s.profile.Query, firstQuery, 0o644},
		{codecommit.ConfigDir + "/project-structure.txt", prompts.CommitStructure, 0o644},
		{"build.sh", firstBuild, 0o755},
	} {
		do, err := s.writeNew(f.name, f.text, f.perm)
		if err != nil {
			return err
		}
		steps = append(steps, made{do, f.name})
	}
	do, err := s.ignore(ctx)
	if err != nil {
		return err
	}
	steps = append(steps, made{do, ".gitignore"})
	if in.Bool("json") {
		return in.JSON(map[string]any{"steps": steps})
	}
	for _, m := range steps {
		fmt.Fprintf(in.Stdout, "%-5s  %s\n", m.Do, m.Path)
	}
	in.Say("hint: fill in %s and build.sh, put your key into %s, then: %s --rollup && %s", s.profile.Query, s.profile.Keys[model.Google], s.self, s.self)
	return nil
}

// writeNew makes a file unless something stands there.
func (s *session) writeNew(name, text string, perm os.FileMode) (do string, err error) {
	f, err := os.OpenFile(filepath.Join(s.root, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
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
func (s *session) ignore(ctx context.Context) (do string, err error) {
	const most = 1 << 20
	data, err := hostfs.Read(s.root, ".gitignore", most)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return "", err
	}
	var add []string
	if codecommit.CheckIgnored(s.root) != nil {
		add = append(add, "/agent-config")
	}
	g, err := guard.New(ctx, s.root, "")
	if err != nil {
		return "", err
	}
	if !g.Ignored("logs", true) {
		add = append(add, "/logs")
	}
	if !g.Ignored(".env", false) {
		add = append(add, ".env")
	}
	if len(add) == 0 {
		return "keep", nil
	}
	f, err := os.OpenFile(filepath.Join(s.root, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return "", err
	}
	text := strings.Join(add, "\n") + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = "\n" + text
	}
	_, err = f.WriteString(text)
	return "add", errors.Join(err, f.Close())
}
