package learn

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/orchestrator/learner"
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
