// Package environment is where the containers of a project run, from Open to Close:
// the engine and the proof of its networks, images, the networks of the roles, and
// the gateways beside their calls. Phases, shells, the learner and builds stand in
// one. It knows no phase, no command line and no exit code: its errors carry a Class.
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
	"abl/internal/gateway/sidecar"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"

	"golang.org/x/sys/unix"
)

// Options say for whom an environment is.
type Options struct {
	Project   state.Project // whose records keep the calls
	ID        string        // of the project on the engine
	State     string        // path of the state file that has ID, "" where another file has it
	Phase     int           // 0 outside phases
	Conf      *config.Loaded
	Root      string     // that paths in the settings start from
	Owned     string     // the directory that abl works in, whose owner the containers run as if abl is root; "" is the project's root
	CACert    string     // that the person names beside the settings' own
	Offline   bool       // no image is made that needs a network
	Weak      bool       // networks that are not proven will do
	Net       *roles.Net // what is known of the networks; nil to prove them
	Cut       bool       // nothing here gets a network, so none is proven
	Safe      *redact.Sanitizer
	Life      time.Duration                      // after which the networks end by themselves, 0 is a day
	Alone     func() error                       // asked before every request: whether this abl still holds the project; nil for always
	Ready     func() error                       // asked before anything is made under the ID; may be nil
	Down      func() error                       // told when all is taken down and nothing can write any more; may be nil
	AtRest    func() string                      // the one call that may go on from an earlier run, "" for none; nil for any
	Note      func(string)                       // hears what a person should know
	NoteImage func(string)                       // hears how making images goes on
	Progress  func(since time.Time, what string) // is told what goes on this moment; nil for nobody
}

// Environment is an open one.
type Environment struct {
	Options
	Engine   Engine
	Info     sandbox.Info
	Images   *images.Maker
	Boxes    *roles.Boxes
	UID, GID int  // whom containers run as
	Lend     bool // the workspaces have to be lent to them

	forwards map[string]*sidecar.Forwarder // to model servers and proxies on this machine's loopback, by target
	heard    atomic.Bool                   // a provider has answered a call here
}

// Open reaches the engine, proves its networks, and sweeps what an earlier run left
// but for a call that goes on. What it has made is taken down when it fails.
func Open(ctx context.Context, o Options) (*Environment, error) {
	if o.Owned == "" {
		o.Owned = o.Project.Root
	}
	e := &Environment{Options: o, forwards: map[string]*sidecar.Forwarder{}}
	e.UID, e.GID, e.Lend = hostfs.RoleID(o.Owned, os.Geteuid())
	for _, do := range []func(context.Context) error{e.reach, e.stand, e.seesFiles, e.sweepLeft} {
		err := cmp.Or(do(ctx), ctx.Err())
		if err != nil && e.Engine == nil {
			return nil, err
		}
		if err != nil {
			left, cerr := e.Close(ctx, err)
			if left != "" && cerr == nil {
				e.Note(Left(left))
			}
			return nil, errors.Join(err, cerr)
		}
	}
	return e, nil
}

func (e *Environment) reach(ctx context.Context) (err error) {
	if e.Engine, e.Info, err = Connect(ctx); err != nil {
		return err
	}
	if e.Alone != nil {
		e.Engine.Guard(e.Alone)
	}
	UseKiller(e.Engine, e.Note)
	bePatient(ctx, e.Engine, time.Duration(e.Conf.Loop.OutageBudget), e.Note)
	if e.Cut {
		e.Net = &roles.Net{Away: !e.Info.Near, Other: !e.Info.Local}
	}
	if e.Net == nil {
		_, net, err := e.Networks(ctx, e.Engine, e.Info, false)
		if err != nil {
			return err
		}
		e.Net = &net
	}
	if e.Net.Weak != "" {
		e.Note("weak network, as --allow-weak-network allows: " + e.Net.Weak)
	}
	failpoint.Here("stage.reached")
	return nil
}

// stand makes the image that all else needs, and the place for networks.
func (e *Environment) stand(ctx context.Context) error {
	proxy, err := ProxyOf(e.Conf, os.Getenv)
	if err != nil {
		return err
	}
	e.Images = Maker(e.Engine, e.NoteImage, e.trusted().Extra, e.Offline)
	e.Images.Env = proxy.vars(os.Getenv)
	e.Images.Progress, e.Images.Keep = e.Progress, e.keepOutput
	e.Images.Host = e.Conf.Network.Builds == config.BuildsHost
	holder, err := e.Images.Holder(ctx)
	if err != nil {
		return err
	}
	e.Boxes = &roles.Boxes{
		Engine: e.Engine, ID: e.ID, State: pathLabel(e.State), Dir: pathLabel(e.Owned), Phase: e.Phase, UID: e.UID, GID: e.GID, Root: os.Geteuid() == 0, Limits: e.limits(), Helper: holder,
		Pool: e.Conf.Network.Pool, Egress: e.Conf.Network.Egress, Gated: map[string]bool{}, Net: *e.Net, Life: e.Life, Safe: e.Safe,
	}
	l := e.Conf.Limits
	e.Boxes.Spaces = roles.Spaces{Tmp: int64(l.Tmp), Home: int64(l.Home), Shm: int64(l.Shm), Prepare: int64(l.Prepare)}
	e.Boxes.Disk, e.Boxes.Output = e.quota(e.Project), int64(e.Conf.Limits.Output)
	if app := e.Conf.App; app != nil {
		e.Boxes.Port, e.Boxes.Services = AppPort(e.Conf), len(app.Services) > 0
	}
	if e.Ready == nil {
		return nil
	}
	return e.Ready()
}

