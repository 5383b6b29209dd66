package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"abl/internal/redact"
	"abl/internal/state"
)

// What the live view says to a terminal besides words.
const (
	clearLine  = "\r\x1b[K"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
)

// live prints facts as lines that scroll and redraws one status line below
// them. Every change is one write that hides the cursor and shows it again, so
// that nothing flickers and a killed abl leaves a usable terminal.
type live struct {
	out   io.Writer
	paint paint
	now   func() time.Time
	width func() int
	story story
	drawn string // the status that stands on the terminal
	gone  bool   // the terminal was closed
}

func newLive(o Options) *live {
	return &live{out: o.Stderr, paint: paint(Coloured(o.Stderr)), now: time.Now, width: func() int { return width(o.Stderr) }}
}

func (l *live) show(e state.Event) {
	l.story.take(e)
	if e.Kind == state.Action || l.story.refused {
		return // the status shows it at the next tick; the command's own error says it
	}
	l.drawn = l.status()
	f := words(e, &l.story)
	f.text = fold(f.text, l.width()-1)
	l.write(clearLine + strings.ReplaceAll(line(f, l.story.elapsed(e.Time), l.paint), "\n", "\r\n") + "\r\n" + l.drawn)
}

// fold breaks the words of a fact into rows that stand below one another, where
// there is room for that: no part of them stands where a fact begins.
func fold(text string, width int) string {
	const least = 16
	if width-head < least {
		return text
	}
	return redact.Fold(text, width-head, strings.Repeat(" ", head))
}

func (l *live) tick() {
	if s := l.status(); s != l.drawn && !l.story.began.IsZero() {
		l.drawn = s
		l.write(clearLine + s)
	}
}

func (l *live) close() {
	if l.drawn != "" {
		l.write(clearLine)
	}
}

func (l *live) write(text string) {
	if !l.gone {
		_, err := io.WriteString(l.out, hideCursor+text+showCursor)
		l.gone = err != nil
	}
}

// status is the status line now. The last column stays free: a terminal may
// wrap when it is written to.
func (l *live) status() string {
	return status(&l.story, l.story.elapsed(l.now()), l.width()-1)
}

// roomToAct is how many columns an action needs to say anything.
const roomToAct = 24

// status says in at most width columns who works on what, for how long, with
// how many tokens so far, and what the agent did last.
func status(s *story, elapsed time.Duration, width int) string {
	need := 0
	if s.role != "" {
		need = roomToAct
	}
	head := long(s, elapsed)
	if len(head)+need > width {
		head = narrow(s, elapsed)
	}
	if s.doing != "" {
		head += " > " + s.doing
	}
	return cut(head, width)
}

func long(s *story, elapsed time.Duration) string {
	parts := []string{who(s)}
	if s.phase > 0 {
		parts = append(parts, fmt.Sprintf("phase %d", s.phase))
	}
	if s.iteration > 0 {
		parts = append(parts, fmt.Sprintf("iteration %d", s.iteration))
	}
	parts = append(parts, clock(elapsed))
	if s.counted() {
		parts = append(parts, joined(used(s)+" tokens", cost(s)))
	}
	return strings.Join(parts, "  ")
}

func narrow(s *story, elapsed time.Duration) string {
	text := fmt.Sprintf("%s %d.%d %s", who(s), s.phase, s.iteration, clock(elapsed))
	if s.counted() {
		text += " " + brief(s.tokens)
		if s.unknown {
			text += "+"
		}
		text += " tokens"
	}
	return text
}

// who is whose call runs.
func who(s *story) string { return cmp.Or(s.role, "abl") }
