package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/orchestrator/dirs"
)

// play runs run.sh to its end.
func (r *Replayer) play(ctx context.Context, p Replay, url string) (out Replayed, err error) {
	rec := Record{r.App.Project.Call(p.Key)}
	holder, err := r.Holder(ctx, PlaceVerifier)
	if err != nil {
		return out, err
	}
	deadline := time.Now().Add(p.Limit + time.Minute)
	if err := r.layOut(p, rec, deadline); err != nil {
		return out, fmt.Errorf("cannot prepare a replay: %w", err)
	}
	box := r.box(p, rec, holder, url, deadline)
	defer func() { err = held(ctx, r.App.Engine, holder, err) }()
	if err := r.make(context.WithoutCancel(ctx), p, box); err != nil {
		return out, fmt.Errorf("cannot make the container of a replay: %w", err)
	}
	proof := proving{engine: r.App.Engine, box: box, dir: rec.Dir, rule: ofReplay(r.App.Project, r.App.ID, rec.Dir), net: r.App.Site.Net, secret: r.App.Outlet}
	done, err := proof.before(ctx)
	defer done()
	if err != nil {
		return out, err
	}
	begun := time.Now()
	if err := r.App.Engine.Start(ctx, box.Name); err != nil {
		return out, err
	}
	if err := proof.after(ctx, true); err != nil {
		return out, err
	}
	if out, err = r.await(ctx, p, box.Name); err != nil {
		return out, err
	}
	out.Took = time.Since(begun)
	return out, r.read(ctx, p, rec, &out)
}

// await waits for the end, and brings it about at the limit.
func (r *Replayer) await(ctx context.Context, p Replay, name string) (out Replayed, err error) {
	bound, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	go func() {
		select {
		case <-p.Cut: // never, where it is nil
			cancel()
		case <-bound.Done():
		}
	}()
	exit, err := r.App.Engine.Wait(bound, name)
	if bound.Err() != nil && ctx.Err() == nil {
		out.Late = true
		if err := r.App.Engine.Stop(ctx, name, time.Second); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			return out, err
		}
		exit, err = r.App.Engine.Wait(ctx, name)
	}
	out.Exit = exit.Code
	return out, err
}

// read takes what was printed, once the box is gone, and says what kept run.sh
// from being run at all.
func (r *Replayer) read(ctx context.Context, p Replay, rec Record, out *Replayed) error {
	words, err := r.App.Engine.Logs(ctx, r.name(p), 4<<10)
	if err != nil {
		return err
	}
	for _, line := range splitLines(words) {
		var end dirs.RunEnd
		if json.Unmarshal(line, &end) == nil && end.Error != "" {
			out.Gone = "run.sh could not be started: " + end.Error
		}
	}
	if err := r.App.Engine.Remove(ctx, r.name(p)); err != nil {
		return err
	}
	if err := keepAll(r.App.Outlet, rec.Dir, "stdout", "stderr"); err != nil {
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

// layOut writes what the box sees: how to start run.sh, and what abl-cmd offers.
func (r *Replayer) layOut(p Replay, rec Record, deadline time.Time) error {
	if err := errors.Join(os.RemoveAll(rec.In()), os.MkdirAll(rec.In(), 0o755)); err != nil {
		return err
	}
	run := dirs.RunSpec{Argv: []string{path.Join(dirs.Tests, "run.sh")}, Dir: dirs.Tests, Stdout: dirs.Out, Stderr: dirs.Err, Deadline: deadline.Unix(), Probe: dirs.Probe}
	for name, v := range map[string]any{"run.json": run, "commands.json": p.Cmds} {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
		if err := writeReadable(filepath.Join(rec.In(), name), data); err != nil {
			return err
		}
	}
	return (&Runner{Root: r.App.Root, UID: r.App.UID, GID: r.App.GID}).outputs(Job{}, rec)
}
