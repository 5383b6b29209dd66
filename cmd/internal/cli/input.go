package cli

import (
	"io"
	"strconv"

	urfave "github.com/urfave/cli/v2"
)

// Input is what a command was called with.
type Input struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer // results
	Stderr io.Writer // voice

	flags *urfave.Context
}

// String is the value of a flag, or its default. Of a flag that may be given
// more than once it is none: see Strings.
func (in *Input) String(name string) string { return in.flags.String(name) }

// Strings are the values of a flag that may be given more than once.
func (in *Input) Strings(name string) []string { return in.flags.StringSlice(name) }

// Bool says whether a yes-or-no flag is on.
func (in *Input) Bool(name string) bool { return in.flags.Bool(name) }

// Set says whether a flag was given, on the command line or by its variable.
func (in *Input) Set(name string) bool { return in.flags.IsSet(name) }

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
