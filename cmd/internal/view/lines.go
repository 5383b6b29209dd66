package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"abl/internal/redact"
	"abl/internal/state"
)

// jsonLines prints each event as one line with one write, so that lines of several writers do not
// mix.
type jsonLines struct {
	out  io.Writer
	torn bool // the last line was written in part, for example on a full disk

	last    time.Time   // of the newest line
	running state.Event // the event that beat repeats; without a kind if nothing runs
}

func (j *jsonLines) show(e state.Event) {
	if j == nil || e.Kind == stopping || e.Kind == state.Progress {
		return
	}
	text, err := json.Marshal(e)
	if err != nil {
		return
	}
	text = append(text, '\n')
	if j.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := j.out.Write(text)
	j.torn = err != nil && (j.torn || n > 0)
	j.last, j.running = time.Now(), e
	j.running.Kind = state.Running
	if e.Kind == state.Outcome {
		j.running = state.Event{}
	}
}

// silence is the longest time without output where no terminal shows that a run works.
const silence = time.Minute

// beat prints a running event if nothing was printed for a minute.
func (j *jsonLines) beat(now time.Time) {
	if j == nil || j.running.Kind == "" || now.Sub(j.last) < silence {
		return
	}
	r := j.running
	j.show(state.Event{
		Time:      now.UTC(),
		Kind:      state.Running,
		Phase:     r.Phase,
		Round:     r.Round,
		Iteration: r.Iteration,
		Step:      r.Step,
		Role:      r.Role,
		Call:      r.Call,
	})
}

// Escape sequences of the live view.
const (
	clearLine  = "\r\x1b[K"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
)

// lines prints one line per fact, and from time to time an agent's action. In live mode it redraws a
// status line below them instead. Each change is one write that hides and shows the cursor: nothing
// flickers, and a killed abl leaves the terminal usable.
type lines struct {
	out   io.Writer
	story story
	acted time.Time // when the last action was shown

	runner *redact.RunnerLog // folds a call's lines in the log of a CI runner; nil elsewhere
	folded bool              // a folded group is open

	live  bool
	paint paint
	now   func() time.Time
	width func() int
	drawn string // the status line on the terminal

	last time.Time // of the last line that is not an action
}

// newLive returns lines for a terminal, with a status line below them.
func newLive(out io.Writer) *lines {
	return &lines{
		out:   out,
		live:  true,
		paint: paint(Coloured(out)),
		now:   time.Now,
		width: func() int { return cmp.Or(Columns(out), defaultColumns) },
	}
}

// actionInterval is the least time between two actions of an agent in plain output.
const actionInterval = 5 * time.Second

func (l *lines) show(e state.Event) {
	if l == nil {
		return
	}
	l.story.add(e)
	// The command prints its error itself, and the status line shows progress at the next tick.
	if l.story.refused || e.Kind == state.Progress || e.Kind == state.Running {
		return
	}
	if e.Kind == state.Action {
		if l.live || l.story.actions > 1 && e.Time.Sub(l.acted) < actionInterval {
			return // the status line shows it at the next tick
		}
		l.acted = e.Time
	}
	f := describe(e, &l.story)
	if !l.live {
		if e.Kind != state.Action {
			l.last = e.Time
		}
		text := line(f, l.story.elapsed(e.Time), l.paint)
		if l.runner != nil && (e.Kind == state.CallStart || e.Kind == state.CallResume) {
			l.unfold()
			l.runner.Command("group", strings.TrimSpace(text))
			l.folded = true
			return
		}
		l.write(text + "\n")
		if e.Kind == state.CallEnd || e.Kind == state.Outcome {
			l.unfold()
		}
		return
	}
	l.drawn = l.status()
	rows := func(text string) string {
		return redact.Fold(text, max(l.width()-1-head, 16), strings.Repeat(" ", head))
	}
	f.text = rows(f.text)
	if f.below != "" {
		f.below = rows(f.below)
	}
	l.write(clearLine + strings.ReplaceAll(line(f, l.story.elapsed(e.Time), l.paint), "\n", "\r\n") + "\r\n" + l.drawn)
}

// head is the width of the columns before the text of a fact.
const head = 20

// line formats a fact: when, who, what. A ">" marks the words of an agent.
func line(f fact, at time.Duration, c paint) string {
	mark := " "
	if f.agent {
		mark = ">"
	}
	text := c.in(quiet, fmt.Sprintf("%7s", clock(at))) + fmt.Sprintf("  %-8s %s ", f.who, mark) + c.in(f.tone, f.text)
	if f.below == "" {
		return text
	}
	indent := "\n" + strings.Repeat(" ", head)
	return text + indent + c.in(quiet, strings.ReplaceAll(f.below, "\n", indent))
}

// redraw updates the status line. Without one it prints a line after a long silence.
func (l *lines) redraw() {
	if l == nil || l.story.began.IsZero() {
		return
	}
	if now := l.now(); !l.live {
		if !l.story.ended && !l.story.refused && now.Sub(l.last) >= silence {
			l.last = now
			l.write(line(stillRunning(&l.story, now), l.story.elapsed(now), l.paint) + "\n")
		}
		return
	}
	if s := l.status(); s != l.drawn {
		l.drawn = s
		l.write(clearLine + s)
	}
}

// close ends an open group and removes the status line.
func (l *lines) close() {
	if l == nil {
		return
	}
	if l.unfold(); l.drawn != "" {
		l.write(clearLine)
	}
}

// unfold closes the folded group of a call, if one is open.
func (l *lines) unfold() {
	if l.folded {
		l.runner.Command("endgroup", "")
	}
	l.folded = false
}

func (l *lines) write(text string) {
	if l.live {
		text = hideCursor + text + showCursor
	}
	_, _ = io.WriteString(l.out, text) // the run goes on without a reader
}

// status returns the status line: who works on what, for how long, and the agent's last action or
// the cost so far. It leaves the last column free, since writing to it makes some terminals wrap.
func (l *lines) status() string {
	s := &l.story
	text := cmp.Or(s.role, "abl")
	if s.phase > 0 {
		text += fmt.Sprintf("  phase %d", s.phase)
	}
	if s.iteration > 0 {
		text += fmt.Sprintf(", iteration %d", s.iteration)
	}
	text += "  " + clock(s.elapsed(l.now()))
	if s.underWay != "" {
		took := "  " + clock(max(0, l.now().Sub(s.since)))
		return cut(text+"  "+s.underWay, l.width()-1-len(took)) + took
	}
	if s.spent != "" {
		text += "  " + s.spent
	}
	if used := s.used.Account().All; s.doing != "" {
		text += " > " + s.doing
	} else if used.Rows > 0 && s.spent == "" {
		text += "  " + UsedWords(used)
	}
	return cut(text, l.width()-1)
}
