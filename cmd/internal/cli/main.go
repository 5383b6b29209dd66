package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
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
		suggest(in.Stdout, &app, args[1:])
		in.close()
		return exit.Passed
	}
	_, path, words := order(&app, args)
	err := run(ctx, &app, words, in)
	in.close()
	if err == nil {
		err = in.result.err
	}
	return end(ctx, &app, path, in, err)
}

// panicked is a bug that a command ran into.
type panicked struct{ what any }

func (p panicked) Error() string { return fmt.Sprintf("internal error: %v", p.what) }

// recovered turns a panic into an error. Its stack is for those who ask for it.
func recovered(in *Input, err *error) {
	if what := recover(); what != nil {
		if debugging() {
			fmt.Fprintf(in.Stderr, "%s\n", debug.Stack())
		}
		*err = panicked{what}
	}
}

func debugging() bool { return os.Getenv("ABL_DEBUG") == "1" }

// end says what went wrong and returns the exit code.
func end(ctx context.Context, app *App, path []string, in *Input, err error) int {
	err = exit.Because(ctx, err)
	if err == nil || readerGone(err) {
		return exit.Passed
	}
	if p := atStdout(err); p != nil {
		err = fmt.Errorf("cannot write to standard output: %w", p)
	}
	in.Say("%s", oneLine(in.Safe.Redact(err.Error())))
	if hint := hintFor(app, path, err); hint != "" {
		in.Say("hint: %s", oneLine(in.Safe.Redact(hint)))
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
	}
	return app.Rules.Code(err)
}

func hintFor(app *App, path []string, err error) string {
	var usage *UsageError
	var bug panicked
	switch {
	case errors.As(err, &bug) && !debugging():
		return "this is a bug: run it again with ABL_DEBUG=1 and report what it prints"
	case errors.As(err, &usage) && usage.Hint != "":
		return usage.Hint
	}
	if hint := app.Rules.Hint(err); hint != "" {
		return hint
	}
	if usage != nil {
		return "see " + strings.Join(slices.Concat([]string{app.Name}, path, []string{"--help"}), " ")
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
