package images

import (
	"fmt"
	"regexp"
	"strings"

	"abl/internal/redact"
	"abl/internal/sandbox"
)

const (
	tailLines = 20  // of a failed build's output
	lineRunes = 160 // of one of them
)

// output follows what a build prints: its steps are told, its last lines kept.
type output struct {
	name string
	say  func(string, ...any)
	tail []string
}

var stepLine = regexp.MustCompile(`^Step (\d+/\d+) : (.*)$`)

func (o *output) line(raw string) {
	line := clean(raw)
	if line == "" {
		return
	}
	if m := stepLine.FindStringSubmatch(line); m != nil {
		o.say("%s: step %s %s", o.name, m[1], m[2])
	}
	if len(o.tail) == tailLines {
		o.tail = o.tail[1:]
	}
	o.tail = append(o.tail, line)
}

// clean makes a line of somebody else's program fit for one line of a terminal.
func clean(raw string) string {
	line := []rune(redact.Line(raw))
	if len(line) > lineRunes {
		line = append(line[:lineRunes-1], '…')
	}
	return string(line)
}

// BuildError is a build that failed. It wraps its cause and sandbox.ErrNoImage.
type BuildError struct {
	Ref   string
	Tail  []string // last lines the build printed, fit for a terminal
	cause error
}

// Error gives the cause and what the build printed last.
func (e *BuildError) Error() string {
	s := fmt.Sprintf("cannot build image %q: %s", e.Ref, redact.Line(e.cause.Error()))
	for _, line := range e.Tail {
		s += "\n  | " + line
	}
	if hint := e.hint(); hint != "" {
		s += "\n" + hint
	}
	return s
}

// Unwrap lets a caller tell a cancelled build and see that an image is missing.
func (e *BuildError) Unwrap() []error { return []error{e.cause, sandbox.ErrNoImage} }

// hint says what a person can do, or nothing when abl does not know.
func (e *BuildError) hint() string {
	switch {
	case e.says("SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER", "UNABLE_TO_VERIFY", "certificate verify failed", "certificate signed by unknown"):
		return "a proxy seems to re-sign TLS here: name the certificate of its authority with --ca-cert FILE or ABL_CA_CERT"
	case e.says("no space left on device"):
		return "the engine's disk is full: `docker system df` shows what takes it"
	case e.lookup():
		return "builds find no network: set HTTPS_PROXY and HTTP_PROXY, or bring the images with `abl images load FILE`; a Dockerfile of your own may use this machine's network when you say so (network.builds: host)"
	}
	return ""
}

// lookup tells a build that found no names, or no bridge to ask over.
func (e *BuildError) lookup() bool {
	return e.says("Temporary failure resolving", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND",
		"Could not resolve", "could not find bridge", "network bridge not found")
}

func (e *BuildError) says(words ...string) bool {
	all := e.cause.Error() + "\n" + strings.Join(e.Tail, "\n")
	for _, w := range words {
		if strings.Contains(all, w) {
			return true
		}
	}
	return false
}
