package look

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/prompts"
	"abl/roles/environment"
)

// CheckCommand returns `abl check`.
func CheckCommand() cli.Command {
	return cli.Command{
		Name:  "check",
		Group: cli.Inspecting,
		Usage: "have a model compare the specs and the source",
		Long: `Sends the project's description, its specs and its source to a model. The model writes
a report in five sections: contradictions in the specs, differences between source and
specs, mistakes in each, and other remarks.

abl prints the report and saves it as .abl/reports/consistency-report.txt, and by
section as .json. It changes nothing else, and no verdict depends on the report: it is
the opinion of a model that has run nothing.`,
		Examples: "abl check\nabl check --model claude-sonnet-5-5 --json",
		Codes:    askCodes("the report was written", "the answer has no usable report"),
		Flags:    commit.FlagsOf("model", "timeout", "retries", "json"),
		Run:      project.Locked(runCheck),
	}
}

// askCodes returns the exit codes of a command that asks a model once. done and unusable are the meanings
// of exit codes 0 and 4.
func askCodes(done, unusable string) []exit.Entry {
	codes := map[int]string{exit.Passed: done, exit.Unverified: unusable}
	for _, e := range commit.Codes() {
		if _, own := codes[e.Code]; !own {
			codes[e.Code] = e.Meaning
		}
	}
	codes[exit.Stuck], codes[exit.Budget], codes[exit.Boundary] = "", "", ""
	codes[exit.Environment] = "the environment failed, such as a full disk"
	codes[exit.Person] = "you must decide: the file changed meanwhile"
	codes[exit.Busy] = "another abl works on the project"
	return exit.EntriesOf(codes)
}

// checkQuery explains to the model which files are specs.
const checkQuery = `This project is built in phases. Its user specification is project.md and the
files in specs/, one a phase, whose contracts are lines of the form
ACTION -> EXPECTED RESULT. They come first in the codebase. All other files are
the implementation.
`

func runCheck(ctx context.Context, s *project.Project) error {
	in := s.In
	p := s.Paths
	dir := filepath.Join(p.Root, state.Dir)
	specs, err := hostfs.List(dir, "specs", 10_000)
	if err != nil {
		return err
	}
	source, err := s.WorkspaceFiles(ctx, p.Src, 50_000)
	if err != nil {
		return err
	}
	asker, err := askerOf(s, dir, "check")
	if err != nil {
		return err
	}
	c := commit.Check{
		Asker:  asker,
		Report: filepath.Join(p.Reports(), "consistency-report.txt"),
		Query:  checkQuery,
		Specs:  []string{"project.md"},
		Source: p.Src,
		Files:  source,
	}
	for _, f := range specs {
		c.Specs = append(c.Specs, "specs/"+f.Name)
	}
	return c.Do(ctx, in)
}

// draftOptions are the flags of abl spec draft.
type draftOptions struct{ write bool }

func draftCommand() cli.Command {
	var o draftOptions
	write := cli.Flag{Name: "write", To: &o.write, Usage: "replace the file with the proposal if it has no errors"}
	return cli.Command{
		Name:  "draft",
		Args:  "FILE",
		Usage: "have a model propose contracts for a spec written as prose",
		Long: `Sends one spec of the project to a model. Prints the model's proposal as a diff, with
the findings of abl spec lint. Without --write the file is not changed. Read each
contract before you run the phase: the model may have misunderstood you.`,
		Examples: "abl spec draft .abl/specs/phase2.md\nabl spec draft .abl/specs/phase2.md --write",
		Codes:    askCodes("the proposal was printed or written", "the proposal has errors or loses a contract"),
		Flags:    append([]cli.Flag{write}, commit.FlagsOf("model", "timeout", "retries")...),
		Run:      project.Locked(o.run),
	}
}

