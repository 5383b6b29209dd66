// Package app runs the app under test in a container: its source, dependencies and build, its start and
// its end. Its first program is the broker. It also runs builds for code-commit.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/boundary"
)

// App runs the system under test: a copy of a commit and of its dependencies in a container, with
// the broker as its first process.
type App struct {
	*boundary.Containers
	Project  state.Project
	Image    string
	Spec     helper.BrokerSpec // without token, events, log and deadline
	Silence  time.Duration     // how long the broker may be silent after its own timeouts before the app counts as failed
	Life     time.Duration     // after which an app ends without abl
	Env      []string
	Services []boundary.ServiceContainer
	Copy     string // overlay or tar
	Commits  Commits
	Out      state.Sink
	Prepare  *Prepare // installs its dependencies; nil for no command
	Build    *Prepare // builds it; nil for no command

	place string // "" is PlaceApp; other copies of the app run at other places
}

// Beside returns the same app at the n-th place, from 0, so that several copies run at the same
// time.
func (a *App) Beside(n int) *App {
	if n == 0 {
		return a
	}
	other := *a
	other.place = fmt.Sprintf("%s-%d", boundary.PlaceApp, n)
	return &other
}

// Place returns the app's place.
func (a *App) Place() string { return cmp.Or(a.place, boundary.PlaceApp) }

// Up describes a running app for its Verifier.
type Up struct {
	URL    string // http://app:PORT, "" without an app section and for a program
	Broker string
	Token  string
	Failed string // the observed start-up failure, in the language of the spec; "" if the app is ready

	Printed string // the last lines that the app, or app.prepare, printed before that failure
}

// Why returns the failure and the last lines printed before it, "" if the app is ready.
func (u Up) Why() string { return withPrinted(u.Failed, u.Printed) }

// dir returns the folder with the app's files of a call.
func (a *App) dir(key string) string { return filepath.Join(a.Project.Call(key), "app") }

// container returns the name of the app's container.
func (a *App) container() string { return a.Name(a.Place()) }

// volume returns the engine's name of one of the app's volumes: scratch or tree.
func (a *App) volume(what string) string { return a.Name(a.Place() + "-" + what) }

// Up starts the app from a commit of the source, "" for the last one, and waits until it is ready
// or has failed. It attaches to an app that an earlier abl started for the same call. If something
// other than abl ends the app's containers, Up starts them again.
func (a *App) Up(ctx context.Context, key, commit string) (up Up, err error) {
	return up, a.repeated(ctx, key, func() error {
		up, err = a.upOnce(ctx, key, commit)
		return err
	})
}

// repeated calls do again if something other than abl ended its container, at most
// boundary.MaxStarts times in total.
func (a *App) repeated(ctx context.Context, key string, do func() error) (err error) {
	for left := boundary.MaxStarts - 1; ; left-- {
		if err = do(); !errors.Is(err, sandbox.ErrKilled) || left == 0 || ctx.Err() != nil {
			return err
		}
		a.emit(key, state.Event{Kind: state.Note, Text: err.Error() + "; abl starts another"})
	}
}

func (a *App) upOnce(ctx context.Context, key, commit string) (Up, error) {
	up, running, err := a.adopt(ctx, key)
	if err != nil {
		return up, err
	}
	if !running {
		if err := a.remove(ctx); err != nil {
			return up, err
		}
		begun := time.Now()
		from, failed, by, err := a.source(ctx, key, commit)
		if err != nil {
			return up, err
		}
		if failed != "" {
			up := a.Describe(a.Spec)
			up.Printed = by.printed(a)
			log := roles.Record{Dir: a.dir(key)}.Output()
			if err := errors.Join(os.MkdirAll(a.dir(key), 0o755), hostfs.Write(log, []byte(up.Printed+"\n"), 0o644)); err != nil {
				return up, err
			}
			return a.reportStart(key, up, helper.Event{Event: "failed", Detail: failed}, begun), nil
		}
		if up, err = a.start(ctx, key, from); err != nil {
			return up, fmt.Errorf("cannot start the app's container: %w", err)
		}
	}
	failpoint.Here("app.started")
	a.watchDisk(ctx, key)
	if up, err = a.await(ctx, key, up); errors.Is(err, sandbox.ErrNotFound) {
		err = fmt.Errorf("%w: %s was removed", sandbox.ErrKilled, a.container())
	}
	if err == nil {
		failpoint.Here("app.ready")
	}
	return up, err
}

