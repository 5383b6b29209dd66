package view

import (
	"fmt"
	"io"
	"time"

	"abl/internal/state"
)

// between is how long plain lines are silent about an agent's actions after one.
const between = 5 * time.Second

// plainLines prints one line a fact, and now and then what the agent does.
type plainLines struct {
	out   io.Writer
	gone  bool // the reader left
	story story
	acted time.Time // of the last action that was shown
}

func newPlain(o Options) *plainLines { return &plainLines{out: o.Stderr} }

func (p *plainLines) show(e state.Event) {
	p.story.take(e)
	switch {
	case p.story.refused: // the command's own error says it
		return
	case e.Kind != state.Action:
	case p.story.actions > 1 && e.Time.Sub(p.acted) < between:
		return
	default:
		p.acted = e.Time
	}
	if !p.gone {
		_, err := io.WriteString(p.out, line(words(e, &p.story), p.story.elapsed(e.Time), noPaint)+"\n")
		p.gone = err != nil && !full(err)
	}
}

func (*plainLines) tick()  {}
func (*plainLines) close() {}

// head is how many columns stand before the words of a fact.
const head = 20

// line is a fact as plain and live views print it: when, who, what. A > marks
// the words of an agent.
func line(f fact, at time.Duration, c paint) string {
	mark := " "
	if f.agent {
		mark = ">"
	}
	return c.in(quiet, fmt.Sprintf("%7s", clock(at))) + fmt.Sprintf("  %-8s %s ", f.who, mark) + c.in(f.tone, f.text)
}
