package orchestrator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles"
)

// mostAttempts is more than the attempts that one step of a phase may have.
const mostAttempts = 20

// Absent returns the paths of the Builder's workspace that the commit of its last call does not
// contain, with the reasons. Run reports are never committed and are not among them. step is the
// step that the phase is at.
func Absent(p state.Project, phase, step int) ([]state.Thing, error) {
	for ; step > 0; step-- {
		for attempt := mostAttempts; attempt > 0; attempt-- {
			rec := roles.Record{Dir: p.Call(roles.Key(phase, roles.Builder, step, attempt))}
			if _, err := os.Lstat(filepath.Join(rec.Dir, roles.FoundFile)); err != nil {
				continue
			}
			found, _, err := roles.Read[state.Found](rec, roles.FoundFile)
			reports := func(t state.Thing) bool { return strings.HasPrefix(t.Path, roles.Builder.Reports+"/") }
			return slices.DeleteFunc(found.Absent, reports), err
		}
	}
	return nil, nil
}

// noteAbsent reports which paths of the source the commit that failed does not contain. The app
// may need them.
func (v turn) noteAbsent() error {
	all, err := Absent(v.Project, v.Number, v.p.Step)
	if err != nil || len(all) == 0 {
		return err
	}
	const most = 5
	var named []string
	for _, t := range all[:min(most, len(all))] {
		named = append(named, fmt.Sprintf("%.200q (%s)", t.Path, wording.OneLine(t.What)))
	}
	if more := len(all) - most; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	v.note("abl tests the commit, which does not contain " + strings.Join(named, ", "))
	return nil
}
