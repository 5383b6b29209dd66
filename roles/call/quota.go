package call

import (
	"abl/roles"
	"context"
	"fmt"
	"time"
)

// treeFile contains, in a call's record, the size of its workspace before it.
const treeFile = "tree.json"

// measureFirst records the size of a call's workspace before the agent starts.
func (r *Runner) measureFirst(ctx context.Context, j Job, rec roles.Record) error {
	if !r.Quota.Limited() {
		return nil
	}
	was, err := roles.MeasureTree(ctx, j.Role.Workspace(r.Project))
	if err == nil {
		err = rec.Write(treeFile, was)
	}
	if err != nil {
		return fmt.Errorf("cannot measure the %s's workspace: %w", j.Role.Name, err)
	}
	return nil
}

// outgrown returns a channel that receives the reason to end a call, if the call exceeds its quota.
func (r *Runner) outgrown(ctx context.Context, j Job, rec roles.Record, since time.Time) <-chan string {
	dir, why := j.Role.Workspace(r.Project), make(chan string, 1)
	if !r.Quota.Limited() {
		return why
	}
	was, known, err := roles.Read[roles.TreeSize](rec, treeFile)
	if err != nil || !known { // a power cut may delete the file: the current size counts
		was, _ = roles.MeasureTree(ctx, dir) // a folder that cannot be opened cannot grow
	}
	go func() {
		look := func() string { return r.Quota.Exceeded(ctx, dir, was, since) }
		if text := r.Quota.Watch(ctx, look); text != "" {
			why <- text
		}
	}()
	return why
}
