package learner

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/wording"
)

// width of the bars around a heading.
const width = 60

// report is a text of lines, and of rows that begin with a name.
type report struct{ strings.Builder }

func (r *report) row(name, format string, args ...any) {
	fmt.Fprintf(r, "  %-9s %s\n", name, wording.OneLine(fmt.Sprintf(format, args...)))
}

// rows adds a row for each text.
func (r *report) rows(name, format string, texts []string) {
	for _, text := range texts {
		r.row(name, format, text)
	}
}

// lessons adds the lessons of a cycle, and how many of them are new in a file.
func (r *report) lessons(name, file string, items []string, added int) {
	if len(items) == 0 {
		r.row(name, "nothing")
		return
	}
	r.row(name, "%d, new in %s: %d", len(items), file, added)
	r.rows("", "- %s", items)
}

// BeginText returns the heading of a session.
func BeginText(h Home, s State, resumed bool) string {
	bar, going := strings.Repeat("=", width), ""
	if resumed {
		going = fmt.Sprintf("Resuming in cycle %d, %s\n", s.Cycle, s.Step)
	}
	return fmt.Sprintf(`%s
Agent Learner Starting...
Task: %s
Agent: %s (use --agent to change)
Model: %s (use --model to change)
Learning cycles: %d
Project: %s
%s%[1]s
`, bar, wording.OneLine(s.Task), s.Agent, s.Model, s.Cycles, h.Rel(h.Root), going)
}

// cycleText returns the heading of a cycle.
func cycleText(s State) string {
	bar, c := strings.Repeat("*", width), s.Last()
	return fmt.Sprintf("\n%s\nLEARNING CYCLE %d/%d [Agent: %s | Model: %s]\n%[1]s\nUsing agent: %[4]s | model: %[5]s\n",
		bar, s.Cycle, s.Cycles, c.Agent, c.Model)
}

// stepText returns the heading of a step.
func stepText(s State) string {
	if s.Attempt > 1 {
		return fmt.Sprintf("%s (attempt %d)\n", phases[s.Step].title, s.Attempt)
	}
	return phases[s.Step].title + "\n"
}

// reportText returns the report on a cycle.
func reportText(c Cycle) string {
	var r report
	fmt.Fprintf(&r, "\nCycle %d report\n", c.Number)
	if c.OK {
		r.row("program", "%s", strings.TrimSuffix(c.Ran.Summary(), "."))
	} else {
		r.row("failed", "%s", c.Failure)
	}
	if c.Review != nil {
		r.rows("review", "%s", slices.Collect(strings.Lines(c.Review.Summary())))
	}
	r.lessons("learned", MemoryFile, c.Learned, c.Remembers)
	r.lessons("mistakes", MistakesFile, c.Mistaken, c.Avoids)
	r.rows("dropped", "%s", c.Dropped)
	r.rows("silent", "%s", c.Silent)
	is := map[bool]string{true: "improved; the one of this cycle is", false: "unchanged; archived as"}
	r.row("prompt", "%s version %d in %s", is[c.Improved != ""], c.Version, PromptsFile)
	return r.String()
}

// EndText returns the summary of a session.
func EndText(h Home, s State) string {
	var r report
	bar := strings.Repeat("=", width)
	good := slices.DeleteFunc(slices.Clone(s.Log), func(c Cycle) bool { return !c.OK })
	fmt.Fprintf(&r, "\n%s\nSession summary: %s\n", bar, wording.OneLine(s.Task))
	r.row("cycles", "%d, of which %d made a program that runs", len(s.Log), len(good))
	switch best := s.Best(); {
	case best > 0 && s.Step == Done:
		r.row("program", "%s, from cycle %d", h.Rel(h.Code()), best)
	case best > 0:
		r.row("program", "%s; %s is created from it when the session ends", h.Rel(h.Cycle(best)), h.Rel(h.Code()))
	default:
		r.row("program", "none; %s is unchanged", h.Rel(h.Code()))
	}
	if s.Step != Done {
		r.row("stopped", "in cycle %d of %d, at %s; finished cycles are saved", s.Cycle, s.Cycles, s.Step)
	}
	for _, f := range [][2]string{{"learnings", MemoryFile}, {"mistakes", MistakesFile}} {
		text, _ := h.Text(f[1]) // errors were reported before
		r.row(f[0], "%d in %s/%s", len(filled(text)), h.Rel(h.Root), f[1])
		r.rows("", "%s", filled(text))
	}
	b, _ := h.Prompts() // likewise
	r.row("prompts", "%s in %s/%s", wording.Count(len(b.Past), "earlier version"), h.Rel(h.Root), PromptsFile)
	return r.String() + bar + "\n"
}
