package learn

import (
	"context"
	"errors"
	"io"
	"strings"

	"abl/cmd/internal/exit"
	"abl/orchestrator/learner"
)

// repl asks for one task after the other, and for what is to be different.
type repl struct {
	w      *work
	o      options
	person bool  // sits at a terminal
	last   error // of the last task
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
		{":clear", ":cl", "", "clear the screen", func(r *repl, _ string) { clearScreen(r.w.in) }},
		{":quit", ":q", "", "leave; so does the end of the input", nil},
	}
}

// repl runs tasks as they are typed, or come through a pipe. There the last
// task's failure is the command's.
func (w *work) repl(ctx context.Context, o options, tasks []string) error {
	in := openLines(w)
	r := &repl{w: w, o: o, person: in.tty != nil}
	if r.person {
		w.tell.Line("Type a task, or :help.")
	}
	for _, task := range tasks {
		if err := r.task(ctx, task); err != nil {
			return err
		}
	}
	for over := false; !over; {
		line, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			if r.person {
				w.tell.Line("") // what comes next does not stand behind the prompt
			}
			break
		}
		if err == nil {
			over, err = r.take(ctx, strings.TrimSpace(line))
		}
		if err != nil {
			return err
		}
	}
	if r.person {
		return nil
	}
	return r.last
}

// take does what a line says. An error ends the interactive mode.
func (r *repl) take(ctx context.Context, line string) (over bool, err error) {
	if line == "" {
		return false, nil
	}
	if !strings.HasPrefix(line, ":") {
		return false, r.task(ctx, line)
	}
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	for _, c := range colons() {
		switch {
		case c.name != name && c.short != name:
			continue
		case arg != "" && c.args == "":
			r.say("%s takes nothing, but got %q", c.name, arg)
		case c.do == nil:
			return true, nil
		default:
			c.do(r, arg)
		}
		return false, nil
	}
	r.say("there is no %s; :help shows what there is", name)
	return false, nil
}

func (r *repl) say(format string, args ...any) { r.w.tell.Line(format, args...) }

// task plays a session. What goes wrong in it is said, and the next task may be
// asked for; so it may when a person at a terminal stops it with Ctrl-C. Any other
// signal ends it all.
func (r *repl) task(ctx context.Context, task string) error {
	part, over := ctx, context.CancelFunc(func() {})
	if r.person {
		part, over = exit.Part(ctx)
	}
	_, err := r.w.learn(part, task, r.o)
	stopped := part.Err() != nil
	over()
	r.last = err
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case stopped:
		r.say("The task was stopped; type it again to go on from there, or :quit.")
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
		r.w.tell.print("%-9s %-4s %-7s %s\n", c.name, c.short, c.args, c.usage) // columns, which say would close up
	}
	r.say("Anything else is a task.")
}

// set shows the options, and changes one of them.
func set(name string) func(*repl, string) {
	return func(r *repl, value string) {
		if value != "" {
			if err := r.w.set(&r.o, name, value); err != nil {
				r.say("%v", err)
				return
			}
		}
		r.say("Agent: %s, model: %s, cycles: %d", r.o.agent, r.o.model, r.o.cycles)
	}
}

// show shows a file of the current project.
func show(file string) func(*repl, string) {
	return func(r *repl, _ string) {
		if r.w.home.Root == "" {
			r.say("There is no current project yet: type a task first.")
			return
		}
		text, err := r.w.home.Text(file)
		if err != nil {
			r.say("%v", err)
			return
		}
		r.w.tell.print("%s\n", strings.TrimRight(text, "\n"))
	}
}
