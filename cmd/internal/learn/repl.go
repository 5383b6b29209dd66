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

// repl asks for one task after the other, and for what is to be different.
type repl struct {
	w    *work
	tty  *os.File // of a person; nil for a pipe
	read func() (string, error)
	last error // of the last task that came through a pipe
}

// colon is a command of the interactive mode.
type colon struct {
	name, short, args, usage string
	do                       func(r *repl, arg string) // nil leaves
}

// colons are the commands, in the order in which help shows them.
func colons() []colon {
	return []colon{
		{":help", ":h", "", "this list", (*repl).help},
		{":agent", ":a", "[NAME]", "show the agent, or take another one, with its default model", set("agent")},
		{":model", ":mo", "[NAME]", "show the model, or take another one", set("model")},
		{":cycles", ":c", "[N]", "show the number of cycles, or change it", set("cycles")},
		{":memory", ":m", "", "what was learned in the current project", show(learner.MemoryFile)},
		{":mistakes", ":mi", "", "mistakes to avoid in it", show(learner.MistakesFile)},
		{":prompts", ":p", "", "its prompt and the earlier ones", show(learner.PromptsFile)},
		{":clear", ":cl", "", "clear the screen", (*repl).clear},
		{":quit", ":q", "", "leave; so does the end of the input", nil},
	}
}

// repl runs tasks as they are typed, or come through a pipe. There the last
// task's failure is the command's.
func (w *work) repl(ctx context.Context, tasks []string) error {
	r := &repl{w: w}
	if r.tty, r.read = lines(w.in); r.tty != nil {
		w.tell.Line("Type a task, or :help.")
	}
	var err error
	for _, task := range tasks {
		err = r.task(ctx, task)
	}
	for err == nil {
		var line string
		if line, err = r.next(ctx); err == nil {
			err = r.take(ctx, strings.TrimSpace(line))
		}
	}
	if err == io.EOF {
		return r.last
	}
	return err
}

// take does what a line says. An error ends the interactive mode: io.EOF, when it is to be left.
func (r *repl) take(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line, " ")
	all := colons()
	i := slices.IndexFunc(all, func(c colon) bool { return c.name == name || c.short == name })
	switch arg = strings.TrimSpace(arg); {
	case line == "":
	case !strings.HasPrefix(line, ":"):
		return r.task(ctx, line)
	case i < 0:
		r.w.tell.Line("there is no %s; :help shows what there is", name)
	case arg != "" && all[i].args == "":
		r.w.tell.Line("%s takes nothing, but got %q", all[i].name, arg)
	case all[i].do == nil:
		return io.EOF
	default:
		all[i].do(r, arg)
	}
	return nil
}

// task plays a session. What goes wrong in it is said, and the next task may be
// asked for; so it may when a person at a terminal stops it with Ctrl-C. Any other
// signal ends it all.
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
		r.w.tell.Line("The task was stopped; type it again to go on from there, or :quit.")
	default:
		r.w.in.Say("%v", err)
		if hint := exit.Hint(err); hint != "" {
			r.w.in.Say("hint: %s", hint)
		}
	}
	return nil
}

func (r *repl) help(string) {
	for _, c := range colons() {
		// These are columns, which Line would close up.
		r.w.tell.show(fmt.Sprintf("%-9s %-4s %-7s %s\n", c.name, c.short, c.args, c.usage))
	}
	r.w.tell.Line("Anything else is a task.")
}

// set shows the options, and changes one of them.
func set(name string) func(*repl, string) {
	return func(r *repl, value string) {
		if value != "" {
			if err := r.w.set(name, value); err != nil {
				r.w.tell.Line("%v", err)
				return
			}
		}
		r.w.tell.Line("Agent: %s, model: %s, cycles: %d", r.w.agent.Name, r.w.model, r.w.cycles)
	}
}

// show shows a file of the current project.
func show(file string) func(*repl, string) {
	return func(r *repl, _ string) {
		if r.w.home.Root == "" {
			r.w.tell.Line("There is no current project yet: type a task first.")
			return
		}
		text, err := r.w.home.Text(file)
		if err != nil {
			r.w.tell.Line("%v", err)
			return
		}
		r.w.tell.show(strings.TrimRight(text, "\n") + "\n")
	}
}

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
			// What comes next does not stand behind the prompt.
			_, _ = out.WriteString("\r\n")
		}
		return line, err
	}
}

// next is the next line. A signal does not wait for what a person may never type: who
// reads then is left behind, and the process ends.
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
	out io.Writer
	in  *cli.Input
}

// show shows whole lines that are safe to look at.
func (t *teller) show(text string) { _, _ = io.WriteString(t.out, text) }

// Line shows one line.
func (t *teller) Line(format string, args ...any) {
	t.show(t.in.Safe.Line(fmt.Sprintf(format, args...)) + "\n")
}

// Note shows something worth knowing.
func (t *teller) Note(text string) { t.show("  " + t.in.Safe.Line(text) + "\n") }

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
