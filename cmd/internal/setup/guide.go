package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/project"
	"abl/cmd/internal/scaffold"
	"abl/internal/config"
	"abl/internal/detect"
	"abl/internal/git"
	"abl/internal/redact"
	"abl/internal/state"
)

// GuideCommand returns `abl guide`.
func GuideCommand() cli.Command {
	return cli.Command{
		Name:  "guide",
		Group: cli.Starting,
		Usage: "print a guide for a coding agent that sets abl up here",
		Long: `Prints one page for a coding agent that helps you with abl: how to fill in
.abl/config.yaml, .abl/project.md and the specs, the rules of abl spec lint, and what
abl finds in this repository. It reads files and runs nothing. abl init --skill writes
the page, without the findings, as .claude/skills/abl/SKILL.md.`,
		Examples: "abl guide",
		Run:      runGuide,
	}
}

func runGuide(ctx context.Context, in *cli.Input) error {
	dir, err := state.Real(cmp.Or(in.String("project"), "."))
	if err != nil {
		return err
	}
	_, err = io.WriteString(in.Stdout, scaffold.Guide(findings(ctx, in, dir)))
	return err
}

// findings returns the section of the guide about the repository around a directory.
func findings(ctx context.Context, in *cli.Input, dir string) string {
	var b strings.Builder
	p := scaffold.Plan{}
	if outer, err := state.Find(dir); err == nil {
		dir = outer
	}
	if _, err := os.Lstat(filepath.Join(dir, config.File)); err == nil {
		fmt.Fprintf(&b, "It already has %s: `abl config` prints its values.\n", config.File)
		s, err := project.OpenAt(in, dir)
		if err != nil {
			fmt.Fprintf(&b, "abl cannot read it: %s\n", redact.Line(err.Error()))
			return b.String()
		}
		p.Repo, p.Dir, p.Src = s.Conf.Source.Repo, s.Conf.Source.Dir, s.Conf.Directories.Src
	} else {
		b.WriteString("It has no .abl/config.yaml yet: `abl init` writes one.\n")
		if top := git.Around(dir); top != "" {
			p.Repo, _ = filepath.Rel(dir, top) // both are absolute
			p.Dir, _ = filepath.Rel(top, dir)
			p.Dir = strings.TrimPrefix(p.Dir, ".")
		}
	}
	t, err := sourceTree(dir, &p)
	if err != nil || t == nil {
		b.WriteString("abl finds no committed files in it, so the source begins empty: " +
			"describe in project.md what to build.\n")
		return b.String()
	}
	listFacts(&b, detect.Read(ctx, t, p.Dir, detect.Wish{}))
	return b.String()
}

// listFacts prints the values that were found, and the open ones.
func listFacts(b *strings.Builder, r detect.Report) {
	line := func(format string, args ...any) { fmt.Fprintln(b, redact.Line(fmt.Sprintf(format, args...))) }
	fmt.Fprintf(b, "\nabl finds these values, in the named files (stack %s):\n\n", r.Stack)
	for _, f := range r.Facts {
		if f.From.File == "" {
			line("- `%s`: `%s`", f.Key, f.Value)
			continue
		}
		line("- `%s`: `%s`, from %s", f.Key, f.Value, f.From)
	}
	if len(r.Facts) == 0 {
		b.WriteString("- none\n")
	}
	if len(r.Open)+len(r.Notes) > 0 {
		b.WriteString("\nOpen, decide these with the user:\n\n")
	}
	for _, o := range r.Open {
		line("- `%s`: %s", o.Key, o.Why)
		for _, f := range o.Choices {
			fmt.Fprint(b, "  ")
			line("- `%s`, from %s", f.Value, f.From)
		}
	}
	for _, text := range r.Notes {
		line("- note: %s", text)
	}
}
