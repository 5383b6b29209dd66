package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/failedspecs"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
)

// ruling is what `abl verdict --json` prints.
type ruling struct {
	File   string `json:"file"`
	Absent bool   `json:"absent,omitempty"`
	failedspecs.Result
	Builder []failedspecs.Entry   `json:"builder,omitempty"` // the entries as they may reach the Builder
	LeftOut []failedspecs.Problem `json:"left_out,omitempty"`
}

func verdictCommand() cli.Command {
	return cli.Command{
		Name: "verdict", Group: cli.Looking, Args: "FILE|DIR",
		Usage: "show what abl makes of a failed_specs.md",
		Long: `Reads a failed_specs.md, or that in a Verifier's workspace or in a project, as a
phase does, and shows its entries, what is wrong with it, and what of it would
reach the Builder. Nothing is changed. Within a project each entry is shown with
the contract that it names (docs/failed-specs.md).`,
		Examples: "abl verdict .\nabl verdict .abl/tests/failed_specs.md --json",
		Flags:    []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}},
		Codes: []exit.Entry{
			{Code: exit.Passed, Meaning: "pass: the file is absent, empty, or white space only"},
			{Code: exit.Usage, Meaning: "wrong usage, or the path does not exist"},
			{Code: exit.Stuck, Meaning: "fail: the file has at least one complete entry"},
			{Code: exit.Unverified, Meaning: "malformed: anything else, which is never a pass"},
		},
		Run: runVerdict,
	}
}

func runVerdict(_ context.Context, in *cli.Input) error {
	dir, name, err := placeOf(in, in.Args[0])
	if err != nil {
		return err
	}
	specs := specsAbove(dir)
	r, err := rule(dir, name, specs)
	if err != nil {
		return err
	}
	if len(r.Entries) > 0 {
		r.Builder, r.LeftOut = failedspecs.NewFilter(specs, nil).Pass(r.Entries)
	}
	if err := in.Show(r, r.print); err != nil {
		return err
	}
	return r.end()
}

// placeOf is the directory of the file that a person means, and its name there. One of another
// name than failed_specs.md has to be there: a slip of the pen is not a pass.
func placeOf(in *cli.Input, arg string) (dir, name string, err error) {
	dir, name = filepath.Dir(arg), filepath.Base(arg)
	needed := arg
	if name == failedspecs.FileName {
		needed = dir
	}
	info, err := os.Stat(needed)
	if err != nil {
		return "", "", exit.With(exit.Usage, fmt.Errorf("cannot look for the file: %w", err), "give a failed_specs.md, a Verifier's workspace or a project")
	}
	if name == failedspecs.FileName || !info.IsDir() {
		return dir, name, nil
	}
	if own, err := os.Lstat(filepath.Join(arg, state.Dir)); err != nil || !own.IsDir() {
		return arg, failedspecs.FileName, nil
	}
	s, err := phase.OpenAt(in, arg)
	if err != nil {
		return "", "", err
	}
	return s.Paths.Tests, failedspecs.FileName, nil
}

// specsAbove are those of the project that a directory is in, none without one.
func specsAbove(dir string) []spec.Spec {
	root, err := state.Find(dir)
	if err != nil {
		return nil
	}
	set, _ := spec.LoadDir(state.NewProject(root, "", "").Specs())
	return set.UpTo(spec.MaxPhase)
}

// rule judges the file as a phase does. What is there and no plain file of a
// readable size is never a pass.
func rule(dir, name string, specs []spec.Spec) (ruling, error) {
	r := ruling{File: filepath.Join(dir, name), Result: failedspecs.Result{Kind: failedspecs.Malformed}}
	data, err := hostfs.Read(dir, name, failedspecs.MaxBytes)
	switch {
	case err == nil:
		r.Result = failedspecs.Parse(data)
	case errors.Is(err, hostfs.ErrAbsent):
		r.Kind, r.Absent = failedspecs.Pass, true
	case errors.Is(err, hostfs.ErrNotRegular), errors.Is(err, hostfs.ErrTooLarge):
		r.Problems = []failedspecs.Problem{{Text: err.Error()}}
	default:
		return r, err
	}
	if len(specs) > 0 {
		r.Result = failedspecs.In(specs).Name(r.Result)
	}
	if r.Entries == nil {
		r.Entries = []failedspecs.Entry{}
	}
	return r, nil
}

func (r ruling) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s", r.File, r.Kind)
	if r.Kind == failedspecs.Pass {
		why := "it is empty"
		if r.Absent {
			why = "there is none"
		}
		fmt.Fprintf(w, " as far as the file goes, %s\na phase passes on what its replays show besides: abl report", why)
	}
	fmt.Fprintln(w)
	for _, e := range r.Entries {
		printEntry(w, "entry", e)
	}
	for _, e := range r.Incomplete {
		printEntry(w, "incomplete (ignored, the Builder never gets it),", e)
	}
	if len(r.LeftOut) > 0 { // else the Builder reads what stands in the file
		for _, e := range r.Builder {
			printEntry(w, "for the Builder,", e)
		}
	}
	for i, p := range slices.Concat(r.Problems, r.LeftOut) {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if p.Line > 0 { // 0 is the file as a whole
			fmt.Fprintf(w, "line %d: ", p.Line)
		}
		fmt.Fprintln(w, p.Text)
	}
}

func printEntry(w io.Writer, what string, e failedspecs.Entry) {
	fmt.Fprintf(w, "\n%s at line %d", what, e.Line)
	if e.Contract != "" {
		fmt.Fprintf(w, ", %s", e.Contract)
	}
	fmt.Fprintln(w)
	for _, f := range [][2]string{{"SPEC:", e.Spec}, {"INPUT:", e.Input}, {"OBSERVED:", e.Observed}} {
		fmt.Fprintf(w, "  %-9s %s\n", f[0], strings.ReplaceAll(f[1], "\n", "\n            "))
	}
}

// end is how the command ends: nil for a candidate for a pass.
func (r ruling) end() error {
	switch r.Kind {
	case failedspecs.Pass:
		return nil
	case failedspecs.Fail:
		what := fmt.Sprintf("%d entries, each a failed contract", len(r.Entries))
		if len(r.Entries) == 1 {
			what = "1 entry, a failed contract"
		}
		return &exit.Error{Code: exit.Stuck, What: what, Safe: "a phase would go on with the Builder"}
	}
	return &exit.Error{
		Code: exit.Unverified, What: "the file is malformed and never a pass", Safe: "a phase would ask the Verifier once more",
		Do: "each failure is three lines, SPEC: …, INPUT: … and OBSERVED: … (docs/failed-specs.md)",
	}
}
