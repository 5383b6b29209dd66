package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/internal/yamlfile"
)

// Parse reads a scenario file. Every error names the file, and the line where
// the mistake has one.
func Parse(name string, data []byte) (s Scenario, err error) {
	if err := yamlfile.Decode(name, data, &s); err != nil {
		return Scenario{}, err
	}
	if key, err := s.check(); err != nil {
		return Scenario{}, yamlfile.At(name, data, key, err)
	}
	return s, nil
}

// ParseCall reads the one call that abl hands to the scripted agent, as JSON. It was
// checked when its scenario was read.
func ParseCall(name string, data []byte) (c ScriptCall, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return ScriptCall{}, fmt.Errorf("%s: is no call of a scenario: %w", name, err)
	}
	return c, nil
}

// check finds the first mistake and the key of the part that has it.
func (s Scenario) check() (key string, err error) {
	switch {
	case s.Version != Version:
		return "version", fmt.Errorf("want %d, got %d", Version, s.Version)
	case len(s.Calls) == 0:
		return "calls", fmt.Errorf("there are none")
	}
	for i, c := range s.Calls {
		key := fmt.Sprintf("calls[%d]", i)
		for j, step := range c.Steps {
			if err := step.check(); err != nil {
				return fmt.Sprintf("%s.steps[%d]", key, j), err
			}
		}
		if err := c.check(); err != nil {
			return key, err
		}
	}
	return "", nil
}

var (
	// roles are those that a call can have: the two of a phase, and the steps of
	// learning that ask an agent.
	roles = []string{"builder", "verifier", "generate", "review", "learnings", "mistakes", "improve"}
	ends  = []End{"", EndOK, EndSilent, EndError, EndAway, EndLogin, EndCrash, EndHang}
)

// check checks all of a call but its steps.
func (c ScriptCall) check() error {
	switch {
	case !slices.Contains(ends, c.End):
		return fmt.Errorf("end is %q, want one of %q", c.End, ends[1:])
	case !slices.Contains(roles, c.Role):
		return fmt.Errorf("role is %q, want one of %q", c.Role, roles)
	case c.Phase < 0 || c.Iteration < 0 || c.Attempt < 0:
		return fmt.Errorf("phase, iteration and attempt are numbers from 1, or left out for any")
	case c.Exit < 0 || c.Exit > 255:
		return fmt.Errorf("exit is %d, want 0 to 255", c.Exit)
	}
	for _, u := range c.Usage {
		if u.Model == "" || u.Requests < 0 || u.Sane() != u.Count {
			return fmt.Errorf("usage of %q: want a model, and no count below 0", u.Model)
		}
	}
	return nil
}

// extras are the keys of a step that say more about what it does, and with which they go.
var extras = map[string]string{"text": "write append", "from": "write append", "mode": "write", "expect": "run"}

// keys are those of the step that are set, as JSON has them.
func (s Step) keys() []string {
	var set map[string]any
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &set)
	}
	if err != nil {
		return nil // a step has nothing that JSON lacks
	}
	return slices.Sorted(maps.Keys(set))
}

// Kind is the key in the file that makes a step what it is: say, write,
// append, delete, run, sleep, print, raw or report; "" for a step with none or
// more than one of them.
func (s Step) Kind() string {
	kinds := slices.DeleteFunc(s.keys(), func(key string) bool { return extras[key] != "" })
	if len(kinds) != 1 {
		return ""
	}
	return kinds[0]
}

// Path is the file that a write, append or delete step is about.
func (s Step) Path() string { return s.Write + s.Append + s.Delete }

func (s Step) check() error {
	kind := s.Kind()
	if kind == "" {
		return fmt.Errorf("a step does one thing of say, write, append, delete, run, sleep, print, raw and report, this one has %q", s.keys())
	}
	for key, with := range extras {
		if !strings.Contains(with, kind) && slices.Contains(s.keys(), key) {
			return fmt.Errorf("%s: does not go with %s", key, kind)
		}
	}
	switch bits, err := strconv.ParseUint(cmp.Or(s.Mode, "0"), 8, 32); {
	case err != nil || bits > 0o777:
		return fmt.Errorf("mode: want permission bits in octal as \"0755\", got %q", s.Mode)
	case s.Path() != "" && !local(s.Path()):
		return fmt.Errorf("%s: path %q leaves the workspace", kind, s.Path())
	case s.From != "" && !local(s.From):
		return fmt.Errorf("from: path %q leaves the scenario's folder", s.From)
	case s.From != "" && s.Text != "":
		return fmt.Errorf("text and from exclude each other")
	case s.Raw != nil && strings.Contains(*s.Raw, "\n"):
		return fmt.Errorf("raw: want one line")
	}
	return nil
}

// local says whether a path stays below the folder that it starts from.
func local(path string) bool { return filepath.IsLocal(path) && filepath.Clean(path) != "." }

// Duration is a time.Duration written as 200ms or 1m30s.
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 || v > 24*time.Hour {
		return fmt.Errorf("cannot read duration %q: want one as 200ms or 1m30s, up to 24h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as 1m30s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Size is a number of bytes, written as a plain number or with KB, MB or GB (powers of 1000).
type Size int64

// maxPrint keeps a slip of the pen from filling a disk.
const maxPrint = 16e9

// UnmarshalText reads what MarshalText writes and the units.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for unit, f := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if n, ok := strings.CutSuffix(number, unit); ok {
			number, factor = n, f
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > maxPrint/factor {
		return fmt.Errorf("cannot read size %q: want a number of bytes, or one as 200MB, up to 16GB", text)
	}
	*s = Size(n * factor)
	return nil
}

// MarshalText writes the number of bytes.
func (s Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(s), 10), nil }
