package replay

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/state"
	"abl/roles"
)

// underWay is the prefix of a record's name while its replay runs.
const underWay = "replaying-"

// sweepReplays removes the records of replays during which abl was killed.
func sweepReplays(call string) error {
	names, err := roles.Names(call)
	for _, name := range names {
		if strings.HasPrefix(name, underWay) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(call, name)))
		}
	}
	return err
}

// replayFile contains the result of a replay, in the replay's record. replayDir is the prefix of
// the names of such records.
const (
	replayFile = "replay.json"
	replayDir  = "replay-"
)

// keptReplay is the content of replayFile.
type keptReplay struct {
	At      time.Time `json:"at"`
	Against Against   `json:"against"`
	Commit  string    `json:"commit,omitempty"`
	Result
}

// saveReplay writes the result of a replay.
func (r *Runner) saveReplay(p Job, at time.Time, out Result) error {
	k := keptReplay{At: at, Against: p.Against, Commit: p.Commit, Result: out}
	if err := r.App.Safe.Clean(&k); err != nil {
		return err
	}
	return roles.Record{Dir: r.App.Project.Call(p.Key)}.Write(replayFile, k)
}

// order is the order of replays in a report.
var order = []Against{TheApp, NoApp, Empty, Trouble}

// ForgetReplays deletes the results of a call's replays before they are repeated: an abl that
// was killed may have made others. earlier selects the replays of earlier phases' tests.
func ForgetReplays(p state.Project, key string, earlier bool) error {
	names, err := replaysOf(p, key)
	if earlier {
		err = errors.Join(err, roles.Record{Dir: p.Call(key)}.Forget(roles.RegressionFile))
	}
	for _, name := range names {
		if strings.HasPrefix(name, replayDir+"phase") == earlier {
			err = errors.Join(err, roles.Record{Dir: filepath.Join(p.Call(key), name)}.Forget(replayFile))
		}
	}
	return err
}

// replaysOf returns the names of the records of a call's replays.
func replaysOf(p state.Project, key string) ([]string, error) {
	names, err := roles.Names(p.Call(key))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, replayDir) }), err
}

// Earlier returns the records of the replays of earlier phases' tests before a call.
func Earlier(r roles.Record) (all []roles.Record) {
	names, _ := roles.Names(r.Dir) // an unreadable record is not shown
	for _, name := range names {
		if strings.HasPrefix(name, replayDir+"phase") {
			all = append(all, roles.Record{Dir: filepath.Join(r.Dir, name)})
		}
	}
	return all
}
