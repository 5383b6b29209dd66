package learn

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/view"
	"abl/orchestrator/learner"
)

// teller tells a person how a session goes: on standard output, or beside it
// where that is a program's.
type teller struct {
	out  io.Writer
	in   *cli.Input
	now  *view.OneLine // what goes on, nil where that cannot be shown
	last string        // what was told of it where it cannot
}

func newTeller(in *cli.Input) *teller {
	if in.Bool("json") {
		return besides(in)
	}
	return &teller{out: in.Stdout, in: in, now: view.NewOneLine(in.Bare.Stdout, os.Getenv)}
}

// besides tells on standard error.
func besides(in *cli.Input) *teller {
	return &teller{out: in.Stderr, in: in, now: view.NewOneLine(in.Bare.Stderr, os.Getenv)}
}

// print shows lines that are safe to look at.
func (t *teller) print(format string, args ...any) {
	t.now.Around(func() { fmt.Fprintf(t.out, format, args...) })
}

// progress shows what goes on: at a terminal each text in the place of the one
// before. Elsewhere only the first of those about the same thing, which stands
// before the colon, is told.
func (t *teller) progress(text string) {
	text = t.in.Outlet.Line(text)
	if t.now != nil {
		t.now.Show("  " + text)
		return
	}
	if about, _, _ := strings.Cut(text, ":"); about != t.last {
		t.last = about
		t.print("  %s\n", text)
	}
}

// action shows what an agent does: at a terminal as progress, elsewhere line by line.
func (t *teller) action(text string) {
	if t.now != nil {
		t.progress(text)
		return
	}
	t.Note(text)
}

const width = 60

func (t *teller) line(format string, args ...any) {
	t.print("%s\n", t.in.Outlet.Line(fmt.Sprintf(format, args...)))
}

// row is a line of a report, its columns as they are.
func (t *teller) row(name, format string, args ...any) {
	t.print("  %-9s %s\n", name, t.in.Outlet.Line(fmt.Sprintf(format, args...)))
}

// banner opens a session.
func (t *teller) banner(h learner.Home, s learner.State, resumed bool) {
	bar := strings.Repeat("=", width)
	t.line("%s", bar)
	t.line("Agent Learner Starting...")
	t.line("Task: %s", s.Task)
	t.line("Agent: %s (use --agent to change)", s.Agent)
	t.line("Model: %s (use --model to change)", s.Model)
	t.line("Learning cycles: %d", s.Cycles)
	t.line("Project: %s", h.Rel(h.Root))
	if resumed {
		t.line("Going on where an earlier run stopped: cycle %d, %s", s.Cycle, s.Step)
	}
	t.line("%s", bar)
}

// Cycle implements learner.Teller.
func (t *teller) Cycle(s learner.State) {
	bar, c := strings.Repeat("*", width), s.Last()
	t.print("\n")
	t.line("%s", bar)
	t.line("LEARNING CYCLE %d/%d [Agent: %s | Model: %s]", s.Cycle, s.Cycles, c.Agent, c.Model)
	t.line("%s", bar)
	t.line("Using agent: %s | model: %s", c.Agent, c.Model)
}

// Step implements learner.Teller.
func (t *teller) Step(s learner.State, _ bool) {
	words := map[learner.Step]string{
		learner.Generate: "Phase 1: write the program", learner.Run: fmt.Sprintf("Phase 2: run it, for at most %s", learner.RunTime),
		learner.Review: "Phase 3: review it", learner.Learnings: "Phase 4: what was done well", learner.Mistakes: "Phase 5: what was done wrong", learner.Improve: "Phase 6: a better prompt",
	}
	text := words[s.Step]
	if s.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", s.Attempt)
	}
	t.line("%s", text)
}

// Wait implements learner.Teller.
func (t *teller) Wait(until time.Time, why string) {
	t.Note(fmt.Sprintf("waits until %s UTC: %s", until.UTC().Format(time.TimeOnly), why))
}

// Note implements learner.Teller.
func (t *teller) Note(text string) { t.print("  %s\n", t.in.Outlet.Line(text)) }

// Answered implements learner.Teller.
func (t *teller) Answered(_ learner.State, reason string) {
	if reason != "" {
		t.Note("no answer: " + reason)
	}
}

