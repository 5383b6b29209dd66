package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/witness"
)

// Names of what a replay puts on the engine. One of a kind is made at a time.
func (r *Replayer) name(p Replay) string    { return r.called("replay", p) }
func (r *Replayer) scratch(p Replay) string { return r.called("replay-tests", p) }
func (r *Replayer) double(p Replay) string  { return r.called("stand-in", p) }

func (r *Replayer) called(what string, p Replay) string {
	return BoxName(r.App.ID, what+"-"+slug(p.Against))
}

func slug(a Against) string { return strings.ReplaceAll(string(a), " ", "-") }

func (r *Replayer) labels(p Replay, kind string, deadline time.Time) map[string]string {
	labels := r.App.labels(p.Key, kind, deadline.Unix())
	labels[sandbox.LabelRole] = slug(p.Against)
	return labels
}

// replayVolume is the kind of the volumes that hold the tests of a replay.
const replayVolume = "replay-volume"

// batch is the tests' container as intent. The tests stand in a volume below the
// folder that the Verifier knows, so that each replay begins with the commit.
func (r *Replayer) batch(ctx context.Context, p Replay, rec Record, holder, url string, deadline time.Time) batch {
	a := r.App
	env := []string{"HOME=" + helper.Home, "LANG=C.UTF-8"}
	if url != "" {
		env = append(env, "ABL_APP_URL="+url)
	}
	box := sandbox.Box{
		Name: r.name(p), Image: r.Image, User: fmt.Sprintf("%d:%d", a.UID, a.GID), Dir: "/",
		Argv: []string{helper.Bin + "/" + helper.HelperRun, helper.Run}, Env: env,
		Mounts: append([]sandbox.Mount{{What: sandbox.Scratch, Source: r.scratch(p), Target: path.Dir(helper.Tests)}}, outputMounts(rec)...),
		Tmpfs:  tmpfs(Verifier), Reach: sandbox.Reach{Join: holder, Through: a.Site.Reach(PlaceVerifier).Endpoints},
		Limits: a.Box, Labels: r.labels(p, "replay", deadline),
	}
	return batch{
		engine: a.Engine, project: a.Project, box: box, labels: r.labels(p, replayVolume, deadline), as: path.Base(helper.Tests),
		tree:  func(w io.Writer, as string) error { return r.Tests(ctx, w, p.Commit, as) },
		proof: proving{engine: a.Engine, box: box, dir: rec.Dir, rule: ofReplay(a.Project, a.ID, rec.Dir), net: a.Site.Net, secret: a.Safe},
	}
}

// standIn starts what answers in the app's place. Its broker says of every command
// that it was done, or the tests would fail for the wrong reason.
func (r *Replayer) standIn(ctx context.Context, p Replay) error {
	a := r.App
	holder, err := r.Holder(ctx, PlaceApp)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(p.Limit + time.Minute)
	argv := []string{helper.Bin + "/" + helper.HelperNull, "-commands", fmt.Sprintf(":%d", r.place(p).commands), "-deadline", strconv.FormatInt(deadline.Unix(), 10)}
	switch {
	case p.Against == NoApp: // a live namespace without a listener refuses at once
	case a.Spec.App == nil:
		return errors.New("internal error: a stand-in for a system without an app section")
	case p.Against == TestLines:
		argv = append(argv, "-listen", fmt.Sprintf(":%d", r.place(p).app), "-says", witness.Planted)
	case p.Against == Trouble:
		argv = append(argv, "-listen", fmt.Sprintf(":%d", r.place(p).app), "-status", "500")
	default:
		argv = append(argv, "-listen", fmt.Sprintf(":%d", r.place(p).app))
	}
	box := sandbox.Box{
		Name: r.double(p), Image: a.Site.Image, User: holderUser, Argv: argv,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 1, Pids: 64, OpenFile: 1024},
		Reach:  sandbox.Reach{Join: holder, Through: a.Site.Reach(PlaceApp).Endpoints},
		Labels: r.labels(p, "stand-in", deadline),
	}
	if err := made(ctx, a.Engine, box); err != nil {
		return fmt.Errorf("cannot make what stands in for the app: %w", err)
	}
	if err := a.Engine.Start(ctx, box.Name); err != nil {
		return err
	}
	return r.listens(ctx, box.Name)
}

// listens waits for the stand-in's first words, which it says when it listens. One
// that says nothing ends at its deadline, so an engine that is slow is waited for.
func (r *Replayer) listens(ctx context.Context, name string) error {
	for {
		words, err := r.App.Engine.Logs(ctx, name, 1<<10)
		if err != nil || strings.Contains(string(words), "ready") {
			return err
		}
		if st, err := r.App.Engine.Status(ctx, name); err != nil || st.State == sandbox.Exited {
			return errors.Join(err, fmt.Errorf("what stands in for the app ended with code %d", st.ExitCode))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// clear removes all that a replay has put up.
func (r *Replayer) clear(ctx context.Context, p Replay) error {
	e := r.App.Engine
	err := errors.Join(e.Remove(ctx, r.name(p)), e.Remove(ctx, r.double(p)))
	if err == nil {
		_, err = e.Sweep(ctx, map[string]string{sandbox.LabelProject: r.App.ID, sandbox.LabelKind: replayVolume, sandbox.LabelRole: slug(p.Against)}, nil)
	}
	if p.Against == TheApp {
		err = errors.Join(err, r.App.Down(ctx, p.Key))
	}
	return err
}
