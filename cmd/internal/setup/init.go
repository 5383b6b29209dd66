package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/scaffold"
	"abl/cmd/internal/submit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/state"
)

// InitCommand returns `abl init`.
func InitCommand() cli.Command {
	var asked scaffold.Plan
	var scheduler string
	return cli.Command{
		Name:  "init",
		Group: cli.Starting,
		Usage: "make this directory a project",
		Long: `Writes .abl/ with a configuration and an example spec, prompts/ and .env.example, and
adds lines to .gitignore. It never overwrites files and is safe to run again. --kind is
the exception: it changes app.kind in an existing config.yaml.

In a repository it finds settings in the files: kind, start command, port,
dependencies, toolchain, commands of the Builder, services. A comment names the file of
each value. If no file has a value, or files disagree, abl asks for the value on a
terminal. Without an answer, the setting stays a comment. abl init runs nothing from the
repository.

In a git repository with a commit, the Builder works on a clone: your files, branches
and hooks are left alone, and abl publish creates a branch with the result
(docs/git.md). Elsewhere the source begins in an empty directory.`,
		Examples: "abl init\nabl init --stack python\nabl init --stack go --kind command\n" +
			"abl init --dir services/api\nabl init --src app\nabl init --skill",
		Flags: []cli.Flag{
			{
				Name:   "stack",
				To:     &asked.Stack,
				Value:  "NAME",
				Values: scaffold.Stacks(),
				Usage:  "the language of the project, if the files do not show it",
			},
			{
				Name:   "kind",
				To:     &asked.Kind,
				Value:  "KIND",
				Values: scaffold.Kinds(),
				Usage:  "the kind of system: an HTTP server, another server, or a command-line program",
			},
			{Name: "dir", To: &asked.Dir, Value: "DIR", Usage: "the folder of your monorepo to work on"},
			{
				Name:  "src",
				To:    &asked.Src,
				Value: "DIR",
				Usage: "create a separate source in DIR, even in a repository (default outside of one: src)",
			},
			{Name: "skill", To: &asked.Skill,
				Usage: "also write .claude/skills/abl/SKILL.md for coding agents, and a section in AGENTS.md"},
			cli.JSONFlag(),
			{
				Name:   "submit",
				To:     &scheduler,
				Value:  "SYSTEM",
				Values: submit.Systems(),
				Usage:  "also write the template of abl submit for a scheduler",
			},
		},
		Run: func(ctx context.Context, in *cli.Input) error {
			return runInit(ctx, in, asked, scheduler)
		},
	}
}

// runInit makes a project as the flags ask for it. scheduler may be empty.
func runInit(ctx context.Context, in *cli.Input, asked scaffold.Plan, scheduler string) error {
	dir, err := initDir(in)
	if err != nil {
		return err
	}
	p, err := askedFor(in, dir, asked)
	if err != nil {
		return err
	}
	change, err := changedKind(ctx, in, dir, &p)
	if err != nil {
		return err
	}
	if err := readRepository(ctx, in, dir, &p); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot create a project: %w", err)
	}
	defer root.Close()
	if scheduler != "" {
		path, data, err := submit.Template(scheduler)
		if err != nil {
			return exit.With(exit.Usage, err, "")
		}
		p.Submit = []scaffold.File{{Path: path, Data: data}}
	}
	p.Skill = asked.Skill
	if p, err = scaffold.Make(ctx, root.FS(), p); err != nil {
		return exit.With(exit.Usage, err, "")
	}
	for _, c := range change {
		p.Ops = slices.DeleteFunc(p.Ops, func(op scaffold.Op) bool { return op.Path == c.Path })
		p.Ops = append(p.Ops, c)
	}
	err = scaffold.Apply(root, p.Ops)
	if err = errors.Join(err, hostfs.ChownToUser(dir, state.Dir, "prompts", ".env.example", ".gitignore", ".claude", "AGENTS.md")); err != nil {
		return err
	}
	return in.Show(p, func(w io.Writer) { showInit(in, w, p) })
}

// initDir returns the directory that becomes a project. It refuses a directory that a role can write to:
// the role could change abl's settings there.
func initDir(in *cli.Input) (string, error) {
	dir, err := state.Real(cmp.Or(in.String("project"), "."))
	if err != nil {
		return "", exit.With(exit.Usage, fmt.Errorf("cannot create a project: %w", err), "create the directory first")
	}
	outer, err := state.Find(dir)
	if err != nil || outer == dir {
		return dir, nil
	}
	s, err := project.OpenAt(in, outer)
	if err != nil {
		return "", fmt.Errorf("cannot read the project around %q: %w", dir, err)
	}
	for _, taken := range []string{s.Paths.Src, s.Paths.Tests, filepath.Join(outer, state.Dir)} {
		if dir == taken || strings.HasPrefix(dir, taken+"/") {
			return "", cli.WithHint("abl -C "+outer+" init adds missing files to that project",
				"cannot create a project in %q: it belongs to the project %q", dir, outer)
		}
	}
	in.Say("note: %s is a project too; this one is separate from it", outer)
	return dir, nil
}

