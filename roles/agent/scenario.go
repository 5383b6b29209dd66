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
	"abl/internal/usage"
	"abl/internal/yamlfile"
)

// Version is the only version of the file format so far.
const Version = 1

// Scenario is the content of a file: calls, in the order in which Pick checks them.
type Scenario struct {
	Version int          `yaml:"version" json:"version"`
	Calls   []ScriptCall `yaml:"calls" json:"calls"`
}

// ScriptCall defines the actions of one call. Phase, Iteration and Attempt are 0 for any value;
// Pick sets them to the values of the call.
type ScriptCall struct {
	Role      string        `yaml:"role" json:"role"`
	Phase     int           `yaml:"phase" json:"phase,omitempty"`
	Iteration int           `yaml:"iteration" json:"iteration,omitempty"`
	Attempt   int           `yaml:"attempt" json:"attempt,omitempty"`
	Steps     []Step        `yaml:"steps" json:"steps,omitempty"`
	Usage     []ScriptUsage `yaml:"usage" json:"usage,omitempty"`
	End       End           `yaml:"end" json:"end,omitempty"`
	Exit      int           `yaml:"exit" json:"exit,omitempty"`

	// abl sets these; a file cannot.
	// Step is the number of the step over all rounds.
	Step    int    `yaml:"-" json:"step,omitempty"`
	Session string `yaml:"-" json:"session,omitempty"`
}

// Step is one action: one of Say, Write, Append, Delete, Run, Sleep, Print, Raw and Report. Text,
// From, Mode and Expect are options of some of them.
type Step struct {
	// Say is a line of text.
	Say *string `yaml:"say" json:"say,omitempty"`
	// Write is the path in the workspace of a file to replace with Text.
	Write string `yaml:"write" json:"write,omitempty"`
	// Append is the path of a file to which to append Text.
	Append string `yaml:"append" json:"append,omitempty"`
	// Delete is the path of a file or folder to remove.
	Delete string `yaml:"delete" json:"delete,omitempty"`
	// Run is a shell command to run in the workspace.
	Run   string   `yaml:"run" json:"run,omitempty"`
	Sleep Duration `yaml:"sleep" json:"sleep,omitempty"`
	// Print is a number of bytes to print in lines.
	Print Size `yaml:"print" json:"print,omitempty"`
	// Raw is a line to print unchanged.
	Raw *string `yaml:"raw" json:"raw,omitempty"`
	// Report is the content of the call's run report.
	Report *string `yaml:"report" json:"report,omitempty"`

	Text string `yaml:"text" json:"text,omitempty"` // with Write and Append
	// With Write and Append: a file next to the scenario; Resolve reads it into Text.
	From string `yaml:"from" json:"from,omitempty"`
	// With Write: permission bits in octal, such as "0755".
	Mode string `yaml:"mode" json:"mode,omitempty"`
	// With Run: the expected exit code; the call fails with any other.
	Expect *int `yaml:"expect" json:"expect,omitempty"`
}

// ScriptUsage is the reported usage of one model.
type ScriptUsage struct {
	Model       string `yaml:"model" json:"model"`
	usage.Count `yaml:",inline"`
	Requests    int64 `yaml:"requests" json:"requests,omitempty"`
}

// End is the end of a call after its steps.
type End string

// The values of End; "" is EndOK.
const (
	EndOK     End = "ok"     // a result record with success
	EndSilent End = "silent" // no result record
	EndError  End = "error"  // a result record with an error
	EndAway   End = "away"   // an error: the provider is unavailable or limits the rate
	EndLogin  End = "login"  // an error: the provider refused the key
	EndCrash  End = "crash"  // the agent ends by SIGKILL
	EndHang   End = "hang"   // the agent waits until it is stopped
)

// Requests returns the reported number of model requests: at least one per model, and one without
// usage.
func (c ScriptCall) Requests() int64 {
	var n int64
	for _, u := range c.Usage {
		n += max(u.Requests, 1)
	}
	return max(n, 1)
}

// Pick returns the first call that matches a role, phase, iteration and attempt, with these values
// set.
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

// maxText is the maximum size of a file in From, in bytes.
const maxText = 8 << 20

