package learn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/state"
	"abl/orchestrator/learner"

	"golang.org/x/term"
)

// repl is the interactive mode: it reads tasks and commands.
type repl struct {
	w    *work
	tty  *os.File // nil for a pipe
	read func() (string, error)
	last error // of the last task from a pipe
}

// replCommand is a command of the interactive mode.
type replCommand struct {
	name, short, args, usage string
	do                       func(r *repl, arg string) // nil quits
}

// replCommands returns the commands in the order of help.
func replCommands() []replCommand {
	return []replCommand{
		{":help", ":h", "", "show this list", (*repl).help},
		{":agent", ":a", "[NAME]", "show or change the agent; a new one uses its default model", set("agent")},
		{":model", ":mo", "[NAME]", "show or change the model", set("model")},
		{":cycles", ":c", "[N]", "show or change the number of cycles", set("cycles")},
		{":memory", ":m", "", "show the lessons of the current project", show(learner.MemoryFile)},
		{":mistakes", ":mi", "", "show its mistakes to avoid", show(learner.MistakesFile)},
		{":prompts", ":p", "", "show its prompt and earlier ones", show(learner.PromptsFile)},
		{":clear", ":cl", "", "clear the screen", (*repl).clear},
		{":quit", ":q", "", "quit; Ctrl-D does the same", nil},
	}
}

// repl runs tasks, then those that the user types or that come from a pipe. For a pipe it returns the
// error of the last task.
func (w *work) repl(ctx context.Context, tasks []string) error {
	r := &repl{w: w}
	if r.tty, r.read = lines(w.in); r.tty != nil {
		w.printer.Line("Type a task, or :help.")
	}
	var err error
	for _, task := range tasks {
		err = r.task(ctx, task)
	}
	for err == nil {
		var line string
		if line, err = r.next(ctx); err == nil {
			err = r.run(ctx, strings.TrimSpace(line))
		}
	}
	if err == io.EOF {
		return r.last
	}
	return err
}

// run runs a line: a command or a task. An error ends the interactive mode; it is io.EOF for :quit.
func (r *repl) run(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line, " ")
	all := replCommands()
	i := slices.IndexFunc(all, func(c replCommand) bool { return c.name == name || c.short == name })
	arg = strings.TrimSpace(arg)
	switch {
	case line == "":
	case !strings.HasPrefix(line, ":"):
		return r.task(ctx, line)
	case i < 0:
		r.w.printer.Line("unknown command %s; :help lists the commands", name)
	case arg != "" && all[i].args == "":
		r.w.printer.Line("%s takes no argument, but got %q", all[i].name, arg)
	case all[i].do == nil:
		return io.EOF
	default:
		all[i].do(r, arg)
	}
	return nil
}

// task runs a session and prints its error. It returns an error only for a signal that ends the program:
// on a terminal, Ctrl-C only stops the task.
func (r *repl) task(ctx context.Context, task string) error {
	part, over := ctx, context.CancelFunc(func() {})
	if r.tty != nil {
		part, over = exit.Part(ctx)
	}
	_, err := r.w.learn(part, task)
	stopped := part.Err() != nil
	over()
	if r.tty == nil {
		r.last = err
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case stopped:
		r.w.printer.Line("The task was stopped; type it again to resume it, or :quit.")
	default:
		r.w.in.Say("%v", err)
		if hint := exit.Hint(err); hint != "" {
			r.w.in.Say("hint: %s", hint)
		}
	}
	return nil
}

func (r *repl) help(string) {
	for _, c := range replCommands() {
		// Line would collapse the spaces between the columns.
		r.w.printer.show(fmt.Sprintf("%-9s %-4s %-7s %s\n", c.name, c.short, c.args, c.usage))
	}
	r.w.printer.Line("Anything else is a task.")
}

// set returns a command that changes an option, if it has an argument, and prints all options.
func set(name string) func(*repl, string) {
	return func(r *repl, value string) {
		if value != "" {
			if err := r.w.set(name, value); err != nil {
				r.w.printer.Line("%v", err)
				return
			}
		}
		r.w.printer.Line("Agent: %s, model: %s, cycles: %d", r.w.player.Agent.Name, r.w.model(), r.w.cycles)
	}
}

// show returns a command that prints a file of the current project.
func show(file string) func(*repl, string) {
	return func(r *repl, _ string) {
		if r.w.home.Root == "" {
			r.w.printer.Line("There is no current project yet: type a task first.")
			return
		}
		text, err := r.w.home.Text(file)
		if err != nil {
			r.w.printer.Line("%v", err)
			return
		}
		r.w.printer.show(strings.TrimRight(text, "\n") + "\n")
	}
}

const promptText = "agent> "

// lines returns a function that reads lines from the terminal or from a pipe, and the terminal. For a pipe
// tty is nil. The function returns io.EOF at the end.
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
				return "", cli.Usagef("a task has more than %d MiB", maxTyped>>20)
			}
			return "", cmp.Or(pipe.Err(), io.EOF)
		}
	}
	edit := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, out}, promptText)
	return tty, func() (string, error) {
		_ = edit.SetSize(view.Columns(out), 24) // an error only affects the layout
		line, err := edit.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		if err == io.EOF {
			_, _ = out.WriteString("\r\n") // end the line of the prompt
		}
		return line, err
	}
}

// next returns the next line, or the cause of ctx if it ends first. Then the reading goroutine remains, and
// the process ends.
func (r *repl) next(ctx context.Context) (string, error) {
	// Raw only meanwhile, so that Ctrl-C stops a task as it stops any other command.
	if r.tty != nil {
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

// clear clears the screen of a terminal.
func (r *repl) clear(string) {
	if out := view.Terminal(r.w.in.Bare.Stdout); out != nil {
		_, _ = out.WriteString("\x1b[2J\x1b[H")
	}
}

// maxTyped is the longest line from a pipe, in bytes.
const maxTyped = 1 << 20

// printer prints the progress of a session, on standard output or with --json on standard error.
type printer struct {
	out io.Writer
	in  *cli.Input
}

// show prints whole lines that are redacted already.
func (t *printer) show(text string) { _, _ = io.WriteString(t.out, text) }

// Line redacts and prints one line.
func (t *printer) Line(format string, args ...any) {
	t.show(t.in.Safe.Line(fmt.Sprintf(format, args...)) + "\n")
}

// Note redacts and prints an indented line.
func (t *printer) Note(text string) { t.show("  " + t.in.Safe.Line(text) + "\n") }

// Emit implements state.Sink: it prints notes and the actions of an agent.
func (t *printer) Emit(e state.Event) {
	switch e.Kind {
	case state.Action:
		t.Note("> " + e.Text)
	case state.Note:
		t.Note(e.Text)
	case state.CallResume:
		t.Note("reattached to a running call")
	}
}
