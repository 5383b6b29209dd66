package helper

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FreshReport names the run report that a call left: a file phaseN_vI_….md
// that was not there before, or has been written since. before and now are the
// role's reports by name with their modification times in ns, empty files left
// out. abl and abl-cmd check both go by this.
func FreshReport(phase, iteration int, before, now map[string]int64) string {
	prefix := fmt.Sprintf("phase%d_v%d_", phase, iteration)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, prefix) && strings.HasSuffix(lower, ".md") && before[name] != now[name] {
			return name
		}
	}
	return ""
}
