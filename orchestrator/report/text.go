package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"abl/internal/audit"
	"abl/internal/redact"
	"abl/internal/wording"
)

// Text writes a phase's newest iteration for a terminal, and one line for each earlier one.
func Text(w io.Writer, r Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.heading(line))
	for _, before := range r.Before {
		fmt.Fprintf(&b, "step-%d: %s (%s)\n", before.Step, line(before.Verdict), counted(before))
	}
	if r.Record != nil {
		text(&b, *r.Record, r.used())
	}
	if r.Ended != nil {
		fmt.Fprintf(&b, "\nno verdict: %s (exit code %d)\n", line(r.Ended.What), r.Ended.Code)
	}
	if r.Record != nil && !r.Older && r.Ended == nil {
		fmt.Fprintf(&b, "\nnext: %s\n", r.Next(r.Record.Status))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func text(b *strings.Builder, r audit.Record, used string) {
	fmt.Fprintf(b, "step-%d: %s, %s, in round %d, iteration %d (%s): %s\n",
		r.Step, strings.ToUpper(line(r.Verdict)), when(r.Decided), r.Round, r.Iteration, line(r.Status), counted(r))
	for _, why := range r.Missing {
		fmt.Fprintf(b, "  missing: %s\n", line(why))
	}
	if used != "" {
		fmt.Fprintf(b, "  %s\n", used)
	}
	b.WriteString("\ncontracts\n")
	some := false
	for _, c := range r.Contracts {
		result := shown(mark(c, r))
		if result == audit.Fail {
			result = "FAIL"
		}
		fmt.Fprintf(b, "  %-10s %s  %s\n", result, line(c.ID), line(c.Says))
		some = some || skippedChecks(c, r)
		if text := witnessed(c); text != "" {
			fmt.Fprintf(b, "             %s\n", line(text))
		}
		if c.Test != "" {
			fmt.Fprintf(b, "             test output: %s\n", line(c.Test))
		}
		if skippedChecks(c, r) || c.Result == audit.Pass && c.Is == "verified" {
			continue
		}
		fmt.Fprintf(b, "             %s\n", line(standingText(c, r)))
		if e, ok := given(c, r); ok {
			fmt.Fprintf(b, "             the entry for the Builder:\n               SPEC: %s\n", line(e.Spec))
			b.WriteString(seen(e.Input, e.Observed, "               "))
		} else if c.Result == audit.Fail || c.Is == "disputed" {
			b.WriteString(seen(c.Input, c.Observed, "             "))
		}
	}
	if some {
		fmt.Fprintf(b, "  %s: %s\n", okSoFar, notFurther)
	}
	for n, e := range otherEntries(r) {
		if n == 0 {
			b.WriteString("\nother failures\n")
		}
		fmt.Fprintf(b, "  %s\n%s", line(e.Spec), seen(e.Input, e.Observed, "             "))
	}
	b.WriteString("\nevidence\n")
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, f := range facts(r) {
		fmt.Fprintf(t, "  %s\t%s\n", line(f.name), line(f.value))
	}
	t.Flush()
}

// seen returns the input and the observation of a failure.
func seen(input, observed, indent string) string {
	var b strings.Builder
	for _, f := range [][2]string{{"INPUT", input}, {"OBSERVED", observed}} {
		if f[1] != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", indent, f[0], block(f[1], indent+"  "))
		}
	}
	return b.String()
}

// maxMarkdown is the largest size of a Markdown report, in bytes. Services refuse more than a
// mebibyte.
const maxMarkdown = 512 << 10

// Markdown returns a phase's newest iteration as Markdown.
func Markdown(r Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### abl %s\n\n", r.heading(code))
	if r.Ended != nil {
		fmt.Fprintf(&b, "**No verdict**: %s (exit code %d)\n\n", code(r.Ended.What), r.Ended.Code)
	}
	if used := r.used(); used != "" {
		fmt.Fprintf(&b, "%s\n\n", used)
	}
	if r.Record != nil && !r.Older && r.Ended == nil {
		fmt.Fprintf(&b, "next: %s\n\n", code(r.Next(r.Record.Status)))
	}
	if r.Page != "" {
		fmt.Fprintf(&b, "Full report: %s\n\n", code(r.Page))
	}
	if r.Record != nil {
		page(&b, r)
	}
	whole := b.String()
	if len(whole) > maxMarkdown { // cut at a line's end, and close the details element
		whole = whole[:strings.LastIndexByte(whole[:maxMarkdown], '\n')]
		whole += fmt.Sprintf("\n\nThere is more: abl report %d\n\n</details>\n\n", r.Phase)
	}
	return whole
}

