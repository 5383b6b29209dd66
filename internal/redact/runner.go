package redact

import (
	"io"
	"os"
	"sync"
)

// RunnerLog is an output for a CI runner, which interprets some lines as commands: GitHub lines
// with :: at the beginning or ##[ anywhere, Azure ##vso[, TeamCity ##teamcity[. RunnerLog replaces
// one character of them with its JSON escape, so that a JSON document keeps its meaning.
type RunnerLog struct {
	to                io.Writer
	mu                sync.Mutex
	begun, afterColon bool // the line has text; it is only a colon so far
	hashes            int  // number of consecutive #, after two also with letters after them
}

// ForRunner returns w, or a RunnerLog for w if a CI runner has started this process.
func ForRunner(w io.Writer) io.Writer {
	if os.Getenv("GITHUB_ACTIONS") == "" && os.Getenv("TF_BUILD") == "" && os.Getenv("TEAMCITY_VERSION") == "" {
		return w
	}
	return &RunnerLog{to: w}
}

// Write processes the next chunk.
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

// Command writes a command for the runner on a separate line.
func (l *RunnerLog) Command(name, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.to, "::"+name+"::")
	l.begun = true
	_, _ = l.write([]byte(text + "\n"))
}

// commands reports whether a byte completes a command. It ignores non-ASCII and control characters,
// because runners compare by language rules that ignore some of them.
func (l *RunnerLog) commands(b byte) (yes bool) {
	letter := b|0x20 >= 'a' && b|0x20 <= 'z'
	switch {
	case b == '\n' || b == '\r':
		l.begun, l.afterColon, l.hashes = false, false, 0
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
	yes = yes || b == ':' && l.afterColon
	l.begun, l.afterColon = true, b == ':' && !l.begun
	return yes
}
