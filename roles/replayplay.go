package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
)

// play runs run.sh to its end.
func (r *Replayer) play(ctx context.Context, p Replay, url string) (out Replayed, err error) {
	rec := Record{r.App.Project.Call(p.Key)}
	holder, err := r.Holder(ctx, PlaceVerifier)
	if err != nil {
		return out, err
	}
	deadline := time.Now().Add(p.Limit + time.Minute)
	run := helper.RunSpec{Argv: []string{path.Join(helper.Tests, "run.sh")}, Dir: helper.Tests, Stdout: helper.Out, Stderr: helper.Err, Deadline: deadline.Unix(), Probe: helper.Probe}
	err = errors.Join(layIn(rec, nil, map[string]any{"run.json": run, "commands.json": p.Cmds}), layOutput(rec, r.App.Root, r.App.UID, r.App.GID))
	if err != nil {
		return out, fmt.Errorf("cannot prepare a replay: %w", err)
	}
	one := r.batch(context.WithoutCancel(ctx), p, rec, holder, url, deadline)
	defer func() { err = held(ctx, r.App.Engine, holder, err) }()
	begun, err := one.start(ctx)
	if err != nil {
		return out, err
	}
	exit, late, err := one.await(ctx, p.Limit, time.Second, p.Cut)
	if err != nil {
		return out, err
	}
	out.Exit, out.Late, out.Took = exit.Code, late, time.Since(begun)
	return out, r.read(ctx, one, rec, &out)
}

// read takes what was printed, once the box is gone, and says what kept run.sh
// from being run at all.
func (r *Replayer) read(ctx context.Context, one batch, rec Record, out *Replayed) error {
	end, err := one.end(ctx)
	if err != nil {
		return err
	}
	if end.Error != "" {
		out.Gone = "run.sh could not be started: " + end.Error
	}
	if err := r.App.Engine.Remove(ctx, one.box.Name); err != nil {
		return err
	}
	if err := keepAll(r.App.Safe, rec.Dir, "stdout", "stderr"); err != nil {
		return err
	}
	f, err := hostfs.Open(rec.Dir, "stdout")
	if err != nil {
		return err
	}
	defer f.Close()
	out.Output, err = io.ReadAll(io.LimitReader(f, maxReplay+1))
	return err
}
