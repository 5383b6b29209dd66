package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// services starts the further containers, fresh. Each has a holder, for what an
// app can make a database do shall have no more reach than the app. A foreign image
// knows no deadline: its programs live below the holder's and end with it.
func (a *App) services(ctx context.Context, key string, deadline int64) error {
	for _, s := range a.Services {
		name, place := BoxName(a.ID, "svc-"+s.Name), placeService+s.Name
		holder, err := a.Site.HolderUntil(ctx, place, deadline)
		if err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
		box := sandbox.Box{
			Name: name, Image: s.Image, Env: s.Env, Loose: true, Limits: a.Box, Labels: a.labels(key, "service", deadline),
			Reach: sandbox.Reach{Join: holder, Through: a.Site.Reach(place).Endpoints}, Below: true,
		}
		if err := made(ctx, a.Engine, box); err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
		if err := a.Engine.Start(ctx, name); err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
	}
	return nil
}

// volumes makes the tree that the app will see: a copy-on-write view of the
// source, or an empty volume that fill copies the tree into.
func (a *App) volumes(ctx context.Context, key string, deadline int64) error {
	labels := a.labels(key, "volume", deadline)
	scratch := sandbox.Volume{Name: a.scratch(), Labels: labels}
	if err := a.Engine.EnsureVolume(ctx, scratch); err != nil {
		return err
	}
	if a.Copy != "overlay" {
		return nil
	}
	return a.Engine.EnsureVolume(ctx, sandbox.Volume{Name: a.tree(), Labels: labels, Lower: a.Project.Src, Upper: a.scratch(), Image: a.Site.Image})
}

func (a *App) boxFor(key, holder string, deadline int64) sandbox.Box {
	tree := sandbox.Mount{What: sandbox.Tree, Source: a.tree(), Target: helper.Src}
	if a.Copy != "overlay" {
		tree.Source = a.scratch()
	}
	dir := a.dir(key)
	return sandbox.Box{
		Name: a.box(), Image: a.Image, User: fmt.Sprintf("%d:%d", a.UID, a.GID), Dir: helper.Src,
		Argv: []string{helper.Bin + "/" + helper.HelperBroker, helper.Broker},
		Env:  append([]string{"HOME=" + helper.Home, "LANG=C.UTF-8"}, a.Env...),
		Mounts: []sandbox.Mount{
			tree,
			{What: sandbox.Empty, Source: a.Project.Empty(), Target: helper.Src + "/.git", ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: helper.In, ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: helper.Events},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: helper.AppLog},
		},
		Tmpfs: tmpfs(Builder), Reach: sandbox.Reach{Join: holder, Through: a.Site.Reach(PlaceApp).Endpoints}, Limits: a.Box, Labels: a.labels(key, "app", deadline),
	}
}

// proving is the proof of the app's box: it sees neither specs nor tests.
func (a *App) proving(key string, box sandbox.Box) proving {
	return proving{
		engine: a.Engine, box: box, dir: a.dir(key), net: a.Site.Net, rule: ofApp(a.Project, a.ID, a.dir(key)),
	}
}

// fill copies the tree in where the engine cannot look at it in place. A box
// that is never started takes it, with a root of its own to write in: an engine
// gives the folder that a volume is mounted at its owner and mode only when it
// is unpacked as an entry of the folder above, and without them the app could
// not write in its own directory.
func (a *App) fill(ctx context.Context, key string, deadline int64) error {
	if a.Copy == "overlay" {
		return nil
	}
	box := sandbox.Box{
		Name: BoxName(a.ID, "app-fill"), Image: a.Site.Image, User: holderUser, Argv: []string{"none"}, Loose: true,
		Labels: a.labels(key, "helper", deadline),
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256}, // for the case that somebody starts it
		Mounts: []sandbox.Mount{{What: sandbox.Scratch, Source: a.scratch(), Target: helper.Src}},
	}
	if err := a.Engine.Remove(ctx, box.Name); err != nil { // an abl that was killed here left it
		return err
	}
	if err := made(ctx, a.Engine, box); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.Tree(w, path.Base(helper.Src))) }()
	defer r.Close()
	err := a.Engine.CopyIn(ctx, box.Name, path.Dir(helper.Src), r)
	return errors.Join(err, a.Engine.Remove(ctx, box.Name))
}

func (a *App) labels(key, kind string, deadline int64) map[string]string {
	return map[string]string{
		sandbox.LabelProject: a.ID, sandbox.LabelKind: kind, sandbox.LabelPhase: strconv.Itoa(a.Site.Phase), sandbox.LabelCall: key,
		sandbox.LabelDeadline: strconv.FormatInt(deadline, 10),
	}
}
