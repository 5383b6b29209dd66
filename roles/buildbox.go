package roles

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"abl/internal/sandbox"
	"abl/orchestrator/dirs"
)

func (b *Builds) labels(key, kind string, deadline time.Time) map[string]string {
	return map[string]string{
		sandbox.LabelProject: b.ID, sandbox.LabelKind: kind, sandbox.LabelCall: key,
		sandbox.LabelDeadline: strconv.FormatInt(deadline.Unix(), 10),
	}
}

// make makes the box, with its way out, and fills its volume with the tree.
func (b *Builds) make(ctx context.Context, w Build, rec Record) (box sandbox.Box, err error) {
	deadline := time.Now().Add(w.Limit + time.Minute)
	if err := b.layOut(rec, deadline); err != nil {
		return box, fmt.Errorf("cannot prepare a build: %w", err)
	}
	var env []string
	var reach sandbox.Reach
	if b.Gate != nil {
		if reach.Join, err = b.Site.Holder(ctx, PlaceBuilder); err != nil {
			return box, err
		}
		reach.Through = b.Site.Reach(PlaceBuilder).Endpoints
		if env, err = b.Gate.Open(ctx, w.Key, "", deadline); err != nil {
			return box, fmt.Errorf("cannot make the build's way out: %w", err)
		}
	}
	box = b.box(w, rec, env, reach, deadline)
	if err := b.Engine.EnsureVolume(ctx, sandbox.Volume{Name: box.Name, Labels: b.labels(w.Key, buildVolume, deadline)}); err != nil {
		return box, err
	}
	if err := checkSources(b.Project, box.Mounts); err != nil {
		return box, err
	}
	if _, err := b.Engine.Create(ctx, box); err != nil {
		return box, fmt.Errorf("cannot make the build's container: %w", err)
	}
	from, to := io.Pipe()
	go func() { to.CloseWithError(b.Tree(to, path.Base(dirs.Src))) }()
	defer from.Close()
	return box, b.Engine.CopyIn(ctx, box.Name, path.Dir(dirs.Src), from)
}

// box is the build's container as intent.
func (b *Builds) box(w Build, rec Record, env []string, reach sandbox.Reach, deadline time.Time) sandbox.Box {
	name := BoxName(b.ID, w.Key)
	return sandbox.Box{
		Name: name, Image: b.Image, User: fmt.Sprintf("%d:%d", b.UID, b.GID), Dir: "/",
		Argv: []string{dirs.Bin + "/" + dirs.HelperRun, dirs.Run}, Env: append([]string{"HOME=" + dirs.Home, "LANG=C.UTF-8"}, env...),
		Mounts: []sandbox.Mount{
			{What: sandbox.Scratch, Source: name, Target: path.Dir(dirs.Src)},
			{What: sandbox.CallIn, Source: rec.In(), Target: dirs.In, ReadOnly: true},
			{What: sandbox.CallOut, Source: rec.Stdout(), Target: dirs.Out},
			{What: sandbox.CallOut, Source: rec.Stderr(), Target: dirs.Err},
		},
		Tmpfs: []sandbox.Tmpfs{
			{Target: "/tmp", Size: 1 << 30, Mode: "1777", Exec: true},
			{Target: dirs.Home, Size: 512 << 20, Mode: "0700", Owned: true, Exec: true}, // package managers keep their caches there
		},
		Reach: reach, Limits: b.Box, Labels: b.labels(w.Key, "build", deadline),
	}
}
