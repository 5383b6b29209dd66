package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/config"
	"abl/internal/redact"

	urfave "github.com/urfave/cli/v2"
)

// Input is what a command was called with.
type Input struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer // results; made safe on the way
	Stderr io.Writer // voice; made safe on the way
	// Safe makes safe what leaves, and is told the secrets that a command learns.
	Safe *redact.Sanitizer
	// Bare are the outputs past the Safe, for those who make safe what they
	// show by themselves and steer the terminal.
	Bare struct{ Stdout, Stderr io.Writer }
	// Result is Bare.Stdout for a command's result: one that cannot be written fails
	// the command.
	Result io.Writer

	app     string
	program *App
	at      Command
	flags   *urfave.Context
}

// input is what every command begins with. What the environment holds that is
// secret by its name is never shown.
func input(app *App, stdin io.Reader, stdout, stderr io.Writer) *Input {
	o := redact.NewSanitizer(os.Environ())
	stdout, stderr = redact.ForRunner(stdout), redact.ForRunner(stderr)
	r := &result{to: stdout}
	in := &Input{Stdin: stdin, Stdout: o.Voice(r), Stderr: o.Voice(stderr), Safe: o, Result: r, app: app.Name, program: app}
	in.Bare.Stdout, in.Bare.Stderr = stdout, stderr
	return in
}

// result remembers that standard output did not take something.
type result struct {
	to  io.Writer
	err error
}

// Write hands the next chunk on.
func (r *result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	r.err = cmp.Or(r.err, err)
	return n, err
}

// close shows what was held back.
func (in *Input) close() {
	in.Stdout.(io.Closer).Close() // who reads no more misses nothing
	in.Stderr.(io.Closer).Close()
}

// Say says something on stderr, in one line.
func (in *Input) Say(format string, args ...any) {
	fmt.Fprintf(in.Bare.Stderr, "%s: %s\n", in.app, in.Safe.Line(fmt.Sprintf(format, args...)))
}

// Warn says what is worth a person's attention, in one line.
func (in *Input) Warn(what any) { in.Say("warning: %v", what) }

// JSON prints v as the one document of a command.
func (in *Input) JSON(v any) error {
	line, err := in.Safe.JSON(v)
	if err == nil {
		_, err = in.Result.Write(line)
	}
	return err
}

// Show prints v as JSON where --json asks for that, and has text print it elsewhere: that
// standard output did not take something is found out at the end.
func (in *Input) Show(v any, text func(io.Writer)) error {
	if in.Bool("json") {
		return in.JSON(v)
	}
	text(in.Stdout)
	return nil
}

// ShowTable prints v as JSON if --json asks for that, otherwise the table and the lines below it, fitted to the
// terminal and in colour there.
func (in *Input) ShowTable(v any, t view.Table, below ...string) error {
	if in.Bool("json") {
		return in.JSON(v)
	}
	return in.Print(in.Table(t) + in.Lines(below...))
}

// Table lays out a table for standard output. Its cells are made safe first.
func (in *Input) Table(t view.Table) string {
	for _, row := range t.Rows {
		for i := range row {
			row[i] = in.Safe.Line(row[i])
		}
	}
	return t.Text(view.Columns(in.Bare.Stdout), view.Coloured(in.Bare.Stdout))
}

// Lines makes lines safe and fits them to the terminal. A verdict that begins one is in colour there.
func (in *Input) Lines(lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	text := in.Safe.String(strings.Join(lines, "\n"))
	return view.Lines(text, view.Columns(in.Bare.Stdout), view.Coloured(in.Bare.Stdout))
}

// Print prints text that Table or Lines returned.
func (in *Input) Print(text string) error {
	_, err := io.WriteString(in.Result, text)
	return err
}

// String is the value of a flag, or its default.
func (in *Input) String(name string) string { return in.flags.String(name) }

// Bool says whether a yes-or-no flag is on.
func (in *Input) Bool(name string) bool { return in.flags.Bool(name) }

// Set says whether a flag was given, on the command line or by its variable.
func (in *Input) Set(name string) bool { return in.flags.IsSet(name) }

// Takes reports whether the command has a flag of that name.
func (in *Input) Takes(name string) bool { return in.at.flag(name).Name != "" }

// Int is the value of a flag as a whole number, 0 when it has none. Anything
// else is a usage error.
func (in *Input) Int(name string) (int, error) {
	s := in.String(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, Usagef("--%s must be a whole number, not %q", name, s)
	}
	return n, nil
}

// errMisused is a mistake in how a command was called; nothing was started.
var errMisused = errors.New("misused")

// Usagef is a usage error whose hint points to the help of the command.
func Usagef(format string, args ...any) error { return WithHint("", format, args...) }

// WithHint is a usage error that says what was probably meant.
func WithHint(hint, format string, args ...any) error {
	return &exit.Error{Code: exit.Usage, What: fmt.Sprintf(format, args...), Do: hint, Err: errMisused}
}

// WeakFlag lets a person go on with an engine whose networks are not proven.
const WeakFlag = "allow-weak-network"

// EnvironmentFlags are the flags of everything that starts containers of a role.
func EnvironmentFlags() []Flag {
	return append([]Flag{
		{Name: WeakFlag, Usage: "go on although the engine's networks are not proven to keep containers from this machine and the world; every report then says so"},
	}, ImageFlags()...)
}

// ImageFlags are the flags of everything that may have to make an image.
func ImageFlags() []Flag {
	return []Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust this CA while images are built"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "make no image that needs a network: a missing one is an error"},
	}
}

// HideSecrets keeps what the project's .env has of secrets out of all that
// leaves abl, and says which of them cannot be. It comes before the settings are
// read, whose mistakes are quoted; a .env that cannot be read is one of them.
func (in *Input) HideSecrets(root string) (warnings []string) {
	vars, _, err := config.ReadEnv(filepath.Join(root, ".env"))
	if err != nil {
		return nil
	}
	secrets, weak := redact.Secrets(vars, true)
	in.Safe.Hide(secrets...)
	for _, name := range weak {
		warnings = append(warnings, fmt.Sprintf("the secret of %s in .env is shorter than %d characters, or a plain word or number: it cannot be kept out of what abl shows", name, redact.Shortest))
	}
	return warnings
}
