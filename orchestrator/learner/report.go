package learner

import (
	"fmt"
	"strings"
)

// Teller shows a person how a session goes.
type Teller interface {
	Line(format string, args ...any)      // on its own
	Row(name, format string, args ...any) // of a report
	Note(text string)                     // something worth knowing
}

// width of the bars around a heading.
const width = 60

// TellBegin opens a session.
func TellBegin(t Teller, h Home, s State, resumed bool) {
	bar := strings.Repeat("=", width)
	t.Line("%s", bar)
	t.Line("Agent Learner Starting...")
	t.Line("Task: %s", s.Task)
	t.Line("Agent: %s (use --agent to change)", s.Agent)
	t.Line("Model: %s (use --model to change)", s.Model)
	t.Line("Learning cycles: %d", s.Cycles)
	t.Line("Project: %s", h.Rel(h.Root))
	if resumed {
		t.Line("Going on where an earlier run stopped: cycle %d, %s", s.Cycle, s.Step)
	}
	t.Line("%s", bar)
}

// tellCycle says that a cycle begins, or goes on.
func tellCycle(t Teller, s State) {
	bar, c := strings.Repeat("*", width), s.Last()
	t.Line("")
	t.Line("%s", bar)
	t.Line("LEARNING CYCLE %d/%d [Agent: %s | Model: %s]", s.Cycle, s.Cycles, c.Agent, c.Model)
	t.Line("%s", bar)
	t.Line("Using agent: %s | model: %s", c.Agent, c.Model)
}

// tellStep says which step begins, or goes on.
func tellStep(t Teller, s State) {
	text := phases[s.Step].told
	if s.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", s.Attempt)
	}
	t.Line("%s", text)
}

// tellReport says what came of a cycle.
func tellReport(t Teller, c Cycle) {
	t.Line("")
	t.Line("Cycle %d report", c.Number)
	if c.OK {
		t.Row("program", "%s", strings.TrimSuffix(c.Ran.Summary(), "."))
	} else {
		t.Row("failed", "%s", c.Failure)
	}
	if c.Review != nil {
		for line := range strings.Lines(c.Review.Summary()) {
			t.Row("review", "%s", strings.TrimSuffix(line, "\n"))
		}
	}
	tellLessons(t, "learned", c.Learned, c.Remembers, MemoryFile)
	tellLessons(t, "mistakes", c.Mistaken, c.Avoids, MistakesFile)
	for _, d := range c.Dropped {
		t.Row("dropped", "%s", d)
	}
	for _, q := range c.Silent {
		t.Row("silent", "%s", q)
	}
	if c.Improved != "" {
		t.Row("prompt", "improved; the one of this cycle is version %d in %s", c.Version, PromptsFile)
	} else {
		t.Row("prompt", "stays as it is; archived as version %d in %s", c.Version, PromptsFile)
	}
}

func tellLessons(t Teller, name string, items []string, added int, file string) {
	if len(items) == 0 {
		t.Row(name, "nothing")
		return
	}
	t.Row(name, "%d, new in %s: %d", len(items), file, added)
	tellItems(t, items)
}

func tellItems(t Teller, items []string) {
	for _, item := range items {
		t.Row("", "- %s", item)
	}
}

// TellEnd closes a session with all that is known by now.
func TellEnd(t Teller, h Home, s State) {
	bar := strings.Repeat("=", width)
	t.Line("")
	t.Line("%s", bar)
	t.Line("Session summary: %s", s.Task)
	good := 0
	for _, c := range s.Log {
		if c.OK {
			good++
		}
	}
	t.Row("cycles", "%d, of which %d made a program that runs", len(s.Log), good)
	switch best := s.Best(); {
	case best > 0 && s.Step == Done:
		t.Row("program", "%s, from cycle %d", h.Rel(h.Code()), best)
	case best > 0:
		t.Row("program", "%s; %s is made of it when the session ends", h.Rel(h.Cycle(best)), h.Rel(h.Code()))
	default:
		t.Row("program", "none; %s is as it was", h.Rel(h.Code()))
	}
	if s.Step != Done {
		t.Row("stopped", "in cycle %d of %d, at %s; what is done is kept", s.Cycle, s.Cycles, s.Step)
	}
	tellFile(t, h, "learnings", MemoryFile)
	tellFile(t, h, "mistakes", MistakesFile)
	if b, err := h.Prompts(); err == nil {
		t.Row("prompts", "%d earlier versions in %s/%s", len(b.Past), h.Rel(h.Root), PromptsFile)
	}
	t.Line("%s", bar)
}

// tellFile shows what memory.txt or mistakes.txt holds.
func tellFile(t Teller, h Home, what, file string) {
	text, err := h.Text(file)
	if err != nil {
		t.Row(what, "%v", err)
		return
	}
	items := lessonsIn(text)
	t.Row(what, "%d in %s/%s", len(items), h.Rel(h.Root), file)
	tellItems(t, items)
}
