package main

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

	"abl"
	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/scaffold"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles/environment"
)

func initCommand() cli.Command {
	return cli.Command{
		Name: "init", Group: cli.Starting, Usage: "make this directory a project",
		Long: `Writes .abl/ with a configuration and an example spec, prompts/, .env.example,
and adds lines to .gitignore. It never overwrites, and is safe to run again: files that
exist are kept. --kind is the exception: it changes app.kind in an existing config.yaml.

In a repository it reads what the files say: kind, start command, port, dependencies,
toolchain, commands of the Builder, services. Each value has a comment with its file.
Values that no file has, or on which files disagree, stay comments, and abl asks for
them at a terminal. It runs nothing of the repository.

In a git repository with a commit the Builder works on a clone of it: your files,
branches and hooks are left alone, and abl publish brings what was built, as a
branch (docs/git.md). Elsewhere the source begins empty, in a directory of its own.`,
		Examples: "abl init\nabl init --stack python\nabl init --stack go --kind command\nabl init --dir services/api\nabl init --src app\nabl init --skill",
		Flags: []cli.Flag{
			{Name: "stack", Value: "NAME", Values: scaffold.Stacks(), Usage: "what the project is built with, if the files do not show it"},
			{Name: "kind", Value: "KIND", Values: scaffold.Kinds(), Usage: "of system: a server that speaks HTTP, one that does not, or a command-line program"},
			{Name: "dir", Value: "DIR", Usage: "the folder of your repository that the work is about, in a monorepo"},
			{Name: "src", Value: "DIR", Usage: "the Builder's directory, with a history of its own, even in a repository; src unless given"},
			{Name: "skill", Usage: "also write .claude/skills/abl/SKILL.md for coding agents, and a section of AGENTS.md"},
			{Name: "json", Usage: "one JSON document (docs/json.md)"},
		},
		Run: runInit,
	}
}

func runInit(ctx context.Context, in *cli.Input) error {
	dir, err := initDir(in)
	if err != nil {
		return err
	}
	p, err := askedFor(in, dir)
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
		return fmt.Errorf("cannot make a project: %w", err)
	}
	defer root.Close()
	p.Skill = in.Bool("skill")
	if p, err = scaffold.Make(root.FS(), p); err != nil {
		return exit.With(exit.Usage, err, "")
	}
	for _, c := range change {
		p.Ops = slices.DeleteFunc(p.Ops, func(op scaffold.Op) bool { return op.Path == c.Path })
		p.Ops = append(p.Ops, c)
	}
	err = scaffold.Apply(root, p.Ops)
	if err = errors.Join(err, hostfs.HandOver(dir, state.Dir, "prompts", ".env.example", ".gitignore", ".claude", "AGENTS.md")); err != nil {
		return err
	}
	return in.Show(p, func(w io.Writer) { showInit(in, w, p) })
}

// initDir is the directory that becomes a project. One that a role may write
// does not: what a role wrote there would be settings of abl.
func initDir(in *cli.Input) (string, error) {
	dir, err := state.Real(cmp.Or(in.String("project"), "."))
	if err != nil {
		return "", exit.With(exit.Usage, fmt.Errorf("cannot make a project: %w", err), "make the directory first")
	}
	outer, err := state.Find(dir)
	if err != nil || outer == dir {
		return dir, nil // there is none around it
	}
	s, err := phase.OpenAt(in, outer)
	if err != nil {
		return "", fmt.Errorf("cannot tell how %q belongs to the project around it: %w", dir, err)
	}
	for _, taken := range []string{s.Paths.Src, s.Paths.Tests, filepath.Join(outer, state.Dir)} {
		if dir == taken || strings.HasPrefix(dir, taken+"/") {
			return "", cli.WithHint("abl -C "+outer+" init adds what that one lacks", "cannot make a project in %q: it belongs to the project %q", dir, outer)
		}
	}
	in.Say("note: %s is a project too, and this one is apart from it", outer)
	return dir, nil
}

// askedFor returns what the user asked for. A project that is there already has decided on its
// directories.
func askedFor(in *cli.Input, dir string) (scaffold.Plan, error) {
	p := scaffold.Plan{Stack: in.String("stack"), Kind: in.String("kind"), Src: in.String("src"), Dir: in.String("dir")}
	if fi, err := os.Lstat(filepath.Join(dir, state.Dir)); errors.Is(err, fs.ErrNotExist) {
		return p, adopt(in, dir, &p)
	} else if err == nil && !fi.IsDir() {
		return p, cli.WithHint("move it away", "cannot make a project: .abl here is a link or a file, not a directory")
	}
	s, err := phase.OpenAt(in, dir)
	if err != nil || s.Conf.File == "" {
		return p, err
	}
	dirs, source := s.Conf.Directories, s.Conf.Source
	for _, of := range []struct{ take, key, asked, settled string }{
		{fmt.Sprintf("make %q the Builder's directory", p.Src), "directories.src", p.Src, dirs.Src},
		{fmt.Sprintf("take --dir %q", p.Dir), "source.dir", p.Dir, source.Dir},
	} {
		if of.asked != "" && of.asked != of.settled {
			return p, cli.WithHint("change "+of.key+" there", "cannot %s: %s says %q", of.take, s.Conf.File, of.settled)
		}
	}
	stack := cmp.Or(p.Stack, "none") // its settings say how it is built
	return scaffold.Plan{Stack: stack, Kind: p.Kind, Src: dirs.Src, Tests: dirs.Tests, Repo: source.Repo, Dir: source.Dir}, nil
}