// adopt attaches to an app that an earlier abl started for this call. It returns false if there is
// no such app.
func (a *App) adopt(ctx context.Context, key string) (Up, bool, error) {
	st, err := a.Engine.Status(ctx, a.container())
	if errors.Is(err, sandbox.ErrNotFound) {
		return Up{}, false, nil
	}
	if err != nil || st.State != sandbox.Running || st.Labels[sandbox.LabelCall] != key {
		return Up{}, false, err
	}
	spec, ok, err := a.readBrokerSpec(key)
	if err == nil && ok {
		err = a.launcher(key, sandbox.ContainerConfig{Name: a.container()}).ReadProof(ctx, false)
	}
	return a.Describe(spec), ok, err
}

func (a *App) Describe(spec helper.BrokerSpec) Up {
	return Up{
		Broker: fmt.Sprintf("http://%s:%d", helper.AppAlias, helper.BrokerPort),
		Token:  spec.Token,
		URL:    spec.App.URL(),
	}
}

// start creates and starts the app's services, volumes and container. It does not wait until the
// app is ready.
func (a *App) start(ctx context.Context, key string, from layers) (_ Up, err error) {
	if err := a.Holder(ctx, a.Place()); err != nil {
		return Up{}, err
	}
	defer func() { err = a.HolderEnded(ctx, a.Place(), err) }()
	spec, err := a.writeBrokerSpec(key)
	if err != nil {
		return Up{}, err
	}
	until := time.Unix(spec.Deadline, 0)
	uncancelled := context.WithoutCancel(ctx)
	a.emit(key, state.Event{Kind: state.AppStart})
	for _, step := range []func() error{
		func() error { // the app's broker waits for its services
			return a.StartServices(uncancelled, boundary.PlaceService, a.Services, key, until)
		},
		func() error { return a.volumes(uncancelled, key, until, from) },
		func() error { return a.fill(uncancelled, key, until, from) },
	} {
		if err := ctx.Err(); err != nil {
			return Up{}, err
		}
		if err := step(); err != nil {
			return Up{}, err
		}
	}
	proof := a.launcher(key, a.containerFor(key, until))
	created := func() error {
		failpoint.Here("app.created")
		return ctx.Err()
	}
	return a.Describe(spec), proof.Launch(ctx, created, func() error { return nil })
}

// Down removes the app of a call with its services and volumes, and cleans its output.
func (a *App) Down(ctx context.Context, key string) error {
	if err := errors.Join(a.NoteEnd(ctx, key), a.remove(ctx)); err != nil {
		return err
	}
	return roles.CleanOutput(a.Safe, a.dir(key), "app.log", "events")
}

// remove removes the app's container, services and volumes.
func (a *App) remove(ctx context.Context) error {
	a.unwatchDisk()
	err := errors.Join(a.Engine.Remove(ctx, a.container()), a.RemoveServices(ctx, boundary.PlaceService, a.Services))
	_, serr := a.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: a.ID, sandbox.LabelKind: "volume",
		sandbox.LabelRole: a.Place()}, nil)
	if err = errors.Join(err, serr); err != nil {
		return fmt.Errorf("cannot remove the app: %w", err)
	}
	failpoint.Here("app.down")
	return nil
}

// watchDisk watches the disks until the app is removed. It ends the app if the app's copy of the
// source or its log outgrows the bounds of a call, or if a disk has too little room. The reason is
// in the app's record and is reported to the user.
func (a *App) watchDisk(ctx context.Context, key string) {
	w := boundary.Writes{Volume: a.volume("scratch"), Files: map[string]int64{
		filepath.Join(a.dir(key), "app.log"): helper.LogMax + maxEvents,
		filepath.Join(a.dir(key), "events"):  maxEvents,
	}}
	if a.Copy != "overlay" { // the volume already contains the source
		w.Before, _ = a.Engine.Usage(ctx, w.Volume)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	a.Watching.Store(a.container(), func() { cancel(); <-done })
	go func() {
		defer close(done)
		why, full := a.Overflow(ctx, w)
		if why == "" {
			return
		}
		file := overFile
		if full {
			file = fullFile
		}
		err := errors.Join(roles.Record{Dir: a.dir(key)}.Write(file, why), a.Engine.Stop(ctx, a.container(), 0))
		text := "the app's container was ended: " + why
		if err != nil && ctx.Err() == nil {
			text = fmt.Sprintf("cannot end the app's container (%s): %v", why, err)
		}
		a.emit(key, state.Event{Kind: state.Note, Text: text})
	}()
}

func (a *App) unwatchDisk() {
	if end, watched := a.Watching.LoadAndDelete(a.container()); watched {
		end.(func())()
	}
}
