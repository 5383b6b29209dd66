package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/app"
)

// absentFile lists the paths of the Builder's workspace that no commit contains, as the last sweep
// found them.
const absentFile = "absent.json"

// keepAbsent records the paths that the next Builder must learn of. Run reports, which are never
// committed, and folders of app.prepare, which the app gets, are left out.
func keepAbsent(p state.Project, all []state.Thing) error {
	kept, prepared := []state.Thing{}, app.PreparedFolders(p)
	for _, t := range all {
		first, _, _ := strings.Cut(t.Path, "/")
		if first != roles.Builder.Reports && !slices.Contains(prepared, strings.TrimSuffix(t.Path, "/")) {
			kept = append(kept, t)
		}
	}
	return roles.Record{Dir: p.Logs()}.Write(absentFile, kept)
}

// absent returns the paths that keepAbsent recorded.
func absent(p state.Project) (all []state.Thing, err error) {
	all, _, err = roles.Read[[]state.Thing](roles.Record{Dir: p.Logs()}, absentFile)
	return all, err
}

// noteAbsent reports the paths of the source that the failed commit does not contain. The app may
// need them.
func (v turn) noteAbsent() error {
	all, err := absent(v.Project)
	if err != nil || len(all) == 0 {
		return err
	}
	var named []string
	for _, t := range all {
		named = append(named, fmt.Sprintf("%.200q (%s)", t.Path, wording.OneLine(t.What)))
	}
	v.note("abl tests the commit, which does not contain " + wording.Few(named, 5, ", "))
	return nil
}
