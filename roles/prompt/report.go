package prompt

import (
	"fmt"
	"time"
)

// ReportPath is the path of a call's run report, relative to the workspace:
// builder_reports/phase1_v2_20060102T150405Z.md.
func ReportPath(role string, phase, iteration int, at time.Time) string {
	return fmt.Sprintf("%s_reports/phase%d_v%d_%s.md", role, phase, iteration, at.UTC().Format("20060102T150405Z"))
}
