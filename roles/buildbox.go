package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

func (b *Builds) labels(key, kind string, deadline time.Time) map[string]string {
	return map[string]string{
		sandbox.LabelProject: b.ID, sandbox.LabelKind: kind, sandbox.LabelCall: key,
		sandbox.LabelDeadline: strconv.FormatInt(deadline.Unix(), 10),
	}
}

// batch is a build's container as intent, with its way out.
func (b *Builds) batch(ctx context.Context, w Build, rec Record) (one batch, err error) {
	deadline := time.Now().Add(w.Limit + time.Minute)
	run := helper.RunSpec{Argv: b.Argv, Dir: helper.Src, Stdout: helper.Out, Stderr: helper.Err, Deadline: deadline.Unix(), Probe: helper.Probe}
	err = errors.Join(os.RemoveAll(rec.Dir), layIn(rec, b.Files, map[string]any{"run.json": run}), layOutput(rec, b.Root, b.UID, b.GID))
	if err != nil {
		return one, fmt.Errorf("cannot prepare a build: %w", err)
	}
	var env []string
	var reach sandbox.Reach
	if b.Gate != nil {
		if reach.Join, err = b.Site.Holder(ctx, PlaceBuilder); err != nil {
			return one, err
		}
		reach.Through = b.Site.Reach(PlaceBuilder).Endpoints
		if env, err = b.Gate.Open(ctx, w.Key, "", deadline); err != nil {
			return one, fmt.Errorf("cannot make the build's way out: %w", err)
		}
	}
	name := BoxName(b.ID, w.Key)
	box := sandbox.Box{
		Name: name, Image: b.Image, User: fmt.Sprintf("%d:%d", b.UID, b.GID), Dir: "/",
		Argv: []string{helper.Bin + "/" + helper.HelperRun, helper.Run}, Env: append([]string{"HOME=" + helper.Home, "LANG=C.UTF-8"}, env...),
		Mounts: append([]sandbox.Mount{{What: sandbox.Scratch, Source: name, Target: path.Dir(helper.Src)}}, outputMounts(rec)...),
		Tmpfs: []sandbox.Tmpfs{
			{Target: "/tmp", Size: 1 << 30, Mode: "1777", Exec: true},
			{Target: helper.Home, Size: 512 << 20, Mode: "0700", Owned: true, Exec: true}, // package managers keep their caches there
		},
		Reach: reach, Limits: b.Box, Labels: b.labels(w.Key, "build", deadline),
	}
	return batch{
		engine: b.Engine, project: b.Project, box: box, labels: b.labels(w.Key, buildVolume, deadline), as: path.Base(helper.Src), tree: b.Tree,
		proof: proving{engine: b.Engine, box: box, dir: rec.Dir, rule: ofBuild(b.ID, rec.Dir, b.Absent, b.Gate != nil), net: b.Net, cutOff: b.Gate == nil, secret: b.Safe},
	}, nil
}

// copyOutput passes on what a build prints while it does; stop passes on the rest.
func copyOutput(rec Record, stdout, stderr io.Writer) (stop func() error, err error) {
	out, err := OpenOutput(rec.Stdout())
	if err != nil {
		return nil, err
	}
	voice, err := OpenOutput(rec.Stderr())
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	take := func() error { // from where the last time ended
		_, oerr := io.Copy(stdout, out)
		_, verr := io.Copy(stderr, voice)
		return errors.Join(oerr, verr)
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		var err error
		for err == nil {
			select {
			case <-done:
				ended <- take()
				return
			case <-tick.C:
				err = take()
			}
		}
		<-done
		ended <- err
	}()
	return func() error {
		close(done)
		return errors.Join(<-ended, out.Close(), voice.Close())
	}, nil
}
