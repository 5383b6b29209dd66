package codecommit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Built is how a build ended.
type Built struct {
	Code           int    // exit code, 128 and more for a signal
	Signal         string // that ended it, "" when none did
	Note           string // what else there is to know: it could not be started, say
	Stdout, Stderr string // capped, with a word on what is missing
	Took           time.Duration
	Notes          []string // for the person alone: what the build asked the network for in vain, say
	Papers         []Paper  // what else is kept of it, beside its log
}

// Paper is a file for the log folder.
type Paper struct{ Name, Text string }

// Green says that the build passes: exit code 0 and nothing else counts.
func (b Built) Green() bool { return b.Code == 0 && b.Note == "" && b.Signal == "" }

// Text is the build as the log and the model get it.
func (b Built) Text() string {
	var t strings.Builder
	fmt.Fprintf(&t, "EXIT CODE: %d\n", b.Code)
	if b.Signal != "" {
		fmt.Fprintf(&t, "It was ended by the signal %s.\n", b.Signal)
	}
	if b.Note != "" {
		t.WriteString(b.Note + "\n")
	}
	for _, part := range []struct{ title, text string }{{"STDOUT", b.Stdout}, {"STDERR", b.Stderr}} {
		t.WriteString("\n" + part.title + ":\n" + part.text)
		if part.text != "" && !strings.HasSuffix(part.text, "\n") {
			t.WriteByte('\n')
		}
	}
	return t.String()
}

// Builder runs the build of the project.
type Builder interface {
	Build(ctx context.Context) (Built, error)
}

// ErrEnvironment is a build that says nothing about the code: a tool is missing
// where it ran, or the engine failed. A model cannot repair it.
var ErrEnvironment = errors.New("the build's environment failed")
