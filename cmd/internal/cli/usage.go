package cli

import (
	"fmt"

	"abl/cmd/internal/exit"
)

// UsageError is a mistake in how a command was called; nothing was started.
type UsageError struct {
	What string // one sentence, lower case, no full stop
	Hint string // what was probably meant; "" points to the command's help
}

// Error is the sentence.
func (e *UsageError) Error() string { return e.What }

// Code is the exit code of a usage error.
func (e *UsageError) Code() int { return exit.Usage }

// Usagef is a usage error whose hint points to the help of the command.
func Usagef(format string, args ...any) error {
	return &UsageError{What: fmt.Sprintf(format, args...)}
}

// WithHint is a usage error that says what was probably meant.
func WithHint(hint, format string, args ...any) error {
	return &UsageError{What: fmt.Sprintf(format, args...), Hint: hint}
}