// Report implements learner.Teller.
func (t *teller) Report(c learner.Cycle) {
	t.print("\n")
	t.line("Cycle %d report", c.Number)
	switch {
	case c.OK:
		t.row("program", "%s", strings.TrimSuffix(c.Ran.Summary(), "."))
	default:
		t.row("failed", "%s", c.Failure)
	}
	if c.Review != nil {
		for _, f := range c.Review.Findings {
			text := map[learner.Rating]string{learner.RatedOK: "OK", learner.Unrated: "nothing was said of it"}[f.State]
			if f.State == learner.Issues {
				text = f.Text
			}
			t.row("review", "%s: %s", f.Category, text)
		}
	}
	t.lessons("learned", c.Learned, c.Remembers, learner.MemoryFile)
	t.lessons("mistakes", c.Mistaken, c.Avoids, learner.MistakesFile)
	for _, d := range c.Dropped {
		t.row("dropped", "%s", d)
	}
	for _, q := range c.Silent {
		t.row("silent", "%s", q)
	}
	if c.Improved != "" {
		t.row("prompt", "improved; the one of this cycle is version %d in %s", c.Version, learner.PromptsFile)
	} else {
		t.row("prompt", "stays as it is; archived as version %d in %s", c.Version, learner.PromptsFile)
	}
}

func (t *teller) lessons(name string, items []string, added int, file string) {
	if len(items) == 0 {
		t.row(name, "nothing")
		return
	}
	t.row(name, "%d, new in %s: %d", len(items), file, added)
	for _, item := range items {
		t.row("", "- %s", item)
	}
}

// summary closes a session with all that is known by now.
func (t *teller) summary(h learner.Home, s learner.State) {
	bar := strings.Repeat("=", width)
	t.print("\n")
	t.line("%s", bar)
	t.line("Session summary: %s", s.Task)
	good := 0
	for _, c := range s.Log {
		if c.OK {
			good++
		}
	}
	t.row("cycles", "%d, of which %d made a program that runs", len(s.Log), good)
	switch best := s.Best(); {
	case best > 0 && s.Step == learner.Done:
		t.row("program", "%s, from cycle %d", h.Rel(h.Code()), best)
	case best > 0:
		t.row("program", "%s; %s is made of it when the session ends", h.Rel(h.Cycle(best)), h.Rel(h.Code()))
	default:
		t.row("program", "none; %s is as it was", h.Rel(h.Code()))
	}
	if s.Step != learner.Done {
		t.row("stopped", "in cycle %d of %d, at %s; what is done is kept", s.Cycle, s.Cycles, s.Step)
	}
	t.knowledge(h, "learnings", learner.MemoryFile)
	t.knowledge(h, "mistakes", learner.MistakesFile)
	if b, err := h.Prompts(); err == nil {
		t.row("prompts", "%d earlier versions in %s", len(b.Past), h.Rel(h.Root)+"/"+learner.PromptsFile)
	}
	t.line("%s", bar)
}

func (t *teller) knowledge(h learner.Home, what, file string) {
	items, err := h.Lessons(file)
	if err != nil {
		t.row(what, "%v", err)
		return
	}
	t.row(what, "%d in %s", len(items), h.Rel(h.Root)+"/"+file)
	for _, item := range items {
		t.row("", "- %s", item)
	}
}

// sessionReport is what `learn --json` prints.
type sessionReport struct {
	Project string          `json:"project"` // its folder
	Task    string          `json:"task"`
	Agent   string          `json:"agent"`
	Model   string          `json:"model"`
	Session int             `json:"session"` // counted from 1 in the project
	Done    bool            `json:"done"`    // false: the same command goes on
	Best    int             `json:"best"`    // the cycle that code/ is a copy of, 0 for none
	Cycles  []learner.Cycle `json:"cycles"`
}

func report(h learner.Home, s learner.State) sessionReport {
	return sessionReport{Project: h.Rel(h.Root), Task: s.Task, Agent: s.Agent, Model: s.Model, Session: s.Session, Done: s.Step == learner.Done, Best: s.Best(), Cycles: s.Log}
}
