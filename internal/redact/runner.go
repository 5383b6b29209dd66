package redact

import (
	"io"
	"os"
	"sync"
)

// RunnerLog is an output that a CI runner reads. A runner takes lines for commands: GitHub's what
// begins with ::, or holds ##[ anywhere, Azure's ##vso[, TeamCity's ##teamcity[. They are broken
// up by spelling a character as JSON does, so that a document in the output stays the same.
type RunnerLog struct {
	to           io.Writer
	mu           sync.Mutex
	begun, colon bool // the line has begun; it begins with a colon
	hashes       int  // in a row, from two on also with letters after them
}

// ForRunner is w, made harmless for the runner that has started this process, if one has.
func ForRunner(w io.Writer) io.Writer {
	if os.Getenv("GITHUB_ACTIONS") == "" && os.Getenv("TF_BUILD") == "" && os.Getenv("TEAMCITY_VERSION") == "" {
		return w
	}
	return &RunnerLog{to: w}
}

// Write passes the next chunk on.
func (l *RunnerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(p)
}

func (l *RunnerLog) write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	for _, b := range p {
		if l.commands(b) {
			out = append(out, escaped(rune(b))...)
		} else {
			out = append(out, b)
		}
	}
	n, err := l.to.Write(out)
	if err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// Command gives the runner a command of abl's own, on a line of its own.
func (l *RunnerLog) Command(name, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.to, "::"+name+"::")
	l.begun = true
	_, _ = l.write([]byte(text + "\n"))
}

// commands says whether a byte makes a command of what came before it on its line. What is not
// printable ASCII changes nothing: runners compare by rules of language, which pass over some.
func (l *RunnerLog) commands(b byte) (yes bool) {
	letter := b|0x20 >= 'a' && b|0x20 <= 'z'
	switch {
	case b == '\n' || b == '\r':
		l.begun, l.colon, l.hashes = false, false, 0
		return false
	case b < ' ' || b > '~' || b == ' ' && !l.begun:
		return false
	case b == '#':
		l.hashes++
	case b == '[' && l.hashes >= 2:
		yes, l.hashes = true, 0
	case !letter || l.hashes < 2:
		l.hashes = 0
	}
	yes = yes || b == ':' && l.colon
	l.begun, l.colon = true, b == ':' && !l.begun
	return yes
}
