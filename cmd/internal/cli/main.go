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
	// Containers run as another user than root and read what abl makes. What is secret has mode 0600.
	syscall.Umask(0o022)
	in := input(&app, stdin, stdout, stderr)
	if len(args) > 0 && args[0] == completeWord {
		suggest(in.Stdout, &app, args[1:])
		in.close()
		return exit.Passed
	}
	l := take(&app, args)
	err := l.run(ctx, &app, in)
	in.close()
	return l.end(ctx, in, cmp.Or(err, in.Result.(*result).err))
}

// recovered turns a panic into an error. Its stack is for those who ask for it.
func recovered(in *Input, err *error) {
	what := recover()
	if what == nil {
		return
	}
	bug := &exit.Error{Code: exit.Bug, What: fmt.Sprintf("internal error: %v", what), Do: "this is a bug: run it again with ABL_DEBUG=1 and report what it prints"}
	if os.Getenv("ABL_DEBUG") == "1" {
		bug.Do = ""
		fmt.Fprintf(in.Stderr, "%s\n", debug.Stack())
	}
	*err = bug
}

// end says what went wrong and returns the exit code.
func (l line) end(ctx context.Context, in *Input, err error) int {
	err = exit.Because(ctx, err)
	out, lost := errors.AsType[*fs.PathError](err) // what standard output said when it did not take something
	lost = lost && out.Path == os.Stdout.Name()
	if err == nil || lost && errors.Is(out, syscall.EPIPE) { // as head does, which is no failure
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

// oneLine puts joined errors side by side.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
