package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/boundary"
)

// volumes creates the app's source tree: a copy-on-write view of the source, or an empty volume
// that fill copies the source into.
func (a *App) volumes(ctx context.Context, key string, until time.Time, from layers) error {
	labels := a.Labels("volume", a.Place(), key, until)
	err := a.Engine.EnsureVolume(ctx, sandbox.Volume{Name: a.volume("scratch"), Labels: labels})
	if err != nil || a.Copy != "overlay" {
		return err
	}
	return a.Engine.EnsureVolume(ctx, sandbox.Volume{
		Name:   a.volume("tree"),
		Labels: labels,
		Lower:  from,
		Upper:  a.volume("scratch"),
		Image:  a.Helper,
	})
}

func (a *App) containerFor(key string, until time.Time) sandbox.ContainerConfig {
	tree := sandbox.Mount{What: sandbox.Tree, Source: a.volume("tree"), Target: helper.Src}
	if a.Copy != "overlay" {
		tree.Source = a.volume("scratch")
	}
	dir := a.dir(key)
	container := a.Worker(a.Place(), a.Image, a.Place(), a.Labels("app", "", key, until))
	container.Dir, container.Argv = helper.Src, []string{helper.Bin + "/" + helper.HelperBroker, helper.Broker}
	container.Env, container.Tmpfs = append(container.Env, a.Env...), a.Spaces.Tmpfs(roles.Builder)
	container.Mounts = []sandbox.Mount{
		tree,
		{What: sandbox.Empty, Source: a.Project.Empty(), Target: helper.Src + "/.git", ReadOnly: true},
		{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: helper.In, ReadOnly: true},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: helper.Events},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: helper.AppLog},
	}
	return container
}

// launcher returns the Launcher of the app's container, which sees neither specs nor tests.
func (a *App) launcher(key string, container sandbox.ContainerConfig) boundary.Launcher {
	return boundary.Launcher{
		Containers: a.Containers,
		Project:    a.Project,
		Config:     container,
		Dir:        a.dir(key),
		Rule:       boundary.AppRule(a.Project, a.ID, a.dir(key), a.Place(), a.Copy != "overlay"),
	}
}

// fill copies the source into the app's volume, unless the engine provides a view of it. The copy
// goes through a container that is never started and whose root is writable. An engine sets the
// owner and mode of the folder that a volume is mounted at only if it unpacks that folder as an
// entry of the folder above. Without them the app could not write in its own directory.
func (a *App) fill(ctx context.Context, key string, until time.Time, from layers) error {
	if a.Copy == "overlay" {
		return nil
	}
	container := a.Tool(a.Place()+"-fill", a.Labels("helper", "", key, until), "none")
	container.Loose, container.Mounts = true, []sandbox.Mount{{What: sandbox.Scratch, Source: a.volume("scratch"), Target: helper.Src}}
	if err := a.Container(container).Replace(ctx); err != nil { // an abl that was killed here may have left one
		return err
	}
	var err error
	for _, dir := range slices.Backward(from) { // an upper directory hides a lower one
		if err == nil {
			_, err = boundary.CopyTree(ctx, a.Engine, container.Name, helper.Src, func(w io.Writer, as string) error {
				return hostfs.Tar(w, as,
					dir)
			})
		}
	}
	return errors.Join(err, a.Engine.Remove(ctx, container.Name))
}

// brokerFile is the name of the broker's configuration in its input.
const brokerFile = "broker.json"

// readBrokerSpec reads the broker's configuration. ok is false if it is missing.
func (a *App) readBrokerSpec(key string) (spec helper.BrokerSpec, ok bool, err error) {
	return roles.Read[helper.BrokerSpec](roles.Record{Dir: roles.Record{Dir: a.dir(key)}.In()}, brokerFile)
}

// writeBrokerSpec writes the broker's configuration and the two empty files for its output. It keeps
// an existing token, because a Verifier that an earlier abl started may have it.
func (a *App) writeBrokerSpec(key string) (helper.BrokerSpec, error) {
	rec, spec := roles.Record{Dir: a.dir(key)}, a.Spec
	old, _, err := a.readBrokerSpec(key)
	if err != nil {
		return spec, err
	}
	spec.Deadline = time.Now().Add(a.Life).Unix()
	spec.Token = cmp.Or(old.Token, rand.Text())
	spec.Events, spec.Log, spec.Probe = helper.Events, helper.AppLog, helper.Probe
	err = errors.Join(
		os.MkdirAll(a.Project.Empty(), 0o755),
		os.MkdirAll(rec.In(), 0o755),
		rec.Forget(endFile, overFile, fullFile),
		a.CreateFiles(filepath.Join(rec.Dir, "events"), rec.Output()),
		roles.Record{Dir: rec.In()}.Write(brokerFile, spec),
	)
	if err == nil {
		failpoint.Here("app.orders")
	}
	return spec, err
}
