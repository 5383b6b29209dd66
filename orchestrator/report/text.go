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
	fmt.Fprintf(b, "step-%d: %s, %s, in round %d, iteration %d (%s): %s\n",
		r.Step, strings.ToUpper(line(r.Verdict)), when(r.Decided), r.Round, r.Iteration, line(r.Status), counted(r))
	for _, why := range r.Missing {
		fmt.Fprintf(b, "  lacks: %s\n", line(why))
	}
	b.WriteString("\ncontracts\n")
	some := false
	for _, c := range r.Contracts {
		came := mark(c, r)
		if came == audit.Fail {
			came = "FAIL"
		}
		fmt.Fprintf(b, "  %-7s %s  %s\n", came, line(c.ID), line(c.Says))
		some = some || spared(c, r)
		if spared(c, r) || c.Result == audit.Pass && c.Is == "verified" {
			continue
		}
		fmt.Fprintf(b, "          %s\n", line(told(c, r)))
		if c.Result == audit.Fail || c.Is == "disputed" {
			b.WriteString(seen(c.Input, c.Observed, "          "))
		}
	}
	if some {
		fmt.Fprintf(b, "  untried: %s\n", untried)
	}
	for n, e := range besides(r) {
		if n == 0 {
			b.WriteString("\nwhat fails besides\n")
		}
		fmt.Fprintf(b, "  %s\n%s", line(e.Spec), seen(e.Input, e.Observed, "          "))
	}
	b.WriteString("\nwhat it stands on\n")
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, f := range facts(r) {
		fmt.Fprintf(t, "  %s\t%s\n", line(f.name), line(f.value))
	}
	t.Flush()
}

// seen is what went in and what came out.
func seen(input, observed, indent string) string {
	var b strings.Builder
	for _, f := range [][2]string{{"INPUT", input}, {"OBSERVED", observed}} {
		if f[1] != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", indent, f[0], block(f[1], indent+"  "))
		}
	}
	return b.String()
}
