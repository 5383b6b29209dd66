package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles"
)

// absentFile has the paths of the Builder's workspace that no commit contains, as the last sweep of
// it found them.
const absentFile = "absent.json"

// keepAbsent keeps the paths that the next Builder has to know of. Run reports are never committed,
// and the app has the folders that app.prepare made: they are not among them.
func keepAbsent(p state.Project, all []state.Thing) error {
	kept, prepared := []state.Thing{}, roles.PreparedFolders(p)
	for _, t := range all {
		if first, _, _ := strings.Cut(t.Path, "/"); first != roles.Builder.Reports && !slices.Contains(prepared, strings.TrimSuffix(t.Path, "/")) {
			kept = append(kept, t)
		}
	}
	return roles.Record{Dir: p.Logs()}.Write(absentFile, kept)
}

// absent returns the paths that keepAbsent kept.
func absent(p state.Project) (all []state.Thing, err error) {
	all, _, err = roles.Read[[]state.Thing](roles.Record{Dir: p.Logs()}, absentFile)
	return all, err
}

// noteAbsent reports which paths of the source the commit that failed does not contain. The app
// may need them.
func (v turn) noteAbsent() error {
	all, err := absent(v.Project)
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
