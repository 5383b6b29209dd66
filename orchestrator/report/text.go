package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"abl/internal/audit"
)

// Text is a phase's newest iteration for a terminal, and a line for each before.
func Text(w io.Writer, r Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", line(r.heading()))
	for _, before := range r.Before {
		fmt.Fprintf(&b, "step-%d: %s (%s)\n", before.Step, line(before.Verdict), counted(before))
	}
	if r.Record != nil {
		text(&b, *r.Record)
	}
	if r.Ended != nil {
		fmt.Fprintf(&b, "\nno verdict: %s (exit code %d)\n", line(r.Ended.What), r.Ended.Code)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func text(b *strings.Builder, r audit.Record) {
	fmt.Fprintf(b, "step-%d: %s, %s, in round %d, iteration %d (%s)\n", r.Step, strings.ToUpper(line(r.Verdict)), when(r.Decided), r.Round, r.Iteration, line(r.Status))
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "  %s\t%s\n", name, value)
		}
	}
	row("contracts", counted(r).String())
	row("source", line(r.Commits.Source))
	row("tests", line(r.Commits.Tests))
	row("tag", line(r.Commits.Tag))
	row("evidence", evidenceOf(r))
	row("boundary", line(boundaries(r)))
	for _, s := range r.Specs {
		row(fmt.Sprintf("spec %d", s.Phase), "sha256 "+line(s.SHA256)+", "+line(s.File))
	}
	t.Flush()
	list(b, "what the verdict lacks", r.Missing)
	contracts(b, r)
	for n, i := range besides(r) {
		if n == 0 {
			b.WriteString("\nwhat fails besides\n")
		}
		e := r.Entries[i]
		fmt.Fprintf(b, "  %s\n", line(e.Spec))
		observation(b, e.Input, e.Observed)
	}
	list(b, "notes", news(r))
	replays(b, r)
	calls(b, r)
}

// evidenceOf says what the verdict stands on besides the Verifier's word.
func evidenceOf(r audit.Record) string {
	switch {
	case r.Evidence == "off":
		return "the Verifier's word alone (verify.evidence is off)"
	case len(r.Replays) == 0:
		return "no replay was made"
	}
	text := fmt.Sprintf("%d replays by abl itself", len(plain(r.Replays)))
	if len(plain(r.Replays)) == 1 {
		text = "1 replay by abl itself"
	}
	if others := tried(r); len(others) > 0 {
		text += ", tried against " + strings.Join(others, ", ") + " too"
	}
	if len(r.Calls) == 0 {
		text += "; no agent was called"
	}
	return text
}

func list(b *strings.Builder, head string, texts []string) {
	for i, text := range texts {
		if i == 0 {
			fmt.Fprintf(b, "\n%s\n", head)
		}
		fmt.Fprintf(b, "  %s\n", line(text))
	}
}

func contracts(b *strings.Builder, r audit.Record) {
	b.WriteString("\ncontracts\n")
	some := false
	for _, c := range r.Contracts {
		fmt.Fprintf(b, "  %-7s %s  %s\n", mark(c, r), line(c.ID), line(c.Says))
		if spared(c, r) {
			some = true
			continue
		}
		if c.Result == audit.Pass && c.Is == "verified" {
			continue
		}
		fmt.Fprintf(b, "          %s\n", line(told(c, r)))
		if c.Result == audit.Fail || c.Is == "disputed" {
			observation(b, c.Input, c.Observed)
		}
	}
	if some {
		fmt.Fprintf(b, "  untried: %s\n", untried)
	}
}

func observation(b *strings.Builder, input, observed string) {
	for _, f := range [][2]string{{"INPUT", input}, {"OBSERVED", observed}} {
		if f[1] != "" {
			fmt.Fprintf(b, "          %s: %s\n", f[0], block(f[1], "            "))
		}
	}
}

func mark(c audit.Contract, r audit.Record) string {
	switch {
	case c.Result == audit.Fail:
		return "FAIL"
	case spared(c, r):
		return "untried"
	}
	return line(c.Result)
}

func replays(b *strings.Builder, r audit.Record) {
	if len(r.Replays) == 0 {
		return
	}
	b.WriteString("\nreplays\n")
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, run := range plain(r.Replays) {
		fmt.Fprintf(t, "  %s\t%s\n", line(run.Name), line(cameTo(run)))
	}
	t.Flush()
}

// cameTo is what a replay came to, in a few words.
func cameTo(run audit.Replay) string {
	switch {
	case run.Failed != "":
		return "the app did not start: " + run.Failed
	case run.Gone != "":
		return run.Gone
	}
	text := fmt.Sprintf("%d of %d tests ok, exit code %d, %s", run.OK, run.Tests, run.Exit, took(run.MS))
	if run.Late {
		text += ", stopped at its time limit"
	}
	if len(run.Doubts) > 0 {
		text += ", not believed: " + run.Doubts[0]
	}
	return text
}

func calls(b *strings.Builder, r audit.Record) {
	if len(r.Calls) == 0 {
		return
	}
	b.WriteString("\ncalls\n")
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, c := range r.Calls {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", line(c.Key), line(c.Role), line(who(c)), line(classOf(c)), held(c.Boundary))
	}
	t.Flush()
}

// classOf is a call's class; where it is not done, with how its last answer ended.
func classOf(c audit.Call) string {
	if c.Finish == "" || c.Class == "done" {
		return c.Class
	}
	return c.Class + " (" + c.Finish + ")"
}

func who(c audit.Call) string {
	if c.Model == "" {
		return c.Agent
	}
	return c.Agent + " " + c.Model
}

func held(p *audit.Proof) string {
	if p == nil {
		return "no boundary proof"
	}
	return fmt.Sprintf("boundary %d of %d", p.Held, p.Checks)
}

// Line is an iteration in a table of many.
type Line struct{ Decided, Verdict, Contracts, Title string }

// Overview is a record as one line of a table.
func Overview(r audit.Record) Line {
	l := Line{Decided: when(r.Decided), Verdict: line(r.Verdict), Contracts: counted(r).String(), Title: line(r.Title)}
	return l
}