// Resolve replaces From with the text of the file, in all steps. Files are relative to dir, the
// folder of the scenario. It fails if a file is a link, not regular, larger than maxText or not
// UTF-8.
func (c ScriptCall) Resolve(dir string) (ScriptCall, error) {
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.From == "" {
			continue
		}
		data, err := hostfs.Read(dir, s.From, maxText)
		if err == nil && !utf8.Valid(data) {
			err = fmt.Errorf("cannot use %q: it is not UTF-8 text", s.From)
		}
		if err != nil {
			return ScriptCall{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		s.Text, s.From = string(data), ""
	}
	return c, nil
}

// Values replace the words in double braces in the texts of a scenario.
type Values struct {
	Phase, Iteration, Step int
	Time                   time.Time
	AppURL                 string
}

// timeLayout is the format of the UTC time in a report's name.
const timeLayout = "20060102T150405Z"

// Fill replaces {{phase}}, {{iteration}}, {{step}}, {{time}} and {{app_url}} with the values. It
// keeps other words in braces, which programs may use.
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

// Parse reads a scenario file. Errors name the file and, if known, the line.
func Parse(name string, data []byte) (s Scenario, err error) {
	if err := yamlfile.Decode(name, data, &s); err != nil {
		return Scenario{}, err
	}
	if key, err := s.check(); err != nil {
		return Scenario{}, yamlfile.At(name, data, key, err)
	}
	return s, nil
}

// ParseCall reads the call that abl passes to the scripted agent, as JSON. Parse has already
// checked it.
func ParseCall(name string, data []byte) (c ScriptCall, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return ScriptCall{}, fmt.Errorf("%s: not a call of a scenario: %w", name, err)
	}
	return c, nil
}

// check returns the first mistake and the key of its part.
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
	// roles are the possible roles of a call: those of a phase, and the steps of learning.
	roles = []string{"builder", "verifier", "generate", "review", "learnings", "mistakes", "improve"}
	ends  = []End{"", EndOK, EndSilent, EndError, EndAway, EndLogin, EndCrash, EndHang}
)

// check checks a call except its steps.
func (c ScriptCall) check() error {
	switch {
	case !slices.Contains(ends, c.End):
		return fmt.Errorf("end is %q, want one of %q", c.End, ends[1:])
	case !slices.Contains(roles, c.Role):
		return fmt.Errorf("role is %q, want one of %q", c.Role, roles)
	case c.Phase < 0 || c.Iteration < 0 || c.Attempt < 0:
		return fmt.Errorf("phase, iteration and attempt must be positive numbers; omit one to match any")
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

// extras are the options of steps, with the actions that they belong to.
var extras = map[string]string{"text": "write append", "from": "write append", "mode": "write", "expect": "run"}

// keys returns the JSON keys of the fields that are set.
func (s Step) keys() []string {
	data, _ := json.Marshal(s) // a step can always be encoded
	var set map[string]any
	_ = json.Unmarshal(data, &set)
	return slices.Sorted(maps.Keys(set))
}

// Kind returns the action of a step: say, write, append, delete, run, sleep, print, raw or report.
// It returns "" for a step without an action or with several.
func (s Step) Kind() string {
	kinds := slices.DeleteFunc(s.keys(), func(key string) bool { return extras[key] != "" })
	if len(kinds) != 1 {
		return ""
	}
	return kinds[0]
}

// Path returns the file of a write, append or delete step.
func (s Step) Path() string { return s.Write + s.Append + s.Delete }

// check returns an error if a step has no action, several, or a parameter of another action.
func (s Step) check() error {
	kind := s.Kind()
	if kind == "" {
		return fmt.Errorf("want one of say, write, append, delete, run, sleep, print, raw and report in a step, got %q",
			s.keys())
	}
	for key, with := range extras {
		if !strings.Contains(with, kind) && slices.Contains(s.keys(), key) {
			return fmt.Errorf("%s: cannot be combined with %s", key, kind)
		}
	}
	switch bits, err := strconv.ParseUint(cmp.Or(s.Mode, "0"), 8, 32); {
	case err != nil || bits > 0o777:
		return fmt.Errorf("mode: want permission bits in octal, such as \"0755\", got %q", s.Mode)
	case s.Path() != "" && !local(s.Path()):
		return fmt.Errorf("%s: path %q leaves the workspace", kind, s.Path())
	case s.From != "" && !local(s.From):
		return fmt.Errorf("from: path %q leaves the scenario's folder", s.From)
	case s.From != "" && s.Text != "":
		return fmt.Errorf("text and from are mutually exclusive")
	case s.Raw != nil && strings.Contains(*s.Raw, "\n"):
		return fmt.Errorf("raw: want one line")
	}
	return nil
}

// local reports whether a path is below the folder that it is relative to.
func local(path string) bool { return filepath.IsLocal(path) && filepath.Clean(path) != "." }

// Duration is a time.Duration in a form such as 200ms or 1m30s.
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 || v > 24*time.Hour {
		return fmt.Errorf("cannot read duration %q: want one such as 200ms or 1m30s, up to 24h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration in a form such as 1m30s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Size is a number of bytes, written as a plain number or with KB, MB or GB (powers of 1000).
type Size int64

// maxPrint is the maximum of Print: a typing mistake must not fill the disk.
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
		return fmt.Errorf("cannot read size %q: want a number of bytes, or one such as 200MB, up to 16GB", text)
	}
	*s = Size(n * factor)
	return nil
}

// MarshalText writes the number of bytes.
func (s Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(s), 10), nil }
