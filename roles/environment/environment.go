// Package environment sets up everything in which a project's containers run, from Open to Close:
// the engine, images, the roles' networks, and the gateways of their
// calls. Phases, shells, the learner and builds use it. Its errors have a Class, which package exit
// maps to an exit code.
package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/boundary"
	"abl/roles/call"

	"golang.org/x/sys/unix"
)

// Options configure an environment.
type Options struct {
	Project state.Project // whose records contain the calls
	ID      string        // of the project on the engine
	State   string        // path of the state file with ID, "" if ID is in another file
	Phase   int           // 0 outside of phases
	Conf    *config.Loaded
	Root    string // base of relative paths in the settings
	Owned   string // directory whose owner the containers run as if abl is root; "" is the project's root
	CACert  string // the user's file of authorities, which precedes that of the settings
	Offline bool   // no image is built or pulled that needs a network
	Weak    bool   // unproven networks are allowed
	Safe    *redact.Sanitizer
	Life    time.Duration // after which the networks end without abl, 0 is a day
	// called before each request to the engine: fails if this abl lost the project's lock; may be nil
	CheckLock func() error
	Ready     func() error // called before anything is created under ID; may be nil
	Down      func() error // called after Close has removed everything; may be nil
	// returns the only call of an earlier run that may still be running, "" for none; nil allows any call
	Resumable func() string
	Note      func(string)                       // receives messages for the user
	NoteImage func(string)                       // receives the progress of image builds
	Progress  func(since time.Time, what string) // receives the current activity; may be nil
}

// Environment is an open environment.
type Environment struct {
	Options
	Engine     Engine
	Info       sandbox.Info
	Images     *images.Maker
	Containers *boundary.Containers
	UID, GID   int  // user of the containers
	Chown      bool // the workspaces must change their owner to that user

	forwards map[string]*forwarder // to model servers and proxies on this machine's loopback, by target
	heard    atomic.Bool           // a provider has responded to a call
}

