package look

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
	"abl/cmd/internal/project"
	"abl/internal/failedspecs"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
)

// ruling is what `abl verdict --json` prints.
type ruling struct {
	File   string `json:"file"`
	Absent bool   `json:"absent,omitempty"`
	failedspecs.Result
	Builder []failedspecs.Entry   `json:"builder,omitempty"` // the entries as the Builder would get them
	LeftOut []failedspecs.Problem `json:"left_out,omitempty"`
}

// VerdictCommand returns `abl verdict`.
func VerdictCommand() cli.Command {
	return cli.Command{
		Name:  "verdict",
		Group: cli.Inspecting,
		Args:  "FILE|DIR",
		Usage: "show how abl reads a failed_specs.md",
		Long: `Reads a failed_specs.md as a phase does: the file itself, or the one in a Verifier's
workspace or in a project. Shows its entries, its errors, and the part that would reach
the Builder. It changes nothing. In a project, each entry is shown with the contract that
it names (docs/failed-specs.md).`,
		Examples: "abl verdict .\nabl verdict .abl/tests/failed_specs.md --json",
		Flags:    []cli.Flag{cli.JSONFlag()},
		Codes: []exit.Entry{
			{Code: exit.Passed, Meaning: "pass: the file does not exist, or contains only white space"},
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

// placeOf returns the directory and the name of the file that arg selects. A file with another name than
// failed_specs.md must exist: a typing error is not a pass.
func placeOf(in *cli.Input, arg string) (dir, name string, err error) {
	dir, name = filepath.Dir(arg), filepath.Base(arg)
	needed := arg
	if name == failedspecs.FileName {
		needed = dir
	}
	info, err := os.Stat(needed)
	if err != nil {
		return "", "", exit.With(exit.Usage, fmt.Errorf("cannot find the file: %w", err),
			"name a failed_specs.md, a Verifier's workspace or a project")
	}
	if name == failedspecs.FileName || !info.IsDir() {
		return dir, name, nil
	}
	if own, err := os.Lstat(filepath.Join(arg, state.Dir)); err != nil || !own.IsDir() {
		return arg, failedspecs.FileName, nil
	}
	s, err := project.OpenAt(in, arg)
	if err != nil {
		return "", "", err
	}
	return s.Paths.Tests, failedspecs.FileName, nil
}

// specsAbove returns the specs of the project that contains dir, nil without a project.
func specsAbove(dir string) []spec.Spec {
	root, err := state.Find(dir)
	if err != nil {
		return nil
	}
	set, _ := spec.LoadDir(state.NewProject(root, "", "").Specs())
	return set.UpTo(spec.MaxPhase)
}

// rule judges the file as a phase does. Something other than a regular file of a readable size is never a
// pass.
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
		why := "the file is empty"
		if r.Absent {
			why = "the file does not exist"
		}
		fmt.Fprintf(w, " (%s)\nA phase also needs evidence from replays to pass: abl report shows it.", why)
	}
	fmt.Fprintln(w)
	for _, e := range r.Entries {
		printEntry(w, "entry", e)
	}
	for _, e := range r.Incomplete {
		printEntry(w, "incomplete (ignored, the Builder never gets it),", e)
	}
	if len(r.LeftOut) > 0 { // otherwise the Builder gets the same entries
		for _, e := range r.Builder {
			printEntry(w, "for the Builder,", e)
		}
	}
	for i, p := range slices.Concat(r.Problems, r.LeftOut) {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if p.Line > 0 { // 0 means the whole file
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

// end returns the error of a file that is not a pass.
func (r ruling) end() error {
	switch r.Kind {
	case failedspecs.Pass:
		return nil
	case failedspecs.Fail:
		what := wording.Count(len(r.Entries), "failed contract")
		return &exit.Error{Code: exit.Stuck, What: what, Safe: "in a phase, the Builder would be next"}
	}
	return &exit.Error{
		Code: exit.Unverified,
		What: "the file is malformed, which is not a pass",
		Safe: "in a phase, abl would ask the Verifier again",
		Do:   "write each failure on three lines: SPEC: …, INPUT: … and OBSERVED: … (docs/failed-specs.md)",
	}
}
