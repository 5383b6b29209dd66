package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"abl/cmd/internal/exit"
)

// Main runs the command that args name, without the program's own name before
// them, and returns the exit code. Results go to stdout; what goes wrong is
// said on stderr, in one line and a hint.
func Main(ctx context.Context, app App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := input(&app, stdin, stdout, stderr)
	if len(args) > 0 && args[0] == completeWord {
		suggest(in.Stdout, complete(&app, args[1:]))
		in.close()
		return exit.Passed
	}
	l := &line{}
	err := guard(in, func() (err error) {
		if l, err = parse(&app, args); err != nil {
			return err
		}
		return act(ctx, &app, l, in)
	})
	in.close()
	if err == nil {
		err = in.result.err
	}
	return end(ctx, &app, l, in, err)
}

// act shows help or the version, or runs the command.
func act(ctx context.Context, app *App, l *line, in *Input) error {
	c := l.command()
	switch {
	case l.help:
		return show(in.Stdout, help(app, l))
	case l.version:
		return show(in.Stdout, app.Name+" "+app.Version+"\n")
	case c == nil:
		return show(in.Stdout, help(app, l))
	case c.Run == nil:
		return WithHint("", "%s needs a command: %s", l.name(), oneOf(names(c.Subs)))
	}
	if err := count(app, l); err != nil {
		return err
	}
	in.Args = l.args
	return run(ctx, app, l, in)
}

func show(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// count checks how many arguments there are.
func count(app *App, l *line) error {
	c, n, called := l.command(), len(l.args), cmp.Or(l.name(), app.Name)
	switch {
	case n < c.MinArgs:
		return Usagef("%s needs %s", called, c.Args)
	case c.MaxArgs < 0 || n <= c.MaxArgs:
		return nil
	case c.MaxArgs == 0:
		return Usagef("%s takes no arguments, but got %q", called, l.args[0])
	}
	return Usagef("%s takes %s and no more, but got %q", called, c.Args, l.args[c.MaxArgs])
}

// panicked is a bug that a command ran into.
type panicked struct{ what any }

func (p panicked) Error() string { return fmt.Sprintf("internal error: %v", p.what) }

// guard turns a panic into an error. Its stack is for those who ask for it.
func guard(in *Input, do func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			if debugging() {
				fmt.Fprintf(in.Stderr, "%s\n", debug.Stack())
			}
			err = panicked{what}
		}
	}()
	return do()
}

func debugging() bool { return os.Getenv("ABL_DEBUG") == "1" }

// end says what went wrong and returns the exit code.
func end(ctx context.Context, app *App, l *line, in *Input, err error) int {
	err = exit.Because(ctx, err)
	if err == nil || readerGone(err) {
		return exit.Passed
	}
	if p := atStdout(err); p != nil {
		err = fmt.Errorf("cannot write to standard output: %w", p)
	}
	in.Say("%s", oneLine(in.Outlet.Redact(err.Error())))
	if hint := hintFor(app, l, err); hint != "" {
		in.Say("hint: %s", oneLine(in.Outlet.Redact(hint)))
	}
	return code(app, err)
}

// code is the exit code of an end that is not a success.
func code(app *App, err error) int {
	var usage *UsageError
	var bug panicked
	switch {
	case errors.As(err, &bug):
		return exit.Bug
	case errors.As(err, &usage):
		return exit.Usage
	case atStdout(err) != nil:
		return exit.Environment
	case app.Code != nil:
		return app.Code(err)
	}
	return exit.Code(err)
}

func hintFor(app *App, l *line, err error) string {
	var usage *UsageError
	var bug panicked
	switch {
	case errors.As(err, &bug) && !debugging():
		return "this is a bug: run it again with ABL_DEBUG=1 and report what it prints"
	case errors.As(err, &usage) && usage.Hint != "":
		return usage.Hint
	}
	if hint := exit.Hint(err); hint != "" {
		return hint
	}
	if app.Hint != nil {
		if hint := app.Hint(err); hint != "" {
			return hint
		}
	}
	if usage != nil {
		return "see " + strings.Join(strings.Fields(app.Name+" "+l.name()+" --help"), " ")
	}
	return ""
}

// readerGone says that whoever read the results stopped reading, as head does,
// which is no failure.
func readerGone(err error) bool {
	p := atStdout(err)
	return p != nil && errors.Is(p, syscall.EPIPE)
}

// atStdout is what standard output said when it did not take something.
func atStdout(err error) *fs.PathError {
	var p *fs.PathError
	if errors.As(err, &p) && p.Path == os.Stdout.Name() {
		return p
	}
	return nil
}

// oneLine puts joined errors side by side.
func oneLine(s string) string {
	var lines []string
	for _, l := range strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "; ")
}
