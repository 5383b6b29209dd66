package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/spec"
	"abl/internal/wording"
	"abl/orchestrator"
)

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

func runSpecLint(_ context.Context, in *cli.Input) error {
	only := 0
	if len(in.Args) > 0 {
		n, err := phase.Number(in.Args[0])
		if err != nil {
			return err
		}
		only = n
	}
	s, err := phase.Open(in)
	if err != nil {
		return err
	}
	all, err := lint(s, s.Specs(), only)
	if err != nil {
		return err
	}
	if in.Bool("json") {
		err = in.JSON(all)
	} else {
		all.print(in)
	}
	if err != nil {
		return err
	}
	return all.verdict(in.Bool("strict"))
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
			all.add(drifted(s, this, how))
		}
	}
	slices.SortStableFunc(all.Problems, func(a, b lintProblem) int { return cmp.Compare(a.Phase, b.Phase) })
	return all, nil
}

// drifted is that a spec is not the one that its phase passed with: an error
// where it stops its phase and those after it.
func drifted(s *phase.Project, this spec.Spec, how error) lintProblem {
	f := problem(s, spec.Problem{File: this.File, Phase: this.Number, Code: "drift", Text: how.Error()})
	var frozen orchestrator.Frozen
	if errors.As(how, &frozen) {
		f.Level = "error"
	}
	f.Suggestion = exit.Hint(how)
	return f
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

func (all lintReport) print(in *cli.Input) {
	for _, f := range all.Problems {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(in.Stdout, "%s: %s: %s [%s]\n", at, f.Level, f.Text, f.Code)
		if f.Suggestion != "" {
			fmt.Fprintf(in.Stdout, "    %s\n", f.Suggestion)
		}
	}
	fmt.Fprintf(in.Stdout, "%s in %s: %s, %s\n", wording.Count(all.Contracts, "contract"), wording.Count(all.Phases, "phase"), wording.Count(all.Errors, "error"), wording.Count(all.Warnings, "warning"))
}

// verdict is the command's error, nil when the phases may run.
func (all lintReport) verdict(strict bool) error {
	bad := all.Errors
	what := []string{wording.Count(all.Errors, "error")}
	if strict {
		bad += all.Warnings
		what = append(what, wording.Count(all.Warnings, "warning"))
	}
	if bad == 0 {
		return nil
	}
	return exit.With(exit.Usage, fmt.Errorf("the specs have %s", strings.Join(what, " and ")), "docs/specs.md explains each code")
}