// askedFor adds the repository or the existing settings to p, the plan of the flags. It fails if the flags
// contradict the settings.
func askedFor(in *cli.Input, dir string, p scaffold.Plan) (scaffold.Plan, error) {
	if fi, err := os.Lstat(filepath.Join(dir, state.Dir)); errors.Is(err, fs.ErrNotExist) {
		return p, adopt(in, dir, &p)
	} else if err == nil && !fi.IsDir() {
		return p, cli.WithHint("rename it and run the command again",
			"cannot create a project: .abl here is a file or a symbolic link, want a directory")
	}
	s, err := project.OpenAt(in, dir)
	if err != nil || s.Conf.File == "" {
		return p, err
	}
	dirs, source := s.Conf.Directories, s.Conf.Source
	for _, of := range []struct{ use, key, asked, settled string }{
		{fmt.Sprintf("use --src %q", p.Src), "directories.src", p.Src, dirs.Src},
		{fmt.Sprintf("use --dir %q", p.Dir), "source.dir", p.Dir, source.Dir},
	} {
		if of.asked != "" && of.asked != of.settled {
			return p, cli.WithHint("change "+of.key+" in that file", "cannot %s: %s has %q", of.use, s.Conf.File, of.settled)
		}
	}
	stack := cmp.Or(p.Stack, "none") // the settings have the toolchain
	return scaffold.Plan{
		Stack: stack,
		Kind:  p.Kind,
		Src:   dirs.Src,
		Tests: dirs.Tests,
		Repo:  source.Repo,
		Dir:   source.Dir,
	}, nil
}

// adopt finds the repository for the Builder's clone: the one that contains the directory in a commit.
func adopt(in *cli.Input, dir string, p *scaffold.Plan) error {
	top := git.Around(dir)
	switch {
	case p.Dir != "" && p.Src != "":
		return cli.WithHint("use only one of them", "cannot use --dir %q: --dir and --src are mutually exclusive", p.Dir)
	case p.Dir != "" && top == "":
		return cli.WithHint("leave it out", "cannot use --dir %q: this directory is not in a git repository", p.Dir)
	case p.Src != "" || top == "":
		return nil
	}
	from, err := git.OpenOrigin(top)
	head := ""
	if err == nil {
		_, head, err = from.Head()
	}
	if err != nil {
		return exit.With(exit.Usage, err, "abl init --src src creates a separate source")
	}
	here, _ := filepath.Rel(top, dir) // both are absolute
	within := filepath.Join(here, p.Dir)
	switch committed := from.Holds(head, within); {
	case !committed && p.Dir != "":
		return cli.WithHint("commit it first, or leave out --dir", "cannot use --dir %q: commit %.12s has no such folder",
			p.Dir, head)
	case !committed:
		in.Say("note: no file of this directory is committed to %s, so the source begins empty; to work on these files, "+
			"commit them first", top)
		return nil
	}
	p.Dir = within
	if within == "." {
		p.Dir = ""
	}
	p.Repo, _ = filepath.Rel(dir, top)
	in.Say("the Builder will work on a clone of %s at %.12s; it does not see uncommitted changes", top, head)
	notes, err := from.Remarks(head, nil)
	for _, text := range notes {
		in.Say("note: your repository: %s", text)
	}
	return err
}

// showInit prints the operations and, for a new project, the next steps.
func showInit(in *cli.Input, w io.Writer, p scaffold.Plan) {
	written, others := false, " (.env.example lists the variables of other agents)"
	for _, op := range p.Ops {
		fmt.Fprintln(w, op)
		if op.Kind == scaffold.Keep && op.Path == ".env.example" {
			others = "" // it is the repository's own
		}
		written = written || op.Kind == scaffold.Write && op.Path == ".abl/config.yaml"
	}
	if written {
		printFound(in, p)
		if p.Detected != nil && len(p.Detected.Open) > 0 {
			in.Say("next: set the open values in .abl/config.yaml,")
		}
		in.Say("next: write .abl/project.md and .abl/specs/phase1.md,")
		in.Say("  add GEMINI_API_KEY=… to .env%s,", others)
		in.Say("  then run abl phase 1%s", map[bool]string{true: ", and abl publish 1 after it has passed"}[p.Repo != ""])
	}
}