func (o *draftOptions) run(ctx context.Context, s *project.Project) error {
	in, p := s.In, s.Paths
	n, file, err := specAt(s, in.Args[0])
	if err != nil {
		return err
	}
	old, err := hostfs.Read(p.Root, file, spec.MaxBytes)
	if err != nil {
		return exit.With(exit.Usage, err, "describe the phase in that file, in your own words")
	}
	replaces := ""
	if o.write {
		replaces = string(old)
	}
	question := prompts.SpecDraft + fmt.Sprintf("\nThe spec of phase %d:\n\n", n) + string(old)
	asker, err := askerOf(s, p.Root, "draft")
	if err != nil {
		return err
	}
	answer, err := asker.Ask(ctx, in, "spec-draft", question, replaces)
	if errors.Is(err, commit.ErrMasked) {
		return exit.With(exit.Usage, fmt.Errorf("cannot replace %s: %w", file, err),
			"remove the secret, or leave out --write")
	}
	if err != nil {
		return err
	}
	return o.propose(s, n, file, string(old), wholeFile(answer))
}

// askerOf returns an Asker for the files below root. It saves questions and answers in a folder of the
// logs.
func askerOf(s *project.Project, root, logs string) (commit.Asker, error) {
	transport, err := environment.Transport(s.Conf, s.Paths.Root, "")
	return commit.Asker{
		Root:      root,
		Logs:      filepath.Join(s.Paths.Logs(), logs),
		Env:       s.Conf.Dotenv,
		Ledger:    ledger.Open(s.Paths.Ledger()),
		Transport: transport,
	}, err
}

// specAt returns the phase of the spec at path, and its file relative to the project.
func specAt(s *project.Project, path string) (n int, file string, err error) {
	at, err := filepath.Abs(path)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	_, _ = fmt.Sscanf(filepath.Base(at), "phase%d.md", &n)
	file = specFile(n)
	if err != nil || n < 1 || s.Paths.Rel(at) != file {
		return 0, "", cli.WithHint("abl spec draft .abl/specs/phase1.md", "cannot draft %q: it is not a spec of this project",
			path)
	}
	return n, file, nil
}

// wholeFile returns an answer without the code fence that models often put around it.
func wholeFile(answer string) string {
	text := strings.TrimSpace(answer)
	first, rest, _ := strings.Cut(text, "\n")
	if body, ok := strings.CutSuffix(rest, "\n```"); ok && strings.HasPrefix(first, "```") {
		text = strings.TrimSpace(body)
	}
	return text + "\n"
}

// propose prints the diff of a proposal and its lint findings. With --write it replaces the spec, unless
// the proposal has errors, lacks contracts of the old text, or the file changed meanwhile.
func (o *draftOptions) propose(s *project.Project, n int, file, old, text string) error {
	if err := view.Diff(s.In.Stdout, file, &old, &text, false); err != nil {
		return err
	}
	specs := s.Specs().With(n, []byte(text))
	all, err := lint(s, specs, n)
	if err != nil {
		return err
	}
	all.print(s.In.Stderr)
	f, err := s.State()
	if err != nil {
		return err
	}
	before, _ := spec.Parse(file, []byte(old), n) // lint has reported the problems of the new text
	after, _ := spec.Parse(file, []byte(text), n)
	missing := after.Missing(before)
	frozen, stops := errors.AsType[orchestrator.Frozen](orchestrator.Drift(f, specs)[n])
	stays := file + " was not changed"
	switch now, err := hostfs.Read(s.Paths.Root, file, spec.MaxBytes); {
	case text == old:
		s.In.Say("the model proposes no change")
	case !o.write:
		s.In.Say("hint: %s; copy what you want from the proposal, or ask again with --write", stays)
	case stops:
		return frozen
	case all.Errors > 0:
		return &exit.Error{Code: exit.Unverified, What: "the proposal has " + wording.Count(all.Errors, "error"), Safe: stays}
	case err != nil || string(now) != old:
		return &exit.Error{
			Code: exit.Person,
			What: file + " was changed meanwhile",
			Safe: "abl left it alone",
			Do:   "run the command again",
		}
	case len(missing) > 0:
		for _, c := range missing {
			s.In.Say("not in the proposal: line %d, \"%s\"", c.Line, c.Says())
		}
		return &exit.Error{Code: exit.Unverified, What: "the proposal lacks " + wording.Count(len(missing), "contract"),
			Safe: stays}
	default:
		return hostfs.Write(filepath.Join(s.Paths.Root, file), []byte(text), 0o644)
	}
	return nil
}
