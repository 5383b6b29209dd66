package agent

import (
	"fmt"
	"unicode/utf8"

	"abl/internal/hostfs"
)

// MaxText is the largest file that a step can take its text from, and maxAll
// what all of one call's may come to, in bytes.
const (
	MaxText = 8 << 20
	maxAll  = 64 << 20
)

// Resolve returns the call with the text of every file that a step names with
// From in its place. The files are below dir, the scenario file's own folder;
// a link, a file that is no regular one, one larger than MaxText and one that is
// not UTF-8 are errors.
func (c ScriptCall) Resolve(dir string) (ScriptCall, error) {
	steps, total := make([]Step, len(c.Steps)), 0
	copy(steps, c.Steps)
	for i := range steps {
		s := &steps[i]
		if s.From == "" {
			continue
		}
		data, err := hostfs.Read(dir, s.From, MaxText)
		if err != nil {
			return ScriptCall{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		if !utf8.Valid(data) {
			return ScriptCall{}, fmt.Errorf("step %d: cannot take in %q: it is not UTF-8 text", i+1, s.From)
		}
		if total += len(data); total > maxAll {
			return ScriptCall{}, fmt.Errorf("step %d: cannot take in %q: the call's files exceed %d bytes", i+1, s.From, maxAll)
		}
		s.Text, s.From = string(data), ""
	}
	c.Steps = steps
	return c, nil
}

// Resolve resolves every call.
func (s Scenario) Resolve(dir string) (Scenario, error) {
	calls := make([]ScriptCall, len(s.Calls))
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
