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
	"unicode/utf8"

	"abl/internal/hostfs"
	"abl/internal/tokens"
	"abl/internal/yamlfile"
)

// Version is the only version of the file format so far.
const Version = 1

// Scenario is one file: the calls that a script knows, in the order in which they are tried.
type Scenario struct {
	Version int          `yaml:"version" json:"version"`
	Calls   []ScriptCall `yaml:"calls" json:"calls"`
}

// ScriptCall is what an agent does in one call. Phase, Iteration and Attempt are 0
// for "any"; Pick fills them in with those of the call that it was picked for.
type ScriptCall struct {
	Role      string        `yaml:"role" json:"role"`
	Phase     int           `yaml:"phase" json:"phase,omitempty"`
	Iteration int           `yaml:"iteration" json:"iteration,omitempty"`
	Attempt   int           `yaml:"attempt" json:"attempt,omitempty"`
	Steps     []Step        `yaml:"steps" json:"steps,omitempty"`
	Usage     []ScriptUsage `yaml:"usage" json:"usage,omitempty"`
	End       End           `yaml:"end" json:"end,omitempty"`
	Exit      int           `yaml:"exit" json:"exit,omitempty"`

	// Set by abl for the agent, never read from a file.
	// Counts the role's calls over all rounds.
	Step    int    `yaml:"-" json:"step,omitempty"`
	Session string `yaml:"-" json:"session,omitempty"`
}

// Step is one action. Exactly one of Say, Write, Append, Delete, Run, Sleep,
// Print, Raw and Report is set; Text, From, Mode and Expect go with some of them.
type Step struct {
	// A line of the agent's own words.
	Say *string `yaml:"say" json:"say,omitempty"`
	// Path in the workspace, replaced by Text.
	Write string `yaml:"write" json:"write,omitempty"`
	// Path in the workspace, Text is added to its end.
	Append string `yaml:"append" json:"append,omitempty"`
	// Path in the workspace, a folder with all that is in it.
	Delete string `yaml:"delete" json:"delete,omitempty"`
	// A shell command, run in the workspace.
	Run   string   `yaml:"run" json:"run,omitempty"`
	Sleep Duration `yaml:"sleep" json:"sleep,omitempty"`
	// So many bytes of output lines.
	Print Size `yaml:"print" json:"print,omitempty"`
	// One line for standard output, as it is.
	Raw *string `yaml:"raw" json:"raw,omitempty"`
	// The role's run report of this very call.
	Report *string `yaml:"report" json:"report,omitempty"`

	Text string `yaml:"text" json:"text,omitempty"` // with Write and Append
	// With Write and Append: a file beside the scenario; Resolve turns it into Text.
	From string `yaml:"from" json:"from,omitempty"`
	// With Write: permission bits in octal, as "0755".
	Mode string `yaml:"mode" json:"mode,omitempty"`
	// With Run: the exit code without which the call ends in error.
	Expect *int `yaml:"expect" json:"expect,omitempty"`
}

// ScriptUsage is what the call reports for one model.
type ScriptUsage struct {
	Model        string `yaml:"model" json:"model"`
	tokens.Count `yaml:",inline"`
	Requests     int64 `yaml:"requests" json:"requests,omitempty"`
}

// End says how a call ends after its steps.
type End string

// The ways a call can end; an empty End is EndOK.
const (
	EndOK     End = "ok"     // a final record that says success
	EndSilent End = "silent" // no final record
	EndError  End = "error"  // a final record that says error
	EndAway   End = "away"   // an error: the provider is unavailable or wants us to wait
	EndLogin  End = "login"  // an error: the provider refused the key
	EndCrash  End = "crash"  // the agent kills itself with SIGKILL
	EndHang   End = "hang"   // the agent waits until it is stopped
)

// Requests is the number of model requests that the call reports: at least one
// for each model, and one when there is no usage at all.
func (c ScriptCall) Requests() int64 {
	var n int64
	for _, u := range c.Usage {
		n += max(u.Requests, 1)
	}
	return max(n, 1)
}

// Pick returns the first call that is meant for this role, phase, iteration and
// attempt, with these filled in.
func (s Scenario) Pick(role string, phase, iteration, attempt int) (ScriptCall, bool) {
	fits := func(want, have int) bool { return want == 0 || want == have }
	for _, c := range s.Calls {
		if c.Role == role && fits(c.Phase, phase) && fits(c.Iteration, iteration) && fits(c.Attempt, attempt) {
			c.Phase, c.Iteration, c.Attempt = phase, iteration, attempt
			return c, true
		}
	}
	return ScriptCall{}, false
}

// maxText is the largest file that a step can take its text from, in bytes.
const maxText = 8 << 20

// Resolve returns the call with the text of every file that a step names with
// From in its place. The files are below dir, the scenario file's own folder;
// a link, a file that is no regular one, one larger than maxText and one that is
// not UTF-8 are errors.
func (c ScriptCall) Resolve(dir string) (ScriptCall, error) {
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.From == "" {
			continue
		}
		data, err := hostfs.Read(dir, s.From, maxText)
		if err == nil && !utf8.Valid(data) {
			err = fmt.Errorf("cannot take in %q: it is not UTF-8 text", s.From)
		}
		if err != nil {
			return ScriptCall{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		s.Text, s.From = string(data), ""
	}
	return c, nil
}

// Values stand for the words in double braces that a script's texts may use.
type Values struct {
	Phase, Iteration, Step int
	Time                   time.Time
	AppURL                 string
}

// timeLayout is how a time stands in a report's name, always UTC.
const timeLayout = "20060102T150405Z"

// Fill puts the values in place of {{phase}}, {{iteration}}, {{step}}, {{time}}
// and {{app_url}}; any other word in braces stays, since programs use them too.
func (v Values) Fill(text string) string {
	return strings.NewReplacer(
		"{{phase}}", strconv.Itoa(v.Phase),
		"{{iteration}}", strconv.Itoa(v.Iteration),
		"{{step}}", strconv.Itoa(v.Step),
		"{{time}}", v.Time.UTC().Format(timeLayout),
		"{{app_url}}", v.AppURL,
	).Replace(text)
}

// ReportPath is the path of a call's run report, relative to the role's workspace:
// builder_reports/phase1_v2_20060102T150405Z.md.
func ReportPath(role string, phase, iteration int, at time.Time) string {
	return fmt.Sprintf("%s_reports/phase%d_v%d_%s.md", role, phase, iteration, at.UTC().Format(timeLayout))
}

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
		return "calls", fmt.Errorf("the list is empty")
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
	data, _ := json.Marshal(s) // a step has nothing that JSON lacks
	var set map[string]any
	_ = json.Unmarshal(data, &set)
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
