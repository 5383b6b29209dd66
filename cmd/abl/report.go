package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/audit"
	"abl/orchestrator/report"
)

func reportCommand() cli.Command {
	return cli.Command{
		Name: "report", Group: cli.Looking, Args: "[N] [FILE]", Usage: "show what each verdict stands on",
		Long: `Shows the audit record of phase N: verdict and contracts, what abl's own replays
gave, what the tests notice, the hashes of specs, commits and images, and the
proof of the boundary, and what the phase cost, took and changed. Without N, a
line for each iteration of every phase.

With --html all of a phase becomes one page to look at, which loads nothing and
runs nothing (docs/report.md): .abl/reports/phaseN.html, or FILE, - being the
standard output. Every phase that ends with a verdict has it made.

The records are JSON, in .abl/reports/ (docs/audit-record.md). abl writes one
when an iteration is judged; no role sees them.`,
		Examples: "abl report\nabl report 1\nabl report 2 --step 3 --md\nabl report 1 --html page.html\nabl report --open",
		Flags: []cli.Flag{
			{Name: "step", Value: "X", Usage: "the iteration that made step-X, instead of the last one"},
			{Name: "html", Usage: "as a page, in a file whose name is printed; without N of the phase judged last"},
			{Name: "open", Usage: "show the page in your browser ($BROWSER, otherwise the desktop's)"},
			{Name: "md", Usage: "as Markdown"},
			{Name: "json", Usage: "the records as one JSON document (docs/json.md)"},
		},
		Run: phase.Looking(phase.Restored(runReport)),
	}
}

func runReport(ctx context.Context, s *phase.Project) error {
	in, n, page := s.In, 0, ""
	html := in.Bool("html") || in.Bool("open")
	for i, arg := range in.Args {
		number, err := phase.Number(arg)
		switch {
		case err == nil && i == 0:
			n = number
		case html && i == len(in.Args)-1:
			page = arg
		case i == 0:
			return cli.WithHint("abl report lists what there is", "cannot report on phase %q: a phase is a number from 1 on", arg)
		default:
			return cli.WithHint("abl report 1 --html page.html", "%q is one too many: a FILE goes with --html", arg)
		}
	}
	step, err := positive(in, "step")
	switch {
	case err != nil:
		return err
	case in.Bool("md") && in.Bool("json"):
		return cli.WithHint("give one of them", "a report is Markdown or JSON, not both")
	case html && (in.Bool("md") || in.Bool("json") || step > 0):
		return cli.WithHint("abl report 1 --html", "the page has all of a phase: --html and --open go without --md, --json and --step")
	case step > 0 && n == 0:
		return cli.WithHint(fmt.Sprintf("abl report 1 --step %d", step), "--step needs the number of a phase")
	}
	phases := []int{n}
	if n == 0 {
		phases = s.Specs().Numbers()
	}
	var all []audit.Record // oldest first
	for _, n := range phases {
		records, err := phase.Records(s, n)
		if err != nil {
			return err
		}
		all = append(all, records...)
	}
	switch {
	case html && (n == 0 || len(all) > 0):
		return reportPage(ctx, s, n, page, all)
	case n > 0:
		return reportPhase(ctx, s, n, step, all)
	}
	return reportAll(ctx, s, all)
}

// reportPhase shows one iteration of phase n: that of the step, or the last.
func reportPhase(ctx context.Context, s *phase.Project, n, step int, all []audit.Record) error {
	at := len(all) - 1
	if step > 0 {
		at = slices.IndexFunc(all, func(r audit.Record) bool { return r.Step == step })
	}
	switch {
	case len(all) == 0 && !slices.Contains(s.Specs().Numbers(), n):
		return cli.WithHint("abl status lists the phases", "there is no phase %d", n)
	case len(all) == 0:
		return cli.WithHint(fmt.Sprintf("abl phase %d makes one with each verdict", n), "phase %d has no audit record yet", n)
	case at < 0:
		return cli.WithHint(fmt.Sprintf("it has those of step-%d to step-%d: abl report lists them", all[0].Step, all[len(all)-1].Step), "phase %d has no audit record of step-%d", n, step)
	}
	switch {
	case s.In.Bool("json") && step > 0:
		return s.In.JSON(map[string]any{"records": all[at : at+1]})
	case s.In.Bool("json"):
		return s.In.JSON(map[string]any{"records": all})
	}
	r, err := told(ctx, s, n)
	if err != nil {
		return err
	}
	r.Record, r.Before, r.Older = &all[at], all[:at], at < len(all)-1
	if s.In.Bool("md") {
		fmt.Fprint(s.In.Stdout, report.Markdown(r))
		return nil
	}
	var text strings.Builder
	if err := report.Text(&text, r); err != nil {
		return err
	}
	return s.In.Print(s.In.Lines(text.String()))
}

// reportAll shows every phase: as text a line for each iteration, otherwise the
// last iteration of each.
func reportAll(ctx context.Context, s *phase.Project, all []audit.Record) error {
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
		fmt.Fprintln(s.In.Stdout, "no iteration was judged yet: abl phase 1")
		return nil
	case s.In.Bool("md"):
		for _, of := range last {
			r, err := told(ctx, s, of.Phase)
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
		t.Rows = append(t.Rows, []string{strconv.Itoa(r.Phase), fmt.Sprintf("step-%d", r.Step), l.Decided, l.Verdict, l.Contracts, l.Title})
	}
	return s.In.Print(s.In.Table(t))
}
