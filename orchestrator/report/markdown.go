package report

import (
	"fmt"
	"strings"

	"abl/internal/audit"
)

// maxMarkdown bounds one page, in bytes: what takes it up refuses more than a
// mebibyte.
const maxMarkdown = 512 << 10

// Markdown is a phase's newest iteration as a page, or a part of one.
func Markdown(r Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### abl %s\n\n", inHeading(r.heading()))
	if r.Ended != nil {
		fmt.Fprintf(&b, "**No verdict**: %s (exit code %d)\n\n", code(r.Ended.What), r.Ended.Code)
	}
	if r.Record != nil {
		page(&b, *r.Record)
	}
	return b.String()
}

// inHeading is code for most of a heading: the words of abl's own stay plain.
func inHeading(s string) string {
	number, title, ok := strings.Cut(s, ": ")
	if !ok {
		return s
	}
	return number + ": " + code(title)
}

func page(b *strings.Builder, r audit.Record) {
	fmt.Fprintf(b, "**%s** in step-%d (round %d, iteration %d), %s: %s\n\n", word(r.Verdict), r.Step, r.Round, r.Iteration, when(r.Decided), counted(r))
	for _, why := range r.Missing {
		fmt.Fprintf(b, "- lacks: %s\n", code(why))
	}
	fails(b, r)
	b.WriteString("\n| contract | says | result | why |\n|---|---|---|---|\n")
	for i, c := range r.Contracts {
		if b.Len() > maxMarkdown {
			fmt.Fprintf(b, "\nand %d contracts more\n", len(r.Contracts)-i)
			break
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(c.ID), code(c.Says), word(c.Result), code(told(c, r)))
	}
	b.WriteString("\n<details><summary>what it stands on</summary>\n\n| | |\n|---|---|\n")
	for _, f := range facts(r) {
		if b.Len() < 2*maxMarkdown-64<<10 {
			fmt.Fprintf(b, "| %s | %s |\n", code(f.name), code(f.value))
		}
	}
	b.WriteString("\n</details>\n\n")
}

// fails shows what failed, with what was seen, before all else.
func fails(b *strings.Builder, r audit.Record) {
	show := func(id, says, input, observed string) {
		if b.Len() > maxMarkdown/2 {
			return // the table has them all
		}
		fmt.Fprintf(b, "- **FAIL** %s %s<br>input %s<br>observed %s\n", id, code(says), code(input), code(observed))
	}
	for _, c := range r.Contracts {
		if c.Result == audit.Fail {
			show(code(c.ID), c.Says, c.Input, c.Observed)
		}
	}
	for _, e := range besides(r) {
		show("", e.Spec, e.Input, e.Observed)
	}
}

// word is a verdict or a result of abl's own; what is none is told as unknown.
func word(s string) string {
	switch s {
	case audit.Pass, "unverified":
		return s
	case audit.Fail:
		return "FAIL"
	}
	return audit.Unknown
}
