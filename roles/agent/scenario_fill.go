package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TimeLayout is how a time stands in a report's name, always UTC.
const TimeLayout = "20060102T150405Z"

// Values stand for the words in double braces that a script's texts may use.
type Values struct {
	Phase, Iteration, Step int
	Time                   time.Time
	AppURL                 string
}

// Fill puts the values in place of {{phase}}, {{iteration}}, {{step}}, {{time}}
// and {{app_url}}; any other word in braces stays, since programs use them too.
func (v Values) Fill(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return strings.NewReplacer(
		"{{phase}}", strconv.Itoa(v.Phase),
		"{{iteration}}", strconv.Itoa(v.Iteration),
		"{{step}}", strconv.Itoa(v.Step),
		"{{time}}", v.Time.UTC().Format(TimeLayout),
		"{{app_url}}", v.AppURL,
	).Replace(text)
}

// ReportPath is where the role's run report of this call belongs, relative to
// its workspace.
func ReportPath(role string, v Values) string {
	return fmt.Sprintf("%s_reports/phase%d_v%d_%s.md", role, v.Phase, v.Iteration, v.Time.UTC().Format(TimeLayout))
}
