package view

import (
	"io"
	"sync"
)

// OneLine is a line at the end of a terminal that says what goes on, for commands
// whose words scroll above it.
type OneLine struct {
	out   io.Writer
	width func() int

	mu    sync.Mutex
	drawn bool
}

// NewOneLine is nil where out is no terminal that knows how to move its cursor.
func NewOneLine(out io.Writer) *OneLine {
	if !canSteer(out) {
		return nil
	}
	return &OneLine{out: out, width: func() int { return width(out) }}
}

// Show puts a text in the place of the one that stands there. It has to be safe to
// look at.
func (l *OneLine) Show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, hideCursor+clearLine+cut(text, l.width()-1)+showCursor)
	l.drawn = err == nil
}

// Around takes the line away and lets speak say something in its place.
func (l *OneLine) Around(speak func()) {
	if l == nil {
		speak()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		_, _ = io.WriteString(l.out, clearLine) // a terminal that is gone misses nothing
		l.drawn = false
	}
	speak()
}
