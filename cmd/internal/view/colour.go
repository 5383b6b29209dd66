package view

import (
	"io"
	"os"
)

// Colours paints what a command shows by itself, when it goes to a terminal
// whose owner did not say no.
type Colours struct{ on paint }

// ColoursFor are the colours for w.
func ColoursFor(w io.Writer) Colours {
	return Colours{colours(Options{Stderr: w, Getenv: os.Getenv})}
}

// Good is text in the colour of what is well, or new.
func (c Colours) Good(text string) string { return c.on.in(good, text) }

// Bad is text in the colour of what is not, or gone.
func (c Colours) Bad(text string) string { return c.on.in(bad, text) }

// Quiet is text that stands back.
func (c Colours) Quiet(text string) string { return c.on.in(quiet, text) }
