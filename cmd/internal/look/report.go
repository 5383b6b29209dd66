package look

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/audit"
	"abl/orchestrator/report"
)

// reportOptions are the flags of abl report.
type reportOptions struct {
	step           int
	html, open, md bool
}

// ReportCommand returns `abl report`.
func ReportCommand() cli.Command {
	var o reportOptions
	return cli.Command{
		Name:  "report",
		Group: cli.Inspecting,
		Args:  "[N] [FILE]",
		Usage: "show the evidence for each verdict",
		Long: `Shows the audit record of phase N: verdict, contracts, results of abl's replays, the
altered responses that the tests detect, the hashes of specs, commits and images, the
proof of the boundary, and the phase's cost, time and changes. Without N, shows one line
per iteration of every phase.

With --html it writes a page for the phase, without scripts and external resources
(docs/report.md), to .abl/reports/phaseN.html or to FILE; - is standard output. abl also
writes the page after every phase that ends with a verdict.

The records are JSON files in .abl/reports/ (docs/audit-record.md). abl writes one for
each verdict; no role sees them.`,
		Examples: "abl report\nabl report 1\nabl report 2 --step 3 --md\nabl report 1 --html page.html\nabl report --open",
		Flags: []cli.Flag{
			{Name: "step", To: &o.step, Value: "X", Usage: "show the iteration of step-X (default: the last)"},
			{Name: "html", To: &o.html, Usage: "write the HTML report and print its path (without N: of the phase judged last)"},
			{Name: "open", To: &o.open, Usage: "open the page in your browser ($BROWSER, otherwise the desktop's)"},
			{Name: "md", To: &o.md, Usage: "print Markdown"},
			{Name: "json", Usage: "print the records as one JSON document (docs/json.md)"},
		},
		Run: project.Looking(project.Restored(o.run)),
	}
}

func (o *reportOptions) run(ctx context.Context, s *project.Project) error {
	in, n, page := s.In, 0, ""
	html := o.html || o.open
	for i, arg := range in.Args {
		number, err := project.Number(arg)
		switch {
		case err == nil && i == 0:
			n = number
		case html && i == len(in.Args)-1:
			page = arg
		case i == 0:
			return cli.WithHint("abl report lists the phases", "cannot report on phase %q: phase must be a positive number", arg)
		default:
			return cli.WithHint("abl report 1 --html page.html", "unexpected argument %q: FILE needs --html", arg)
		}
	}
	switch {
	case o.md && in.Bool("json"):
		return cli.Usagef("--md and --json are mutually exclusive")
	case html && (o.md || in.Bool("json") || o.step > 0):
		return cli.WithHint("abl report 1 --html", "give --html and --open without --md, --json and --step")
	case o.step > 0 && n == 0:
		return cli.WithHint(fmt.Sprintf("abl report 1 --step %d", o.step), "--step needs the number of a phase")
	}
	phases := []int{n}
	if n == 0 {
		phases = s.Specs().Numbers()
	}
	var all []audit.Record // oldest first
	for _, n := range phases {
		records, err := s.Records(n)
		if err != nil {
			return err
		}
		all = append(all, records...)
	}
	switch {
	case html && (n == 0 || len(all) > 0):
		return reportPage(ctx, s, n, page, o.open, all)
	case n > 0:
		return o.phase(ctx, s, n, all)
	}
	return o.all(ctx, s, all)
}

// phase prints one iteration of phase n: the one of --step, or the last.
func (o *reportOptions) phase(ctx context.Context, s *project.Project, n int, all []audit.Record) error {
	at := len(all) - 1
	if o.step > 0 {
		at = slices.IndexFunc(all, func(r audit.Record) bool { return r.Step == o.step })
	}
	switch {
	case len(all) == 0 && !slices.Contains(s.Specs().Numbers(), n):
		return cli.WithHint("abl status lists the phases", "there is no phase %d", n)
	case len(all) == 0:
		return cli.WithHint(fmt.Sprintf("abl phase %d writes one with each verdict", n), "phase %d has no audit record yet",
			n)
	case at < 0:
		hint := fmt.Sprintf("its records are from step-%d to step-%d; abl report lists them", all[0].Step,
			all[len(all)-1].Step)
		return cli.WithHint(hint, "phase %d has no audit record of step-%d", n, o.step)
	}
	switch {
	case s.In.Bool("json") && o.step > 0:
		return s.In.JSON(map[string]any{"records": all[at : at+1]})
	case s.In.Bool("json"):
		return s.In.JSON(map[string]any{"records": all})
	}
	r, err := reportOf(ctx, s, n)
	if err != nil {
		return err
	}
	r.Record, r.Before, r.Older = &all[at], all[:at], at < len(all)-1
	if o.md {
		fmt.Fprint(s.In.Stdout, report.Markdown(r))
		return nil
	}
	var text strings.Builder
	if err := report.Text(&text, r); err != nil {
		return err
	}
	return s.In.Print(s.In.Lines(text.String()))
}

// all prints every phase: one line per iteration as text, the last iteration of each phase as
// Markdown or JSON.
func (o *reportOptions) all(ctx context.Context, s *project.Project, all []audit.Record) error {
	var last []audit.Record
	for i, r := range all {
		if i+1 == len(all) || all[i+1].Phase != r.Phase {
			last = append(last, r)
		}
	}
	switch {
	case s.In.Bool("json"):
		return s.In.JSON(map[string]any{"records": append([]audit.Record{}, last...)})
	case len(all) == 0:
		fmt.Fprintln(s.In.Stdout, "no phase has a verdict yet: run abl phase 1")
		return nil
	case o.md:
		for _, of := range last {
			r, err := reportOf(ctx, s, of.Phase)
			if err != nil {
				return err
			}
			fmt.Fprint(s.In.Stdout, report.Markdown(r))
		}
		return nil
	}
	t := view.Table{Header: strings.Fields("PHASE STEP DECIDED VERDICT CONTRACTS TITLE"), Flex: 4}
	for _, r := range all {
		l := report.Overview(r)
		t.Rows = append(t.Rows, []string{strconv.Itoa(r.Phase), fmt.Sprintf("step-%d", r.Step), l.Decided, l.Verdict,
			l.Contracts, l.Title})
	}
	return s.In.Print(s.In.Table(t))
}
