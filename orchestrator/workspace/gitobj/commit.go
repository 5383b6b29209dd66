package gitobj

import (
	"fmt"
	"strings"
	"time"
)

// Who is the author and committer of every commit that abl makes.
const Who = "abl <abl@localhost>"

// Signature is who and when, as commits and reflogs write it.
func Signature(when time.Time) string {
	return fmt.Sprintf("%s %d %s", Who, when.Unix(), when.Format("-0700"))
}

// EncodeCommit writes a commit object; parent is "" for the first.
func EncodeCommit(tree, parent string, when time.Time, message string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	if parent != "" {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	sig := Signature(when)
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", sig, sig, message)
	return []byte(b.String())
}

// FormatMessage joins a subject and its trailers. No part may hold a line
// break, which would let one part pass for another.
func FormatMessage(subject string, trailers [][2]string) (string, error) {
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

// ParseMessage takes a message apart: its first line, and the trailers in its
// last paragraph when that is not the first.
func ParseMessage(message string) (subject string, trailers map[string]string) {
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
