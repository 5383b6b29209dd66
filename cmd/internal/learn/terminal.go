package learn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator/learner"

	"golang.org/x/term"
)

const promptText = "agent> "

// lines are what a person types at a terminal, with history and completion, or what
// comes through a pipe.
type lines struct {
	tty  *os.File               // nil for a pipe
	read func() (string, error) // io.EOF is the end
}

func openLines(w *work) *lines {
	tty, out := terminalOf(w.in.Stdin), terminalOf(w.in.Bare.Stdout)
	if tty == nil || out == nil {
		pipe := bufio.NewScanner(w.in.Stdin)
		pipe.Buffer(nil, maxTyped)
		return &lines{read: func() (string, error) {
			if pipe.Scan() {
				return pipe.Text(), nil
			}
			if errors.Is(pipe.Err(), bufio.ErrTooLong) {
				return "", cli.Usagef("a line has more than %d MiB, and so long a task is not taken", maxTyped>>20)
			}
			return "", cmp.Or(pipe.Err(), io.EOF)
		}}
	}
	edit := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, out}, promptText)
	edit.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		done := completed(line[:pos], w.names())
		return done + line[pos:], len(done), key == '\t'
	}
	edit.History = openHistory(filepath.Join(w.here, learner.Folder, ".history"))
	return &lines{tty, func() (string, error) {
		if w, h, err := term.GetSize(int(tty.Fd())); err == nil && w > 0 && h > 0 {
			_ = edit.SetSize(w, h) // a wrong size is no reason to stop
		}
		line, err := edit.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		return line, err
	}}
}

// next is the next line. A signal does not wait for what a person may never type: who
// reads then is left behind, and the process ends.
func (l *lines) next(ctx context.Context) (string, error) {
	if l.tty != nil { // raw only meanwhile, so that Ctrl-C stops a task as it stops any other command
		was, err := term.MakeRaw(int(l.tty.Fd()))
		if err != nil {
			return "", err
		}
		defer term.Restore(int(l.tty.Fd()), was)
	}
	var line string
	var err error
	got := make(chan struct{})
	go func() {
		defer close(got)
		line, err = l.read()
	}()
	select {
	case <-got:
		return line, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// terminalOf is a stream that is a terminal, nil for any other.
func terminalOf(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// clearScreen does so where there is one.
func clearScreen(in *cli.Input) {
	if out := terminalOf(in.Bare.Stdout); out != nil {
		_, _ = out.WriteString("\x1b[2J\x1b[H")
	}
}

// maxTyped bounds a line that comes through a pipe, in bytes.
const maxTyped = 1 << 20

// completed is a line whose last word is completed when it can be but one: a command,
// or the agent after :agent.
func completed(line string, agents []string) string {
	head, words := "", colonNames()
	word, ok := strings.CutPrefix(line, ":agent ")
	if ok {
		head, words = ":agent ", agents
	} else if !strings.HasPrefix(line, ":") {
		return line
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, word) })
	if len(words) != 1 {
		return line
	}
	return head + words[0] + " "
}

// history keeps what was typed, over sessions. It implements term.History.
type history struct {
	path  string
	lines []string // the latest last
}

// maxHistory bounds it, in lines.
const maxHistory = 500

func openHistory(path string) *history {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxTyped)
	if err != nil {
		data = nil
	}
	return &history{path, strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })}
}

// Add notes a line. A history that cannot be kept is no reason to stop.
func (h *history) Add(line string) {
	if line = strings.TrimSpace(line); line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = h.lines[max(len(h.lines)-maxHistory, 0):]
	if os.MkdirAll(filepath.Dir(h.path), 0o755) == nil {
		_ = hostfs.Write(h.path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
	}
}

// Len is how many lines there are.
func (h *history) Len() int { return len(h.lines) }

// At is the line i, 0 the latest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// teller shows a person how a session goes: on standard output, or beside it where that is a program's.
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

// show shows whole lines of a session.
func (t *teller) show(text string) { t.print("%s", text) }

// Line shows one line.
func (t *teller) Line(format string, args ...any) {
	t.print("%s\n", t.in.Safe.Line(fmt.Sprintf(format, args...)))
}

// Note shows something worth knowing.
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
