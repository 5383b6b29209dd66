package git

import (
	"fmt"
	"strings"

	"abl/internal/state"
)

// Message says what a snapshot's commit says. Author and committer are
// abl <abl@localhost>.
type Message struct {
	Subject string
	Call    string // the idempotency key, in the trailer Abl-Call

	// Keep is told what else was found, before anything is committed, and with it
	// the workspace is swept. No container that could change it may run then.
	Keep func(state.Found) error
}

const callTrailer = "\nAbl-Call: "

// text refuses line breaks, which would let one part pass for another.
func (m Message) text() (string, error) {
	if m.Subject == "" || strings.ContainsAny(m.Subject+m.Call, "\n\r\x00") {
		return "", fmt.Errorf("cannot commit %q for the call %q: each must be one line", m.Subject, m.Call)
	}
	if m.Call == "" {
		return m.Subject + "\n", nil
	}
	return m.Subject + "\n" + callTrailer + m.Call + "\n", nil
}

// callOf is the key in a commit's message, "" for none.
func callOf(message string) string {
	i := strings.LastIndex(message, callTrailer)
	if i < 0 {
		return ""
	}
	call, _, _ := strings.Cut(message[i+len(callTrailer):], "\n")
	return strings.TrimSpace(call)
}
