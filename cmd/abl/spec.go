package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/spec"
	"abl/internal/wording"
	"abl/orchestrator"
)

func specCommand() cli.Command {
	json := cli.Flag{Name: "json", Usage: "one JSON document (docs/json.md)"}
	return cli.Command{
		Name: "spec", Group: cli.Looking, Usage: "read the specs: what is wrong with them, what became of each contract",
		Subs: []cli.Command{
			{
				Name: "lint", Args: "[N]", MaxArgs: 1, Usage: "name what is vague, missing, said twice or contradictory",
				Long: `Reads the specs of all phases, or of phase N, as a careful person would. Errors
stop a phase before anything is spent, warnings do not. docs/specs.md explains
the codes.`,
				Examples: "abl spec lint\nabl spec lint 2 --json",
				Flags:    []cli.Flag{json, {Name: "strict", Usage: "end with exit code 2 on warnings too"}},
				Run:      phase.Opened(runSpecLint),
			},
			draftCommand(),
			{
				Name: "list", Usage: "show every contract, its id and its last result in each phase",
				Flags: []cli.Flag{json}, Run: phase.Opened(runSpecList),
			},
		},
	}
}

// lintReport is what `abl spec lint --json` prints.
type lintReport struct {
	Phases    int           `json:"phases"`
	Contracts int           `json:"contracts"`
	Errors    int           `json:"errors"`
	Warnings  int           `json:"warnings"`
	Problems  []lintProblem `json:"problems"`
}

// lintProblem is one thing that is wrong with a spec.
type lintProblem struct {
	Code       string `json:"code"`  // of docs/specs.md
	Level      string `json:"level"` // error or warning
	File       string `json:"file"`  // relative to the project
	Line       int    `json:"line,omitempty"`
	Phase      int    `json:"phase,omitempty"`
	Contract   string `json:"contract,omitempty"`
	Text       string `json:"text"`
	Suggestion string `json:"suggestion,omitempty"`
}

func runSpecLint(_ context.Context, s *phase.Project) (err error) {
	in, only := s.In, 0
	if len(in.Args) > 0 {
		if only, err = phase.Number(in.Args[0]); err != nil {
			return err
		}
	}
	all, err := lint(s, s.Specs(), only)
	if err != nil {
		return err
	}
	if err := in.Show(all, all.print); err != nil {
		return err
	}
	bad, what := all.Errors, wording.Count(all.Errors, "error")
	if in.Bool("strict") {
		bad, what = bad+all.Warnings, what+" and "+wording.Count(all.Warnings, "warning")
	}
	if bad > 0 {
		return exit.With(exit.Usage, fmt.Errorf("the specs have %s", what), "docs/specs.md explains each code")
	}
	return nil
}

// lint collects what there is to say about all phases, or about one.
func lint(s *phase.Project, set spec.Set, only int) (lintReport, error) {
	all := lintReport{Problems: []lintProblem{}}
	for _, n := range set.Numbers() {
		if this, _ := set.Phase(n); only == 0 || only == n {
			all.Phases++
			all.Contracts += len(this.Contracts)
		}
	}
	if only > 0 && all.Phases == 0 {
		stops := set.Check(only)
		return all, exit.With(exit.Usage, fmt.Errorf("cannot read the spec of phase %d: %s", only, stops[0]), stops[0].Hint)
	}
	for _, p := range set.Lint() {
		if only == 0 || only == p.Phase || p.Phase == 0 {
			all.add(problem(s, p))
		}
	}
	f, err := s.State()
	if err != nil {
		return all, err
	}
	for n, how := range orchestrator.Drift(f, set) {
		if this, _ := set.Phase(n); only == 0 || n <= only { // what keeps an earlier phase from standing keeps this one from running
			p := problem(s, spec.Problem{File: this.File, Phase: this.Number, Code: "drift", Text: how.Error(), Hint: exit.Hint(how)})
			if errors.As(how, new(orchestrator.Frozen)) {
				p.Level = "error" // it stops its phase and those after it
			}
			all.add(p)
		}
	}
	slices.SortStableFunc(all.Problems, func(a, b lintProblem) int { return cmp.Compare(a.Phase, b.Phase) })
	return all, nil
}

func problem(s *phase.Project, p spec.Problem) lintProblem {
	f := lintProblem{
		Code: p.Code, Level: "warning", File: filepath.ToSlash(s.Paths.Rel(p.File)), Line: p.Line, Phase: p.Phase,
		Contract: p.Contract, Text: p.Text, Suggestion: p.Hint,
	}
	if p.Stops() {
		f.Level = "error"
	}
	return f
}

func (all *lintReport) add(f lintProblem) {
	if f.Level == "error" {
		all.Errors++
	} else {
		all.Warnings++
	}
	all.Problems = append(all.Problems, f)
}

func (all lintReport) print(w io.Writer) {
	for _, f := range all.Problems {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", at, f.Level, f.Text, f.Code)
		if f.Suggestion != "" {
			fmt.Fprintf(w, "    %s\n", f.Suggestion)
		}
	}
	fmt.Fprintf(w, "%s in %s: %s, %s\n", wording.Count(all.Contracts, "contract"), wording.Count(all.Phases, "phase"), wording.Count(all.Errors, "error"), wording.Count(all.Warnings, "warning"))
}
