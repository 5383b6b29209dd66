//go:build linux

package commands

import (
	"errors"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/hostfs"
)

// checkFailed reads failed_specs.md as abl will read it, and returns its entries.
func (t Tool) checkFailed(w workspace, f *findings) []failedspecs.Entry {
	data, err := hostfs.Read(t.Spec.Dir, failed, failedspecs.MaxBytes)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		f.mend("%v", err)
		return nil
	}
	result := w.contracts.Name(failedspecs.Parse(data))
	for _, p := range result.Problems {
		if strings.HasPrefix(p.Text, "the entry has no ") {
			f.miss("%s:%d: %s", failed, p.Line, p.Text)
		} else {
			f.mend("%s:%d: %s", failed, p.Line, p.Text)
		}
	}
	for _, line := range result.Fenced {
		f.mend("%s:%d: a code block in an entry: write the value in one line, behind its label", failed, line)
	}
	_, left := failedspecs.NewFilter(w.specs, w.names).Pass(result.Entries)
	for _, p := range left {
		f.mend("%s:%d: %s: say it in the words of the specs", failed, p.Line, p.Text)
	}
	return result.Entries
}
