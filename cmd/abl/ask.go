package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/prompts"
)

func checkCommand() cli.Command {
	return cli.Command{
		Name: "check", Group: cli.Looking, Usage: "have a model report on specs and source that do not fit together",
		Long: `Shows a model the project's description, its specs and its source, and asks for a
report in five sections: where the specs disagree with themselves, where the
source disagrees with them, mistakes in either, and what else is worth saying.
The report is printed and kept in .abl/reports/consistency-report.txt, by section
in the .json beside it. Nothing is changed, and no verdict depends on it: it is
the opinion of one model that has run nothing.`,
		Examples: "abl check\nabl check --model gpt-5 --json",
		Codes:    commit.Codes(),
		Flags:    commit.FlagsOf("model", "timeout", "retries", "json"),
		Run:      phase.Locked(runCheck),
	}
}

// checkQuery tells the model which files are which.
const checkQuery = `This project is built in phases. Its user specification is project.md and the
files in specs/, one a phase, whose contracts are lines of the form
ACTION -> EXPECTED RESULT. They come first in the codebase. All other files are
the implementation.
`

func runCheck(ctx context.Context, s *phase.Project) error {
	in := s.In
	p := s.Paths
	dir := filepath.Join(p.Root, state.Dir)
	specs, err := hostfs.List(dir, "specs", 10_000)
	if err != nil {
		return err
	}
	source, err := phase.WorkspaceFiles(ctx, s, p.Src, 50_000)
	if err != nil {
		return err
	}
	c := commit.Check{
		Asker:  commit.Asker{Root: dir, Logs: filepath.Join(p.Logs(), "check"), Env: s.Conf.Dotenv, Ledger: ledger.Open(p.Ledger())},
		Report: filepath.Join(p.Reports(), "consistency-report.txt"), Query: checkQuery, Specs: []string{"project.md"}, Source: p.Src, Files: source,
	}
	for _, f := range specs {
		c.Specs = append(c.Specs, "specs/"+f.Name)
	}
	return c.Do(ctx, in)
}

func draftCommand() cli.Command {
	write := cli.Flag{Name: "write", Usage: "put the proposal in the file's place, when it has no errors"}
	return cli.Command{
		Name: "draft", Args: "FILE", MinArgs: 1, MaxArgs: 1, Usage: "have a model turn a spec's prose into contracts, as a proposal",
		Long: `Shows a model one spec of the project and prints how it would write it, as a diff,
with what abl spec lint says to that. The file stays as it is without --write. It is a
proposal: read each contract before a phase is held to it.`,
		Examples: "abl spec draft .abl/specs/phase2.md\nabl spec draft .abl/specs/phase2.md --write",
		Codes:    commit.Codes(),
		Flags:    append([]cli.Flag{write}, commit.FlagsOf("model", "timeout", "retries")...),
		Run:      phase.Locked(runSpecDraft),
	}
}

func runSpecDraft(ctx context.Context, s *phase.Project) error {
	in := s.In
	n, err := specNumber(s, in.Args[0])
	if err != nil {
		return err
	}
	p, name := s.Paths, fmt.Sprintf("phase%d.md", n)
	old, err := hostfs.Read(p.Specs(), name, spec.MaxBytes)
	if err != nil {
		return exit.With(exit.Usage, err, "write what is wanted into it, in your own words")
	}
	replaces := ""
	if in.Bool("write") {
		replaces = string(old)
	}
	asker := commit.Asker{Root: p.Root, Logs: filepath.Join(p.Logs(), "draft"), Env: s.Conf.Dotenv, Ledger: ledger.Open(p.Ledger())}
	answer, err := asker.Ask(ctx, in, "spec-draft", prompts.SpecDraft+fmt.Sprintf("\nThe spec of phase %d:\n\n", n)+string(old), replaces)
	if errors.Is(err, commit.ErrMasked) {
		return exit.With(exit.Usage, fmt.Errorf("cannot replace %s: %w", filepath.ToSlash(p.Rel(filepath.Join(p.Specs(), name))), err), "take the secret out, or ask without --write")
	}
	if err != nil {
		return err
	}
	return propose(s, n, string(old), wholeFile(answer))
}

// specNumber is the phase of a spec of the project.
func specNumber(s *phase.Project, file string) (n int, err error) {
	at, err := filepath.Abs(file)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	_, _ = fmt.Sscanf(filepath.Base(at), "phase%d.md", &n)
	if err != nil || n < 1 || at != filepath.Join(s.Paths.Specs(), fmt.Sprintf("phase%d.md", n)) {
		return 0, cli.WithHint("abl spec draft .abl/specs/phase1.md", "cannot draft %q: it is no spec of this project", file)
	}
	return n, nil
}

// wholeFile is an answer without the code block that models like to put around one.
func wholeFile(answer string) string {
	text := strings.TrimSpace(answer)
	first, rest, _ := strings.Cut(text, "\n")
	if body, ok := strings.CutSuffix(rest, "\n```"); ok && strings.HasPrefix(first, "```") {
		text = strings.TrimSpace(body)
	}
	return text + "\n"
}

// propose shows what would become of a spec, and with --write makes it so.
func propose(s *phase.Project, n int, old, text string) error {
	name := fmt.Sprintf("phase%d.md", n)
	path := filepath.Join(s.Paths.Specs(), name)
	rel := filepath.ToSlash(s.Paths.Rel(path))
	if err := view.Diff(s.In.Stdout, rel, &old, &text, false); err != nil {
		return err
	}
	wrong := 0
	set := s.Specs().With(n, []byte(text))
	for _, p := range set.Lint() {
		if p.Phase != n {
			continue
		}
		f := problem(s, p)
		if f.Level == "error" {
			wrong++
		}
		s.In.Say("%s:%d: %s: %s [%s]", rel, f.Line, f.Level, f.Text, f.Code)
	}
	f, err := s.State()
	if err != nil {
		return err
	}
	before, _ := spec.Parse(rel, []byte(old), n) // the problems were told above, or are those of the old text
	after, _ := spec.Parse(rel, []byte(text), n)
	missing := after.Missing(before)
	frozen, stops := errors.AsType[orchestrator.Frozen](orchestrator.Drift(f, set)[n])
	switch now, err := hostfs.Read(s.Paths.Specs(), name, spec.MaxBytes); {
	case text == old:
		s.In.Say("the model would change nothing")
	case !s.In.Bool("write"):
		s.In.Say("hint: %s stays as it is; take from it what you want, or ask again with --write", rel)
	case wrong > 0:
		return &exit.Error{Code: exit.Unverified, What: "the proposal has " + wording.Count(wrong, "error"), Safe: rel + " stays as it is"}
	case stops:
		return frozen
	case err != nil || string(now) != old:
		return &exit.Error{Code: exit.Person, What: rel + " was changed meanwhile", Safe: "it stays as it is", Do: "run it again"}
	case len(missing) > 0:
		for _, c := range missing {
			s.In.Say("not in the proposal: line %d, \"%s\"", c.Line, c.Says())
		}
		return &exit.Error{Code: exit.Unverified, What: "the proposal leaves out " + wording.Count(len(missing), "contract"), Safe: rel + " stays as it is"}
	default:
		return hostfs.Write(path, []byte(text), 0o644)
	}
	return nil
}
