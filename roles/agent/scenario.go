package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"abl/internal/hostfs"
	"abl/internal/tokens"
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
	Step    int    `yaml:"-" json:"step,omitempty"` // counts the role's calls over all rounds
	Session string `yaml:"-" json:"session,omitempty"`
}

// Step is one action. Exactly one of Say, Write, Append, Delete, Run, Sleep,
// Print, Raw and Report is set; Text, From, Mode and Expect go with some of them.
type Step struct {
	Say    *string  `yaml:"say" json:"say,omitempty"`       // a line of the agent's own words
	Write  string   `yaml:"write" json:"write,omitempty"`   // path in the workspace, replaced by Text
	Append string   `yaml:"append" json:"append,omitempty"` // path in the workspace, Text is added to its end
	Delete string   `yaml:"delete" json:"delete,omitempty"` // path in the workspace, a folder with all that is in it
	Run    string   `yaml:"run" json:"run,omitempty"`       // a shell command, run in the workspace
	Sleep  Duration `yaml:"sleep" json:"sleep,omitempty"`
	Print  Size     `yaml:"print" json:"print,omitempty"`   // so many bytes of output lines
	Raw    *string  `yaml:"raw" json:"raw,omitempty"`       // one line for standard output, as it is
	Report *string  `yaml:"report" json:"report,omitempty"` // the role's run report of this very call

	Text   string `yaml:"text" json:"text,omitempty"`     // with Write and Append
	From   string `yaml:"from" json:"from,omitempty"`     // with Write and Append: a file beside the scenario; Resolve turns it into Text
	Mode   string `yaml:"mode" json:"mode,omitempty"`     // with Write: permission bits in octal, as "0755"
	Expect *int   `yaml:"expect" json:"expect,omitempty"` // with Run: the exit code without which the call ends in error
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
	EndAway   End = "away"   // an error: the provider is away or wants us to wait
	EndLogin  End = "login"  // an error: the provider refused the key
	EndCrash  End = "crash"  // the agent kills itself with SIGKILL
	EndHang   End = "hang"   // the agent waits until somebody stops it
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

// maxText is the largest file that a step can take its text from, and maxAll
// what all of one call's may come to, in bytes.
const (
	maxText = 8 << 20
	maxAll  = 64 << 20
)

// Resolve returns the call with the text of every file that a step names with
// From in its place. The files are below dir, the scenario file's own folder;
// a link, a file that is no regular one, one larger than maxText and one that is
// not UTF-8 are errors.
func (c ScriptCall) Resolve(dir string) (ScriptCall, error) {
	c.Steps = append([]Step(nil), c.Steps...)
	total := 0
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.From == "" {
			continue
		}
		data, err := hostfs.Read(dir, s.From, maxText)
		total += len(data)
		switch {
		case err != nil:
		case !utf8.Valid(data):
			err = fmt.Errorf("cannot take in %q: it is not UTF-8 text", s.From)
		case total > maxAll:
			err = fmt.Errorf("cannot take in %q: the call's files exceed %d bytes", s.From, maxAll)
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