// seesFiles makes sure that the engine sees the project's files.
func (e *Environment) seesFiles(ctx context.Context) error {
	dir := filepath.Dir(e.Project.State())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if e.Info.Local && !e.Info.Contained {
		return nil
	}
	return sees(ctx, e.Boxes, dir)
}

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
		e.Note("removed what an earlier project of this directory left on the engine: " + strings.Join(removed, ", "))
	}
	return err
}

// labels are on all that is the project's.
func (e *Environment) labels() map[string]string {
	return map[string]string{sandbox.LabelProject: e.ID}
}

// sweep takes all of the project's off the engine but the live call and what it
// stands on.
func (e *Environment) sweep(ctx context.Context, live string) error {
	_, err := e.Engine.Sweep(ctx, e.labels(), func(box sandbox.Status) bool {
		return live != "" && (box.Labels[sandbox.LabelCall] == live || box.Labels[sandbox.LabelKind] == "holder")
	})
	return err
}

// Live is the call whose box is on the engine and whose end is not on disk, else "".
func (e *Environment) Live(ctx context.Context) (string, error) {
	rests := ""
	if e.AtRest != nil {
		if rests = e.AtRest(); rests == "" {
			return "", nil
		}
	}
	boxes, err := e.Engine.List(ctx, e.labels())
	if err != nil {
		return "", err
	}
	for _, box := range boxes {
		key := box.Labels[sandbox.LabelCall]
		if box.Labels[sandbox.LabelKind] != "role" || rests != "" && key != rests {
			continue
		}
		_, ended, err := (roles.Record{Dir: e.Project.Call(key)}).Outcome()
		if _, damaged := errors.AsType[*roles.Damaged](err); damaged {
			err = nil // its end is read again from the box
		}
		if err != nil || !ended {
			return key, err
		}
	}
	return "", nil
}

// Close takes everything down. A call that runs while something else went wrong, which
// why says, has been paid for: it is left as it is for the next run to attach to, and
// returned, unless ctx has ended. Where another abl holds the project by now, nothing
// is touched.
func (e *Environment) Close(ctx context.Context, why error) (left string, err error) {
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	alone := e.Alone == nil || e.Alone() == nil
	if alone {
		if why != nil {
			left, err = e.goesOn(ctx, stopping)
		}
		if err == nil {
			err = e.sweep(ctx, left)
		}
	}
	err = errors.Join(err, e.Engine.Close())
	for _, one := range e.forwards {
		err = errors.Join(err, one.Close())
	}
	if err == nil && alone && left == "" && e.Down != nil {
		failpoint.Here("strike.swept")
		err = e.Down()
		failpoint.Here("strike.done")
	}
	if err != nil {
		err = fmt.Errorf("cannot tidy up (the next run, or abl clean, will): %w", err)
		e.Note(err.Error())
	}
	return left, err
}

// Left says of a call that it goes on.
func Left(call string) string {
	return "call " + call + " is left as it is: the next run attaches to it, abl clean ends it"
}

// goesOn is the call that is left as it is.
func (e *Environment) goesOn(ctx context.Context, stopping bool) (string, error) {
	live, err := e.Live(ctx)
	if live == "" || err != nil || !stopping {
		return live, err
	}
	return "", roles.Record{Dir: e.Project.Call(live)}.Stop(outcome.Interrupted)
}

// limits are those of the boxes that what a model wrote runs in.
func (e *Environment) limits() sandbox.Limits {
	const files = 4096
	l := e.Conf.Limits
	return sandbox.Limits{Memory: int64(l.Memory), CPUs: l.CPUs, Pids: l.Pids, FileSize: max(int64(l.Output), int64(l.Disk)), OpenFile: files}
}

// quota bounds what the containers of a project write.
func (e *Environment) quota(p state.Project) roles.DiskQuota {
	disks := []string{p.Src, p.Tests, p.Calls()}
	if e.Info.Local && e.Info.DataDir != "" {
		disks = append(disks, e.Info.DataDir)
	}
	return roles.DiskQuota{Bytes: int64(e.Conf.Limits.Disk), Inodes: e.Conf.Limits.Inodes, Disks: disks}
}

// Runner makes the calls of a project whose workspace may be another than the
// environment's.
func (e *Environment) Runner(p state.Project, out state.Sink) *roles.Runner {
	return &roles.Runner{
		Boxes: e.Boxes, Project: p, Person: ownerOf(p.Root), Out: out,
		Output: int64(e.Conf.Limits.Output), Timeout: time.Duration(e.Conf.Loop.CallTimeout), Idle: time.Duration(e.Conf.Loop.IdleTimeout),
		Quota: e.quota(p),
	}
}

// ownerOf is whose a directory is.
func ownerOf(dir string) [2]int {
	var fi unix.Stat_t
	if err := unix.Stat(dir, &fi); err != nil {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	return [2]int{int(fi.Uid), int(fi.Gid)}
}