// adopt finds the repository that the Builder is to work on a clone of: that of a directory
// which stands in one, and is committed there.
func adopt(in *cli.Input, dir string, p *scaffold.Plan) error {
	top := git.Around(dir)
	switch apart := p.Src != "" || top == ""; {
	case apart && p.Dir != "":
		return cli.WithHint("leave out one of them", "cannot take --dir %q: it is a folder of the git repository here, and goes without --src", p.Dir)
	case apart:
		return nil
	}
	from, err := git.OpenOrigin(top)
	head := ""
	if err == nil {
		_, head, err = from.Head()
	}
	if err != nil {
		return exit.With(exit.Usage, err, "abl init --src src begins a source apart from it")
	}
	here, _ := filepath.Rel(top, dir) // both are absolute
	within := filepath.Join(here, p.Dir)
	switch held := from.Holds(head, within); {
	case !held && p.Dir != "":
		return cli.WithHint("commit it first, or leave out --dir", "cannot take --dir %q: there is no such folder in commit %.12s", p.Dir, head)
	case !held:
		in.Say("note: nothing here is committed to %s, so the source begins empty; to work on what is here, commit it first", top)
		return nil
	}
	if p.Dir = within; within == "." {
		p.Dir = ""
	}
	p.Repo, _ = filepath.Rel(dir, top)
	in.Say("the Builder is going to work on a clone of %s at %.12s; what is not committed it does not see", top, head)
	remarks, err := from.Remarks(head, nil)
	for _, text := range remarks {
		in.Say("note: of your repository %s", text)
	}
	return err
}

func showInit(in *cli.Input, w io.Writer, p scaffold.Plan) {
	written := false
	for _, op := range p.Ops {
		fmt.Fprintln(w, op)
		written = written || op.Kind == scaffold.Write && op.Path == ".abl/config.yaml"
	}
	if written {
		sayFound(in, p)
		if p.Detected != nil && len(p.Detected.Open) > 0 {
			in.Say("next: fill in what is open in .abl/config.yaml,")
		}
		in.Say("next: write .abl/project.md and .abl/specs/phase1.md,")
		in.Say("  put GEMINI_API_KEY=… into .env (.env.example has those of other agents),")
		in.Say("  then abl phase 1%s", map[bool]string{true: ", and abl publish 1 when it has passed"}[p.Repo != ""])
	}
}

func demoCommand() cli.Command {
	return cli.Command{
		Name: "demo", Group: cli.Starting, Args: "[DIR]", Usage: "watch a whole phase, offline and without a key",
		Long: `Copies a small project, a link shortener in two phases, to DIR (a new temporary
directory unless given) and runs its first phase. Containers, networks,
repositories and tests are real; only the model is a script. The first Verifier
refutes the app, the Builder mends it, the second Verifier passes it.`,
		Examples: "abl demo\nabl demo ./shortener --through",
		Flags:    append(phase.Flags(), cli.Flag{Name: "through", Usage: "run the second phase too"}),
		Run:      runDemo,
	}
}

func runDemo(ctx context.Context, in *cli.Input) error {
	if len(in.Args) > 0 {
		if there, err := os.ReadDir(in.Args[0]); len(there) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cli.WithHint("name a directory that does not exist yet", "cannot write the demo: %q is there, and no empty directory", in.Args[0])
		}
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err) // before anything is written
	}
	defer eng.Close()
	dir, err := writeDemo(in.Args)
	if err != nil {
		return err
	}
	in.Say("the demo project is in %s", dir)
	s, err := phase.OpenAt(in, dir)
	if err != nil {
		return err
	}
	if err := runPending(ctx, s, in.Bool("through")); err != nil {
		return err
	}
	if !in.Bool("json") {
		fmt.Fprintf(in.Stdout, "\nthe project is in %s: abl report 1 says there what the verdict stands on, abl run goes on\n", dir)
	}
	return nil
}

// writeDemo puts the demo into the directory, a new temporary one unless given.
func writeDemo(args []string) (dir string, err error) {
	if len(args) == 0 {
		dir, err = os.MkdirTemp("", "abl-demo-")
	} else if dir, err = filepath.Abs(args[0]); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = errors.Join(os.CopyFS(dir, abl.Demo()), hostfs.HandOver(dir, "."))
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the demo: %w", err)
	}
	return dir, nil
}
