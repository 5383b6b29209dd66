package git

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// author is who and when stands in a commit, and committer too.
func author(when time.Time) object.Signature {
	return object.Signature{Name: "abl", Email: "abl@localhost", When: when}
}

// formatMessage joins a subject and its trailers. No part may hold a line
// break, which would let one part pass for another.
func formatMessage(subject string, trailers [][2]string) (string, error) {
	if subject == "" || strings.ContainsAny(subject, "\n\r\x00") {
		return "", fmt.Errorf("cannot commit under the subject %q: it must be one line", subject)
	}
	var b strings.Builder
	b.WriteString(subject + "\n")
	for i, t := range trailers {
		if t[0] == "" || strings.ContainsAny(t[0], ": \t\n\r\x00") || strings.ContainsAny(t[1], "\n\r\x00") {
			return "", fmt.Errorf("cannot commit with the trailer %q: %q", t[0], t[1])
		}
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s\n", t[0], t[1])
	}
	return b.String(), nil
}

// parseMessage takes a message apart: its first line, and the trailers in its
// last paragraph when that is not the first.
func parseMessage(message string) (subject string, trailers map[string]string) {
	message = strings.TrimRight(message, "\n")
	subject, body, _ := strings.Cut(message, "\n")
	trailers = map[string]string{}
	if i := strings.LastIndex(body, "\n\n"); i >= 0 {
		body = body[i+2:]
	}
	for line := range strings.SplitSeq(strings.TrimLeft(body, "\n"), "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if ok && key != "" && !strings.ContainsAny(key, " \t") {
			trailers[key] = strings.TrimRight(value, " \t\r")
		}
	}
	return subject, trailers
}
