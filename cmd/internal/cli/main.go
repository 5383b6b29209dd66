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

// Main runs the command that args name and returns the exit code. args does not contain the program's
// name. Results go to stdout; an error goes to stderr, on one line and a line for its hint.
func Main(ctx context.Context, app App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Containers run as a user other than root and read abl's files. Secret files have mode 0600.
	syscall.Umask(0o022)
	in := input(&app, stdin, stdout, stderr)
	if len(args) > 0 && args[0] == completeWord {
		suggest(in.Stdout, &app, args[1:])
		in.close()
		return exit.Passed
	}
	l := parse(&app, args)
	err := l.run(ctx, &app, in)
	in.close()
	if err == nil {
		err = in.Result.(*result).err
	}
	return l.report(ctx, in, err)
}

// recovered turns a panic into an error. With ABL_DEBUG=1 it prints the stack.
func recovered(in *Input, err *error) {
	what := recover()
	if what == nil {
		return
	}
	bug := &exit.Error{
		Code: exit.Bug,
		What: fmt.Sprintf("internal error: %v", what),
		Do:   "this is a bug: run it again with ABL_DEBUG=1 and report the output",
	}
	if os.Getenv("ABL_DEBUG") == "1" {
		bug.Do = ""
		fmt.Fprintf(in.Stderr, "%s\n", debug.Stack())
	}
	*err = bug
}

// report prints err and its hint, and returns the exit code.
func (l line) report(ctx context.Context, in *Input, err error) int {
	err = exit.Because(ctx, err)
	out, lost := errors.AsType[*fs.PathError](err) // lost: standard output did not accept a write
	lost = lost && out.Path == os.Stdout.Name()
	if err == nil || lost && errors.Is(out, syscall.EPIPE) { // a reader such as head may stop early
		return exit.Passed
	}
	code, hint := exit.Code(err), exit.Hint(err)
	if errors.Is(err, errMisused) {
		hint = cmp.Or(hint, "see "+l.name+" --help")
	} else if lost {
		code, err = exit.Environment, fmt.Errorf("cannot write to standard output: %w", out)
	}
	in.Say("%s", oneLine(in.Safe.Redact(err.Error())))
	if hint != "" {
		in.Say("hint: %s", oneLine(in.Safe.Redact(hint)))
	}
	return code
}

// oneLine joins the lines of joined errors with semicolons.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
