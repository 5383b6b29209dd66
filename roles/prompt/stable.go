package prompt

import (
	"fmt"
	"strings"

	"abl/internal/helper"
	"abl/internal/wording"
)

func projectSection(in Input) string {
	if strings.TrimSpace(in.ProjectMD) == "" {
		return ""
	}
	return "# The project\n\nWritten by the person whose project this is.\n\n" + marked("project description", in.ProjectMD)
}

// specsSection is worded without the phase's number, so that the specs of
// earlier phases are the same text in every phase.
func specsSection(in Input) string {
	var b strings.Builder
	b.WriteString("# The specs\n\n")
	if !in.Role.App {
		b.WriteString("The last one is your task. Those before it are law and must keep holding.\n")
	} else {
		b.WriteString("Every contract in every one of them is to be tested in this call.\n")
	}
	for _, s := range in.Specs {
		fmt.Fprintf(&b, "\n%s", marked(fmt.Sprintf("%s/phase%d.md", helper.Specs, s.Number), s.Text))
	}
	return b.String()
}

func contractsSection(in Input) string {
	var b strings.Builder
	b.WriteString("# The contracts and their ids\n\n")
	for _, s := range in.Specs {
		for _, c := range s.Contracts {
			fmt.Fprintf(&b, "- %s: %s\n", c.ID, wording.OneLine(c.Says()))
		}
	}
	return b.String()
}

// marked puts a person's text between two lines that say where it begins and
// ends, so that headings of its own do not run into abl's.
func marked(name, text string) string {
	return fmt.Sprintf("[begin %s]\n%s\n[end %s]\n", name, strings.TrimSpace(text), name)
}