func page(b *strings.Builder, run Run) {
	r, before := *run.Record, run.Before[max(0, len(run.Before)-maxBefore):]
	fmt.Fprintf(b, "**%s** in step-%d (round %d, iteration %d), %s: %s\n\n", word(r.Verdict), r.Step, r.Round, r.Iteration,
		when(r.Decided), counted(r))
	for _, why := range r.Missing {
		fmt.Fprintf(b, "- missing: %s\n", code(why))
	}
	fails(b, r)
	b.WriteString("\n| contract | says |")
	for _, earlier := range before {
		fmt.Fprintf(b, " step-%d |", earlier.Step)
	}
	fmt.Fprintf(b, " step-%d | why |\n|---|---|%s---|---|\n", r.Step, strings.Repeat("---|", len(before)))
	for _, c := range r.Contracts {
		why := code(standingText(c, r))
		if text := witnessed(c); text != "" {
			why += "<br>" + code(text)
		}
		if c.Test != "" {
			why += "<br>test output " + code(c.Test)
		}
		fmt.Fprintf(b, "| %s | %s |", code(c.ID), code(c.Says))
		for _, earlier := range before {
			fmt.Fprintf(b, " %s |", resultIn(earlier, c.ID))
		}
		fmt.Fprintf(b, " %s | %s |\n", word(mark(c, r)), why)
	}
	b.WriteString("\n<details><summary>evidence</summary>\n\n| | |\n|---|---|\n")
	for _, f := range facts(r) {
		fmt.Fprintf(b, "| %s | %s |\n", code(f.name), code(f.value))
	}
	b.WriteString("\n</details>\n\n")
}

// maxBefore is the number of earlier iterations with a column.
const maxBefore = 9

// resultIn returns the result of a contract in an iteration, "–" if the contract did not exist.
func resultIn(r audit.Record, id string) string {
	for _, c := range r.Contracts {
		if c.ID == id {
			return word(mark(c, r))
		}
	}
	return "–"
}

// fails lists the failures with their observations.
func fails(b *strings.Builder, r audit.Record) {
	show := func(id, says, input, observed string) {
		fmt.Fprintf(b, "- **FAIL** %s %s<br>input %s<br>observed %s\n", id, code(says), code(input), code(observed))
	}
	for _, c := range r.Contracts {
		if e, ok := given(c, r); ok {
			show(code(c.ID)+" (the entry for the Builder)", e.Spec, e.Input, e.Observed)
		} else if c.Result == audit.Fail {
			show(code(c.ID), c.Says, c.Input, c.Observed)
		}
	}
	for _, e := range otherEntries(r) {
		show("", e.Spec, e.Input, e.Observed)
	}
}

// word returns a verdict or a result as a word. Unknown ones are unverified.
func word(s string) string {
	switch s {
	case audit.Pass, "unverified", okSoFar:
		return s
	case audit.Fail:
		return "FAIL"
	}
	return "unverified"
}

// Limits of one text of a record, in bytes: on a line, and in a block of lines.
const (
	maxLine  = 600
	maxBlock = 4 << 10
)

// line returns a text on one line, without characters that control a terminal.
func line(s string) string { return wording.Short(redact.Line(s), maxLine) }

// block returns a text of several lines. Those after the first are indented, so that they cannot be
// mistaken for abl's lines.
func block(s, indent string) string {
	s = wording.Short(redact.String(strings.ReplaceAll(s, "\r\n", "\n")), maxBlock)
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+indent)
}

// steering are the characters with a meaning in Markdown: its marks, HTML, table cells, mathematics,
// automatic links and mentions. As character references they are plain text. Characters that only
// count at the beginning of a line are not needed, because a text never begins a line.
const steering = "\\`*_[]<>&!~|$:@^{}\"'#"

// code returns a text for use within a line of Markdown, also in a table cell. The code element
// prevents automatic links.
func code(s string) string {
	s = line(s)
	if s == "" {
		return "–"
	}
	var b strings.Builder
	b.WriteString("<code>")
	before := 'x'
	for _, r := range s {
		if strings.ContainsRune(steering, r) || r == '.' && (before == 'w' || before == 'W') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	b.WriteString("</code>")
	return b.String()
}
