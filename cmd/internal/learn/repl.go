package learn

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/nearest"
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
	do                       func(r *repl, arg string) error
}

var errQuit = errors.New("quit")

// colons are the commands, in the order in which help shows them.
func colons() []colon {
	return []colon{
		{":help", ":h", "", "this list", (*repl).help},
		{":agent", ":a", "[NAME]", "show the agent, or take another one, with its default model", (*repl).agent},
		{":model", ":mo", "[NAME]", "show the model, or take another one", (*repl).model},
		{":cycles", ":c", "[N]", "show the number of cycles, or change it", (*repl).cycles},
		{":memory", ":m", "", "what was learned in the current project", (*repl).memory},
		{":mistakes", ":mi", "", "mistakes to avoid in it", (*repl).mistakes},
		{":prompts", ":p", "", "its prompt and the earlier ones", (*repl).prompts},
		{":clear", ":cl", "", "clear the screen", (*repl).clear},
		{":quit", ":q", "", "leave; so does the end of the input", (*repl).quit},
	}
}

// repl runs tasks as they are typed, or come through a pipe. There the last
// task's failure is the command's.
func (w *work) repl(ctx context.Context, o options, tasks []string) error {
	in := openLines(w)
	r := &repl{w: w, o: o, person: in.person()}
	if r.person {
		w.tell.Line("Type a task, or :help.")
	}
	for _, task := range tasks {
		if err := r.task(ctx, task); err != nil {
			return err
		}
	}
	for {
		line, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			if r.person {
				w.tell.print("\n") // what comes next does not stand behind the prompt
			}
			break
		}
		if err != nil {
			return err
		}
		if err := r.take(ctx, line); errors.Is(err, errQuit) {
			break
		} else if err != nil {
			return err
		}
	}
	if r.person {
		return nil
	}
	return r.last
}

// take does what a line says. An error ends the interactive mode.
func (r *repl) take(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return nil
	case !strings.HasPrefix(line, ":"):
		return r.task(ctx, line)
	}
	name, arg, _ := strings.Cut(line, " ")
	for _, c := range colons() {
		if c.name == name || c.short == name {
			if arg = strings.TrimSpace(arg); arg != "" && c.args == "" {
				r.say("%s takes nothing, but got %q", c.name, arg)
				return nil
			}
			return c.do(r, arg)
		}
	}
	var names []string
	for _, c := range colons() {
		names = append(names, c.name)
	}
	if near := nearest.Word(name, names); near != "" {
		r.say("there is no %s; did you mean %s?", name, near)
	} else {
		r.say("there is no %s; :help shows what there is", name)
	}
	return nil
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

func (r *repl) help(string) error {
	for _, c := range colons() {
		r.w.tell.print("%-9s %-4s %-7s %s\n", c.name, c.short, c.args, c.usage) // columns, which say would close up
	}
	r.say("Anything else is a task. Tab completes.")
	return nil
}

func (r *repl) agent(arg string) error {
	if arg != "" {
		a, err := r.w.choose(arg)
		if err != nil {
			r.say("%v; it is one of %s", err, strings.Join(r.w.names(), ", "))
			return nil
		}
		r.o.player = a
	}
	r.say("Agent: %s, model: %s", r.o.agent, r.o.model)
	return nil
}

func (r *repl) model(arg string) error {
	if arg != "" {
		name, err := modelName(arg)
		if err != nil {
			r.say("%v", err)
			return nil
		}
		r.o.model = name
	}
	r.say("Model: %s (of %s)", r.o.model, r.o.agent)
	return nil
}

func (r *repl) cycles(arg string) error {
	if arg != "" {
		n, err := strconv.Atoi(arg)
		if err == nil {
			n, err = cycleCount(n)
		}
		if err != nil {
			r.say("%q is no number of cycles: 1 to %d", arg, learner.MaxCycles)
			return nil
		}
		r.o.cycles = n
	}
	r.say("Cycles: %d", r.o.cycles)
	return nil
}

func (r *repl) memory(string) error   { return r.lessons(learner.MemoryFile) }
func (r *repl) mistakes(string) error { return r.lessons(learner.MistakesFile) }

func (r *repl) lessons(file string) error {
	if r.none() {
		return nil
	}
	learner.TellFile(r.w.tell, r.w.home, strings.TrimSuffix(file, ".txt"), file)
	return nil
}

func (r *repl) none() bool {
	if r.w.home.Root == "" {
		r.say("There is no current project yet: type a task first.")
	}
	return r.w.home.Root == ""
}

func (r *repl) prompts(string) error {
	if r.none() {
		return nil
	}
	b, err := r.w.home.Prompts()
	if err != nil {
		r.say("%v", err)
		return nil
	}
	r.w.tell.print("%s\n", strings.TrimRight(b.Render(), "\n"))
	return nil
}

func (r *repl) clear(string) error { return clearScreen(r.w.in) }
func (r *repl) quit(string) error  { return errQuit }
