package cli

import (
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

// Input is the arguments, flags and streams of a command.
type Input struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer // for results; redacts
	Stderr io.Writer // for messages; redacts
	// Safe redacts output. A command adds the secrets that it reads.
	Safe *redact.Sanitizer
	// Bare are the streams without redaction, for callers that redact the text themselves and send
	// escape sequences.
	Bare struct{ Stdout, Stderr io.Writer }
	// Result is Bare.Stdout, and remembers a failed write, which fails the command.
	Result io.Writer

	app     string
	program *App
	at      Command
	flags   *urfave.Context
}

// input returns the Input of a command, without arguments and flags. It redacts the values of
// environment variables with the name of a secret.
func input(app *App, stdin io.Reader, stdout, stderr io.Writer) *Input {
	o := redact.NewSanitizer(os.Environ())
	stdout, stderr = redact.ForRunner(stdout), redact.ForRunner(stderr)
	r := &result{to: stdout}
	in := &Input{
		Stdin:   stdin,
		Stdout:  o.Messages(r),
		Stderr:  o.Messages(stderr),
		Safe:    o,
		Result:  r,
		app:     app.Name,
		program: app,
	}
	in.Bare.Stdout, in.Bare.Stderr = stdout, stderr
	return in
}

// result remembers the first failed write.
type result struct {
	to  io.Writer
	err error
}

// Write passes p on.
func (r *result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// close flushes both streams.
func (in *Input) close() {
	in.Stdout.(io.Closer).Close()
	in.Stderr.(io.Closer).Close()
}

// Say prints one line on stderr.
func (in *Input) Say(format string, args ...any) {
	fmt.Fprintf(in.Bare.Stderr, "%s: %s\n", in.app, in.Safe.Line(fmt.Sprintf(format, args...)))
}

// Warn prints a warning on stderr, on one line.
func (in *Input) Warn(what any) { in.Say("warning: %v", what) }

// JSON prints v as the command's only document.
func (in *Input) JSON(v any) error {
	line, err := in.Safe.JSON(v)
	if err == nil {
		_, err = in.Result.Write(line)
	}
	return err
}

// Show prints v as JSON if --json is set, and calls text otherwise. Main reports failed writes of text.
func (in *Input) Show(v any, text func(io.Writer)) error {
	if in.Bool("json") {
		return in.JSON(v)
	}
	text(in.Stdout)
	return nil
}

// ShowTable prints v as JSON if --json is set, and otherwise the table and the lines below it, fitted to
// the terminal and coloured there.
func (in *Input) ShowTable(v any, t view.Table, below ...string) error {
	if in.Bool("json") {
		return in.JSON(v)
	}
	return in.Print(in.Table(t) + in.Lines(below...))
}

// Table redacts the cells of a table and lays it out for standard output.
func (in *Input) Table(t view.Table) string {
	for _, row := range t.Rows {
		for i := range row {
			row[i] = in.Safe.Line(row[i])
		}
	}
	return t.Text(view.Columns(in.Bare.Stdout), view.Coloured(in.Bare.Stdout))
}

// Lines redacts lines and fits them to the terminal, where a verdict at the beginning of a line is
// coloured.
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

// Version returns the version of the program.
func (in *Input) Version() string { return in.program.Version }

// String returns the value of a flag, or its default.
func (in *Input) String(name string) string { return in.flags.String(name) }

// Bool returns the value of a boolean flag.
func (in *Input) Bool(name string) bool { return in.flags.Bool(name) }

// Set reports whether a flag was set, on the command line or by its variable.
func (in *Input) Set(name string) bool { return in.flags.IsSet(name) }

// Takes reports whether the command has a flag of that name.
func (in *Input) Takes(name string) bool { return in.at.flag(name).Name != "" }

// Int returns the value of a flag as an integer, 0 if it is empty. Any other value is a usage error.
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

// errMisused is the cause of usage errors.
var errMisused = errors.New("misused")

// Usagef returns a usage error. Main adds a hint that names the command's help.
func Usagef(format string, args ...any) error { return WithHint("", format, args...) }

// WithHint returns a usage error with a hint.
func WithHint(hint, format string, args ...any) error {
	return &exit.Error{Code: exit.Usage, What: fmt.Sprintf(format, args...), Do: hint, Err: errMisused}
}

// WeakFlag is the flag that allows an engine whose network isolation is not proven.
const WeakFlag = "allow-weak-network"

// EnvironmentFlags returns the flags of commands that start containers of a role.
func EnvironmentFlags() []Flag {
	return append([]Flag{
		{Name: WeakFlag, Usage: "continue if abl cannot prove that the engine's networks isolate containers; " +
			"every report then mentions it"},
	}, ImageFlags()...)
}

// ImageFlags returns the flags of commands that may build an image.
func ImageFlags() []Flag {
	return []Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust the CA certificates in FILE (docs/proxies.md)"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "never use the network to build an image; a missing image is an error"},
	}
}

// HideSecrets redacts the secrets of the project's .env from all output, and returns a warning for each
// that is too short or too common. Call it before reading the settings, whose errors quote values. It
// ignores a .env that cannot be read: reading the settings reports that.
func (in *Input) HideSecrets(root string) (warnings []string) {
	vars, _, err := config.ReadEnv(filepath.Join(root, ".env"))
	if err != nil {
		return nil
	}
	secrets, weak := redact.Secrets(vars, true)
	in.Safe.Hide(secrets...)
	for _, name := range weak {
		warnings = append(warnings, fmt.Sprintf("abl cannot hide the secret %s of .env in its output: "+
			"it is shorter than %d characters, "+
			"or a plain word or number", name, redact.Shortest))
	}
	return warnings
}