// Open connects to the engine and removes what an earlier run left, except a
// call that still runs. If Open fails, it removes what it has created.
func Open(ctx context.Context, o Options) (*Environment, error) {
	if o.Owned == "" {
		o.Owned = o.Project.Root
	}
	e := &Environment{Options: o, forwards: map[string]*forwarder{}}
	e.UID, e.GID, e.Chown = hostfs.RoleID(o.Owned, os.Geteuid())
	for _, do := range []func(context.Context) error{e.connect, e.setUp, e.seesFiles, e.sweepLeft} {
		err := do(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && e.Engine == nil {
			return nil, err
		}
		if err != nil {
			left, cerr := e.Close(ctx, err)
			if left != "" && cerr == nil {
				e.Note(RunningNote(left))
			}
			return nil, errors.Join(err, cerr)
		}
	}
	return e, nil
}

// connect connects to the engine. Requests to it fail when the lock of the project is lost, and are
// repeated while the engine does not respond.
func (e *Environment) connect(ctx context.Context) (err error) {
	if e.Engine, e.Info, err = Connect(ctx); err != nil {
		return err
	}
	if e.CheckLock != nil {
		e.Engine.Guard(e.CheckLock)
	}
	UseKiller(e.Engine, e.Note)
	bePatient(ctx, e.Engine, time.Duration(e.Conf.Loop.OutageBudget), e.Note)
	failpoint.Here("stage.reached")
	return nil
}

// setUp builds the holder's image and describes the project's containers.
func (e *Environment) setUp(ctx context.Context) error {
	proxy, err := ProxyOf(e.Conf, os.Getenv)
	if err != nil {
		return err
	}
	e.Images = Maker(e.Engine, e.NoteImage, e.trusted().Extra, e.Offline)
	e.Images.Env = proxy.vars(os.Getenv)
	e.Images.Progress, e.Images.Keep = e.Progress, e.keepOutput
	e.Images.Used = e.noteUse
	e.Images.Host = e.Conf.Network.Builds == config.BuildsHost
	holder, err := e.Images.Holder(ctx)
	if err != nil {
		return err
	}
	e.Containers = &boundary.Containers{
		Engine: e.Engine,
		ID:     e.ID,
		State:  pathLabel(e.State),
		Dir:    pathLabel(e.Owned),
		Phase:  e.Phase,
		UID:    e.UID,
		GID:    e.GID,
		Root:   os.Geteuid() == 0,
		Limits: e.limits(),
		Helper: holder,
		Pool:   e.Conf.Network.Pool,
		Egress: e.Conf.Network.Egress,
		Gated:  map[string]bool{},
		Weak:   e.Weak,
		Inodes: e.Info.Local,
		Life:   e.Life,
		Safe:   e.Safe,
	}
	l := e.Conf.Limits
	e.Containers.Spaces = roles.Spaces{Tmp: int64(l.Tmp), Home: int64(l.Home), Shm: int64(l.Shm), Prepare: int64(l.Prepare)}
	e.Containers.Disk, e.Containers.Output = e.quota(e.Project), int64(e.Conf.Limits.Output)
	if app := e.Conf.App; app != nil {
		e.Containers.Port, e.Containers.Services = AppPort(e.Conf), len(app.Services) > 0
	}
	if e.Ready == nil {
		return nil
	}
	return e.Ready()
}

// seesFiles checks that the engine sees the project's files.
func (e *Environment) seesFiles(ctx context.Context) error {
	dir := filepath.Dir(e.Project.State())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if e.Info.Local && !e.Info.Contained {
		return nil
	}
	return sees(ctx, e.Containers, dir)
}

// sweepLeft removes what an earlier run left, except a call that still runs.
func (e *Environment) sweepLeft(ctx context.Context) error {
	for _, dir := range []string{filepath.Dir(e.Project.State()), e.Project.Specs(), e.Project.Tests} {
		if err := hostfs.SweepTemps(dir); err != nil {
			return err
		}
	}
	if err := cmp.Or(hostfs.SweepTempsBelow(e.Project.Logs()), hostfs.SweepTempsBelow(e.Project.Reports())); err != nil {
		return err
	}
	live, err := e.Live(ctx)
	if err == nil {
		err = e.sweep(ctx, live)
	}
	if err == nil {
		err = e.sweepEarlier(ctx)
	}
	failpoint.Here("stage.swept")
	return err
}

// sweepEarlier removes what earlier projects of this directory left, and notes it.
func (e *Environment) sweepEarlier(ctx context.Context) error {
	removed, err := SweepEarlier(ctx, e.Engine, e.State, e.ID)
	if len(removed) > 0 {
		e.Note("removed objects of an earlier project in this directory from the engine: " + strings.Join(removed, ", "))
	}
	return err
}

// labels selects everything of the project on the engine.
func (e *Environment) labels() map[string]string {
	return map[string]string{sandbox.LabelProject: e.ID}
}

// sweep removes everything of the project from the engine, except the live call and the holders
// that it needs.
func (e *Environment) sweep(ctx context.Context, live string) error {
	_, err := e.Engine.Sweep(ctx, e.labels(), func(container sandbox.Status) bool {
		return live != "" && (container.Labels[sandbox.LabelCall] == live || container.Labels[sandbox.LabelKind] == "holder")
	})
	return err
}

// Live returns the call whose container exists and whose outcome is not on disk, or "".
func (e *Environment) Live(ctx context.Context) (string, error) {
	only := ""
	if e.Resumable != nil {
		if only = e.Resumable(); only == "" {
			return "", nil
		}
	}
	containers, err := e.Engine.List(ctx, e.labels())
	if err != nil {
		return "", err
	}
	for _, container := range containers {
		key := container.Labels[sandbox.LabelCall]
		if container.Labels[sandbox.LabelKind] != "role" || only != "" && key != only {
			continue
		}
		_, ended, err := (roles.Record{Dir: e.Project.Call(key)}).Outcome()
		if _, damaged := errors.AsType[*roles.Damaged](err); damaged {
			err = nil // the outcome is read again from the container
		}
		if err != nil || !ended {
			return key, err
		}
	}
	return "", nil
}

// Close removes everything of the project from the engine. If why is not nil and a call still runs, Close
// leaves that call and returns its key: it is paid for, and the next run attaches to it. If ctx has ended,
// Close stops the call instead. If another abl works on the project by now, Close removes nothing.
func (e *Environment) Close(ctx context.Context, why error) (left string, err error) {
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	locked := e.CheckLock == nil || e.CheckLock() == nil
	if locked {
		if why != nil {
			left, err = e.leave(ctx, stopping)
		}
		if err == nil {
			err = e.sweep(ctx, left)
		}
	}
	err = errors.Join(err, e.Engine.Close())
	for _, one := range e.forwards {
		err = errors.Join(err, one.Close())
	}
	if err == nil && locked && left == "" && e.Down != nil {
		failpoint.Here("closing.swept")
		err = e.Down()
		failpoint.Here("closing.done")
	}
	if err != nil {
		err = fmt.Errorf("cannot remove all containers (the next run or abl clean removes them): %w", err)
		e.Note(err.Error())
	}
	return left, err
}

// RunningNote returns the note that a call is still running.
func RunningNote(call string) string {
	return "call " + call + " is still running: the next run attaches to it, abl clean ends it"
}

// leave returns the call that keeps running. If stopping is true, it records the stop instead.
func (e *Environment) leave(ctx context.Context, stopping bool) (string, error) {
	live, err := e.Live(ctx)
	if live == "" || err != nil || !stopping {
		return live, err
	}
	return "", roles.Record{Dir: e.Project.Call(live)}.Stop(roles.Stopped{Class: outcome.Interrupted})
}

// limits returns the resource limits of containers that run agents, apps and tests.
func (e *Environment) limits() sandbox.Limits {
	const files = 4096
	l := e.Conf.Limits
	return sandbox.Limits{
		Memory:   int64(l.Memory),
		CPUs:     l.CPUs,
		Pids:     l.Pids,
		FileSize: max(int64(l.Output), int64(l.Disk)),
		OpenFile: files,
	}
}

// quota returns the disk quota of a project's containers.
func (e *Environment) quota(p state.Project) roles.DiskQuota {
	disks := []string{p.Src, p.Tests, p.Calls()}
	if e.Info.Local && e.Info.DataDir != "" {
		disks = append(disks, e.Info.DataDir)
	}
	return roles.DiskQuota{Bytes: int64(e.Conf.Limits.Disk), Inodes: e.Conf.Limits.Inodes, Disks: disks}
}

// Runner returns a Runner for the calls of a project. Its workspace may differ from that of the
// environment.
func (e *Environment) Runner(p state.Project, out state.Sink) *call.Runner {
	return &call.Runner{
		Containers: e.Containers,
		Project:    p,
		Owner:      ownerOf(p.Root),
		Out:        out,
		Output:     int64(e.Conf.Limits.Output),
		Timeout:    time.Duration(e.Conf.Loop.CallTimeout),
		Idle:       time.Duration(e.Conf.Loop.IdleTimeout),
		Quota:      e.quota(p),
	}
}

// ownerOf returns the uid and gid of a directory's owner.
func ownerOf(dir string) [2]int {
	var fi unix.Stat_t
	if err := unix.Stat(dir, &fi); err != nil {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	return [2]int{int(fi.Uid), int(fi.Gid)}
}
