package scenario

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxText is the largest file that a step can take its text from, and maxAll
// what all of one call's may come to, in bytes.
const (
	MaxText = 8 << 20
	maxAll  = 64 << 20
)

// Resolve returns the call with the text of every file that a step names with
// From in its place. The files are below dir, the scenario file's own folder;
// a link that leads out of it, a file that is no regular one, and one larger
// than MaxText are errors.
func (c Call) Resolve(dir string) (Call, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Call{}, fmt.Errorf("cannot open the scenario's folder: %w", err)
	}
	defer root.Close()
	steps, total := make([]Step, len(c.Steps)), 0
	copy(steps, c.Steps)
	for i := range steps {
		s := &steps[i]
		if s.From == "" {
			continue
		}
		if s.Text, err = readText(root, s.From); err != nil {
			return Call{}, fmt.Errorf("cannot read %q for step %d: %w", s.From, i+1, err)
		}
		if total += len(s.Text); total > maxAll {
			return Call{}, fmt.Errorf("cannot take in %q for step %d: the call's files exceed %d bytes", s.From, i+1, maxAll)
		}
		s.From = ""
	}
	c.Steps = steps
	return c, nil
}

// Resolve resolves every call.
func (s Scenario) Resolve(dir string) (Scenario, error) {
	calls := make([]Call, len(s.Calls))
	for i, c := range s.Calls {
		resolved, err := c.Resolve(dir)
		if err != nil {
			return Scenario{}, fmt.Errorf("call %d: %w", i+1, err)
		}
		calls[i] = resolved
	}
	s.Calls = calls
	return s, nil
}

// readText reads a regular file below root; O_NONBLOCK so that a FIFO does not hold it up.
func readText(root *os.Root, name string) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	if err != nil {
		return "", err
	}
	if len(data) > MaxText {
		return "", fmt.Errorf("larger than %d bytes", MaxText)
	}
	return string(data), nil
}
