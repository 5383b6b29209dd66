package environment

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"abl/internal/sandbox"
	"abl/internal/state"
)

// orphanedFor is the minimum time since the deadlines of an orphan.
const orphanedFor = 7 * 24 * time.Hour

// Sweeper lists and removes the objects of projects on an engine.
type Sweeper interface {
	Objects(ctx context.Context, labels map[string]string) ([]sandbox.Object, error)
	Sweep(ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool) (removed []string, err error)
}

// SweepOrphans removes the objects of this machine's projects whose state file is gone or belongs
// to another project, and returns their names. It keeps a project's objects while one of them runs
// or has a deadline less than a week ago.
func SweepOrphans(ctx context.Context, eng Engine) (removed []string, err error) {
	all, err := eng.Objects(ctx, nil)
	if err != nil {
		return nil, err
	}
	running := func(s sandbox.Status) bool { return s.State == sandbox.Running } // started since then
	for _, p := range projects(all, time.Now().Add(-orphanedFor), lost) {
		if p.orphan() {
			names, serr := eng.Sweep(ctx, map[string]string{sandbox.LabelProject: p.ID}, running)
			removed, err = append(removed, names...), errors.Join(err, serr)
		}
	}
	return removed, err
}

// SweepEarlier removes the containers, volumes and networks of other project ids with the same
// state file, also running ones, and returns their names. The caller holds the project's lock. No
// run can resume such a call, because the state file has another id.
func SweepEarlier(ctx context.Context, eng Sweeper, stateFile, id string) (removed []string, err error) {
	label := pathLabel(stateFile)
	if label == "" {
		return nil, nil
	}
	found, err := eng.Objects(ctx, map[string]string{sandbox.LabelState: label})
	ids := map[string]bool{}
	for _, o := range found {
		if sandbox.Made(o.Name, o.Labels) && o.Labels[sandbox.LabelProject] != id {
			ids[o.Labels[sandbox.LabelProject]] = true
		}
	}
	for _, earlier := range slices.Sorted(maps.Keys(ids)) {
		labels := map[string]string{sandbox.LabelProject: earlier, sandbox.LabelState: label}
		names, serr := eng.Sweep(ctx, labels, nil)
		removed, err = append(removed, names...), errors.Join(err, serr)
	}
	return removed, err
}

// pathLabel returns the label value of a path on this machine, "" if there cannot be one.
func pathLabel(path string) string {
	host, err := os.Hostname()
	if err != nil || path == "" || !utf8.ValidString(path) { // the engine would return another label
		return ""
	}
	return host + ":" + path
}

// lost reports whether the state file in a label is on this machine and has another id or is gone.
// It returns false if the project's directory is missing: it may have been moved, or its disk may
// not be mounted.
func lost(label, id string) bool {
	_, path, ok := strings.Cut(label, ":")
	if !ok || label != pathLabel(path) || !filepath.IsAbs(path) {
		return false
	}
	root, err := os.Stat(filepath.Dir(filepath.Dir(path)))
	if err != nil || !root.IsDir() {
		return false
	}
	f, err := state.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && f.Project != id
}
