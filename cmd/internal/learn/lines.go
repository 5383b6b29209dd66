package learn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/internal/hostfs"
	"abl/orchestrator/learner"

	"golang.org/x/term"
)

const promptText = "agent> "

// lines are what a person types, with history and completion, or what comes
// through a pipe.
type lines struct {
	tty  *os.File
	edit *term.Terminal
	pipe *bufio.Reader
}

func openLines(w *work) *lines {
	tty, ok := w.in.Stdin.(*os.File)
	out, shown := w.in.Bare.Stdout.(*os.File)
	if !ok || !shown || !term.IsTerminal(int(tty.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return &lines{pipe: bufio.NewReaderSize(w.in.Stdin, maxTyped)}
	}
	l := &lines{tty: tty}
	l.edit = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, out}, promptText)
	l.edit.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		return completeLine(line, pos, key, w.names())
	}
	l.edit.History = openHistory(filepath.Join(w.here, learner.Folder, ".history"))
	return l
}

func (l *lines) person() bool { return l.tty != nil }

// maxTyped bounds a line that comes through a pipe, in bytes.
const maxTyped = 1 << 20

// next is the next line; io.EOF is the end. The terminal is raw only meanwhile,
// so that Ctrl-C stops a task as it stops any other command.
func (l *lines) next(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	if l.pipe != nil {
		return unlessOver(ctx, l.piped)
	}
	was, err := term.MakeRaw(int(l.tty.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(l.tty.Fd()), was)
	if w, h, err := term.GetSize(int(l.tty.Fd())); err == nil && w > 0 && h > 0 { // a terminal without a size has some
		_ = l.edit.SetSize(w, h) // a wrong size is no reason to stop
	}
	return unlessOver(ctx, func() (string, error) {
		line, err := l.edit.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		return line, err
	})
}

// piped is a line that comes through a pipe.
func (l *lines) piped() (string, error) {
	line, err := l.pipe.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", cli.Usagef("a task has at most %d bytes", maxTyped)
	case errors.Is(err, io.EOF) && len(line) > 0:
		err = nil
	}
	return string(line), err
}

// unlessOver waits for a line no longer than ctx lasts: a signal does not wait for
// what a person may never type. Who reads then is left behind, and the process ends.
func unlessOver(ctx context.Context, read func() (string, error)) (string, error) {
	type typed struct {
		line string
		err  error
	}
	got := make(chan typed, 1)
	go func() {
		line, err := read()
		got <- typed{line, err}
	}()
	select {
	case t := <-got:
		return t.line, t.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// completeLine completes a command, or the agent after :agent, at Tab.
func completeLine(line string, pos int, key rune, agents []string) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	done := completed(line[:pos], agents)
	return done + line[pos:], len(done), true
}

// completed is a line with its end completed as far as it is certain.
func completed(line string, agents []string) string {
	var words []string
	head := ""
	if arg, ok := strings.CutPrefix(line, ":agent "); ok {
		head, line, words = ":agent ", arg, agents
	} else if strings.HasPrefix(line, ":") {
		for _, c := range colons() {
			words = append(words, c.name)
		}
	}
	var fit []string
	for _, w := range words {
		if strings.HasPrefix(w, line) {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		return head + line
	}
	common := fit[0]
	for _, w := range fit[1:] {
		for !strings.HasPrefix(w, common) {
			common = common[:len(common)-1]
		}
	}
	if len(fit) == 1 {
		common += " "
	}
	return head + common
}

// history keeps what was typed, over sessions.
type history struct {
	path  string
	lines []string // the latest last
}

// maxHistory bounds it, in lines.
const maxHistory = 500

func openHistory(path string) *history {
	h := &history{path: path}
	if data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxTyped); err == nil {
		h.lines = strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	}
	return h
}

// Add implements term.History. A history that cannot be kept is no reason to stop.
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

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the latest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// clearScreen does so where there is one.
func clearScreen(in *cli.Input) error {
	out, ok := in.Bare.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	_, err := out.WriteString("\x1b[2J\x1b[H")
	return err
}
