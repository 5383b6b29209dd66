package learn

import (
	"fmt"
	"io"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/view"
	"abl/internal/state"
)

// teller shows a person how a session goes, and implements learner.Teller: on standard
// output, or beside it where that is a program's.
type teller struct {
	out  io.Writer
	in   *cli.Input
	now  *view.OneLine // what goes on, nil where that cannot be shown
	last string        // what was told of it where it cannot
}

func newTeller(in *cli.Input) *teller {
	if in.Bool("json") {
		return &teller{out: in.Stderr, in: in, now: view.NewOneLine(in.Bare.Stderr)}
	}
	return &teller{out: in.Stdout, in: in, now: view.NewOneLine(in.Bare.Stdout)}
}

// print shows lines that are safe to look at.
func (t *teller) print(format string, args ...any) {
	t.now.Around(func() { fmt.Fprintf(t.out, format, args...) })
}

// Line implements learner.Teller.
func (t *teller) Line(format string, args ...any) {
	t.print("%s\n", t.in.Safe.Line(fmt.Sprintf(format, args...)))
}

// Row implements learner.Teller: its columns are as they are.
func (t *teller) Row(name, format string, args ...any) {
	t.print("  %-9s %s\n", name, t.in.Safe.Line(fmt.Sprintf(format, args...)))
}

// Note implements learner.Teller.
func (t *teller) Note(text string) { t.print("  %s\n", t.in.Safe.Line(text)) }

// progress shows what goes on: at a terminal each text in the place of the one
// before. Elsewhere only the first of those about the same thing, which stands
// before the colon, is told.
func (t *teller) progress(text string) {
	text = t.in.Safe.Line(text)
	if t.now != nil {
		t.now.Show("  " + text)
		return
	}
	if about, _, _ := strings.Cut(text, ":"); about != t.last {
		t.last = about
		t.print("  %s\n", text)
	}
}

// Emit implements state.Sink, and shows what an agent does while it does it: at a terminal as progress,
// elsewhere line by line.
func (t *teller) Emit(e state.Event) {
	switch {
	case e.Kind == state.Action && t.now != nil:
		t.progress("> " + e.Text)
	case e.Kind == state.Action:
		t.Note("> " + e.Text)
	case e.Kind == state.Note:
		t.Note(e.Text)
	case e.Kind == state.CallResume:
		t.Note("the call was still running and goes on")
	}
}
