package learn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/view"
	"abl/internal/state"

	"golang.org/x/term"
)

const promptText = "agent> "

// lines are what a person types at a terminal, or what comes through a pipe, which has no
// terminal. Its end is io.EOF.
func lines(in *cli.Input) (tty *os.File, read func() (string, error)) {
	tty, out := view.Terminal(in.Stdin), view.Terminal(in.Bare.Stdout)
	if tty == nil || out == nil {
		pipe := bufio.NewScanner(in.Stdin)
		pipe.Buffer(nil, maxTyped)
		return nil, func() (string, error) {
			if pipe.Scan() {
				return pipe.Text(), nil
			}
			if errors.Is(pipe.Err(), bufio.ErrTooLong) {
				return "", cli.Usagef("a line has more than %d MiB, and so long a task is not taken", maxTyped>>20)
			}
			return "", cmp.Or(pipe.Err(), io.EOF)
		}
	}
	edit := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, out}, promptText)
	return tty, func() (string, error) {
		_ = edit.SetSize(view.Columns(out), 24) // a wrong size is no reason to stop
		line, err := edit.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		if err == io.EOF {
			_, _ = out.WriteString("\r\n") // what comes next does not stand behind the prompt
		}
		return line, err
	}
}

// next is the next line. A signal does not wait for what a person may never type: who
// reads then is left behind, and the process ends.
func (r *repl) next(ctx context.Context) (string, error) {
	if r.tty != nil { // raw only meanwhile, so that Ctrl-C stops a task as it stops any other command
		was, err := term.MakeRaw(int(r.tty.Fd()))
		if err != nil {
			return "", err
		}
		defer term.Restore(int(r.tty.Fd()), was)
	}
	var line string
	var err error
	got := make(chan struct{})
	go func() {
		defer close(got)
		line, err = r.read()
	}()
	select {
	case <-got:
		return line, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// clear clears the screen where there is one.
func (r *repl) clear(string) {
	if out := view.Terminal(r.w.in.Bare.Stdout); out != nil {
		_, _ = out.WriteString("\x1b[2J\x1b[H")
	}
}

// maxTyped bounds a line that comes through a pipe, in bytes.
const maxTyped = 1 << 20

// teller shows a person how a session goes: on standard output, or beside it where that is a program's.
type teller struct {
	out  io.Writer
	in   *cli.Input
	last string // what progress was told of
}

// show shows whole lines that are safe to look at.
func (t *teller) show(text string) { _, _ = io.WriteString(t.out, text) }

// Line shows one line.
func (t *teller) Line(format string, args ...any) {
	t.show(t.in.Safe.Line(fmt.Sprintf(format, args...)) + "\n")
}

// Note shows something worth knowing.
func (t *teller) Note(text string) { t.show("  " + t.in.Safe.Line(text) + "\n") }

// progress shows what goes on: the first of the texts about the same thing, which stands
// before the colon.
func (t *teller) progress(text string) {
	if about, _, _ := strings.Cut(text, ":"); about != t.last {
		t.last = about
		t.Note(text)
	}
}

// Emit implements state.Sink, and shows what an agent does while it does it.
func (t *teller) Emit(e state.Event) {
	switch e.Kind {
	case state.Action:
		t.Note("> " + e.Text)
	case state.Note:
		t.Note(e.Text)
	case state.CallResume:
		t.Note("the call was still running and goes on")
	}
}
