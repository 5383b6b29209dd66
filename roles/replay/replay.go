// Package replay runs the tests that a Verifier saved again, and keeps the results. It reads them and
// the records of calls for the audit record.
package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/witness"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/boundary"
)

// Runner runs the tests that a Verifier saved again: without an agent, a key and network access,
// in a separate container, from the commit and not from the workspace.
type Runner struct {
	App   *app.App
	Image string                                                          // the Verifier's
	Tests func(ctx context.Context, w io.Writer, commit, as string) error // writes the tree of a commit of the tests, as a tar

	begun sync.Once
}

// Against is what the tests are replayed against.
type Against string

// The values of Against.
const (
	TheApp  Against = "app"
	NoApp   Against = "no app" // connections are refused
	Empty   Against = "empty"  // every request gets 200 and no body
	Trouble Against = "500"    // every request gets 500
)

// Job is one run of the saved tests.
type Job struct {
	Key     string // "<call>/replay-<name>": the folder of its record below the calls
	Commit  string // of the tests
	Source  string // commit that the app is started from, "" for the last one
	Against Against
	Limit   time.Duration
	Cut     <-chan struct{} // closed if it must end before its limit; may be nil
	Cmds    helper.CmdSpec  // for abl-cmd, without the broker's address

	Altering *witness.Altering // which responses of the app are altered, nil for no alteration
	Beside   int               // number of this one among simultaneous replays, from 0 to AtOnce-1

	role, called string // label and name of its containers
}

// app returns the app of a replay. Events of an app with altered responses are discarded.
func (r *Runner) app(p Job) *app.App {
	a := r.App.Beside(p.Beside)
	if p.Altering != nil {
		quiet := *a
		quiet.Out, a = state.Discard, &quiet
	}
	return a
}

// AtOnce returns how many replays against an app can run at the same time. Services have fixed
// names, so an app with services allows only one.
func (r *Runner) AtOnce() int {
	if r.App.Port == 0 || r.App.Services != nil {
		return 1
	}
	return 4
}

// Result is the result of a replay.
type Result struct {
	Output    []byte        `json:"-"` // of run.sh, at most maxReplay+1 bytes
	Exit      int           `json:"exit"`
	Late      bool          `json:"late,omitempty"`       // stopped at its time limit
	Gone      string        `json:"gone,omitempty"`       // why the replay proves nothing
	Fault     bool          `json:"-"`                    // something other than abl ended a container, so the replay can be repeated
	AppFailed string        `json:"app_failed,omitempty"` // the app did not start, so no test ran
	Ends      app.AppEnds   `json:"-"`                    // how the app ended; its record has the details
	Took      time.Duration `json:"took_ns"`

	Watched bool               `json:"watched,omitempty"` // a witness recorded the exchanges with the app
	Record  []witness.Exchange `json:"-"`                 // these exchanges
}

// maxReplay is the number of bytes of the output of run.sh that abl reads.
const maxReplay = 4 << 20

// Run runs one replay and replaces an earlier record of it. While the replay runs, its record has a
// random name, because tests can see the paths of their files.
func (r *Runner) Run(ctx context.Context, p Job) (out Result, err error) {
	kept := r.App.Project.Call(p.Key)
	p.role, p.called = strings.ReplaceAll(path.Base(p.Key), " ", "-"), rand.Text()
	p.Key = path.Join(path.Dir(p.Key), underWay+p.called)
	r.begun.Do(func() { err = sweepReplays(filepath.Dir(kept)) })
	if err != nil {
		return out, err
	}
	defer func() {
		tidy, cancel := boundary.CleanupContext(ctx)
		defer cancel()
		err = errors.Join(err, r.clear(tidy, p), os.RemoveAll(kept), os.Rename(r.App.Project.Call(p.Key), kept))
	}()
	if err := errors.Join(os.MkdirAll(r.App.Project.Call(p.Key), 0o755), r.clear(ctx, p)); err != nil {
		return out, err
	}
	at := time.Now().UTC()
	if out, err = r.once(ctx, p); errors.Is(err, sandbox.ErrKilled) {
		out, err = Result{Gone: err.Error(), Fault: true, Took: time.Since(at)}, r.clear(ctx, p)
		err = errors.Join(err,
			roles.CleanOutput(r.App.Safe, r.App.Project.Call(p.Key), "stdout", "stderr"),
			roles.CleanOutput(r.App.Safe, filepath.Dir(r.seen(p)), "record"))
	}
	if err != nil {
		return out, err
	}
	return out, r.saveReplay(p, at, out)
}

// once starts the app and its network and runs the tests. It returns a sandbox.ErrKilled if something
// other than abl ended one of the containers, because then the tests' output proves nothing.
func (r *Runner) once(ctx context.Context, p Job) (out Result, err error) {
	up, err := r.startTarget(ctx, p)
	if err != nil || up.Failed != "" {
		return Result{AppFailed: up.Why()}, err
	}
	failpoint.Here("replay.ready")
	p.Cmds.URL, p.Cmds.Token = up.Broker, up.Token
	if out, err = r.runTests(ctx, p, up.URL); err != nil || p.Against != TheApp {
		return out, err
	}
	why, err := r.app(p).EndedBy(ctx, p.Key, true)
	if err != nil {
		return out, err
	}
	if why != "" {
		return out, fmt.Errorf("%w: %s", sandbox.ErrKilled, why)
	}
	if err := r.app(p).NoteEnd(ctx, p.Key); err != nil {
		return out, err
	}
	out.Ends, err = app.EndsOf(r.App.Project, p.Key)
	return out, err
}

// startTarget starts what the tests run against, and the holder of their network. A null app
// reports success for every command, because otherwise the tests would fail for another reason.
func (r *Runner) startTarget(ctx context.Context, p Job) (up app.Up, err error) {
	a := r.app(p)
	up = a.Describe(helper.BrokerSpec{App: a.Spec.App, Token: rand.Text()})
	if p.Against == TheApp {
		if up, err = a.Up(ctx, p.Key, p.Source); err != nil || up.Failed != "" {
			return up, err
		}
	}
	if a.Port == 0 && p.Against == TheApp {
		return up, a.Holder(ctx, boundary.PlaceVerifier)
	}
	container := a.Tool("holder-"+p.called, a.Labels("witness", p.role, p.Key, time.Now().Add(p.Limit+time.Minute)))
	container.Reach = sandbox.Reach{Self: []string{helper.AppAlias}}
	// A witness writes its record as this user. All targets use the same user.
	container.User = fmt.Sprintf("%d:%d", a.UID, a.GID)
	app, broker := boundary.LocalAddr(a.Port), boundary.LocalAddr(helper.BrokerPort)
	args := []string{"--commands", broker, "--sockets", helper.Sockets}
	switch {
	case p.Against == TheApp:
		return up, r.watch(ctx, p, container)
	case p.Against == NoApp: // nothing listens
	case a.IsProgram():
		args = append(args, "--ran", nullResponses[helper.KindCommand][p.Against])
	default:
		args = append(args, "--null", app+"="+nullResponses[a.Spec.App.Kind][p.Against])
	}
	container.Tmpfs = []sandbox.Tmpfs{{Target: helper.Sockets, Size: 1 << 20, Mode: "0700", Owned: true}}
	return up, a.StartNamespace(ctx, container, args...)
}

// nullResponses are the responses of null apps by the app's kind: a status, a line, or the result
// of a run.
var nullResponses = map[string]map[Against]string{
	"":                 {Empty: "200", Trouble: "500"},
	helper.KindTCP:     {Empty: "line:", Trouble: "line:error\n"},
	helper.KindCommand: {Empty: `{"exit":0}`, Trouble: `{"exit":1,"stderr":"ZXJyb3IK"}`},
}

// watch starts the witness, which holds the tests' network and is their only route to the app.
func (r *Runner) watch(ctx context.Context, p Job, container sandbox.ContainerConfig) error {
	a, rec := r.app(p), roles.Record{Dir: filepath.Join(r.App.Project.Call(p.Key), "witness")}
	asJSON := map[string]any{}
	args := []string{
		"--watch", boundary.LocalAddr(a.Port) + "=" + boundary.AppSocket,
		"--pass", boundary.LocalAddr(helper.BrokerPort) + "=" + boundary.BrokerSocket,
	}
	switch {
	case a.IsProgram():
		args = []string{"--watch", boundary.LocalAddr(a.Port) + "=" + boundary.BrokerSocket}
	case a.Spec.App.Kind == helper.KindTCP:
		args = append(args, "--bytes")
	}
	if p.Altering != nil {
		asJSON["altering.json"] = p.Altering
		args = append(args, "--altering", path.Join(helper.In, "altering.json"))
	}
	if err := errors.Join(boundary.WriteInput(rec, nil, asJSON), a.CreateFiles(r.seen(p))); err != nil {
		return fmt.Errorf("cannot prepare a witness: %w", err)
	}
	container.Mounts = []sandbox.Mount{
		a.SocketVolume(a.Place()),
		{What: sandbox.CallIn, Source: rec.In(), Target: helper.In, ReadOnly: true},
		{What: sandbox.CallOut, Source: r.seen(p), Target: helper.Record},
	}
	if err := roles.CheckSources(a.Project, container.Mounts); err != nil {
		return err
	}
	return a.StartNamespace(ctx, container, args...)
}

// seen returns the file in which the witness of a replay records exchanges.
func (r *Runner) seen(p Job) string {
	return filepath.Join(r.App.Project.Call(p.Key), "witness", "record")
}

// witnessed stops the witness and reads its record.
func (r *Runner) witnessed(ctx context.Context, p Job, out *Result) error {
	a := r.app(p)
	if err := a.Engine.Stop(ctx, a.HolderName(p.called), time.Second); err != nil {
		return err
	}
	f, err := hostfs.Open(filepath.Dir(r.seen(p)), filepath.Base(r.seen(p)))
	if err != nil {
		return err
	}
	defer f.Close()
	if out.Record, err = witness.ReadRecord(f); err != nil {
		return err
	}
	if a.IsProgram() { // other requests to the broker are not runs of the program
		out.Record = slices.DeleteFunc(out.Record, func(x witness.Exchange) bool { return x.Target != witness.RunTarget })
	}
	for i := range out.Record {
		x := &out.Record[i]
		x.Target, x.Sent.Begins, x.Got.Begins = a.Safe.Redact(x.Target), a.Safe.Bytes(x.Sent.Begins), a.Safe.Bytes(x.Got.Begins)
		for _, values := range x.Header {
			for k := range values {
				values[k] = a.Safe.Redact(values[k])
			}
		}
	}
	out.Watched = true
	return roles.CleanOutput(a.Safe, filepath.Dir(r.seen(p)), filepath.Base(r.seen(p)))
}

// runTests runs run.sh to its end. The tests are in a volume, so that each replay begins with the
// files of the commit.
func (r *Runner) runTests(ctx context.Context, p Job, url string) (out Result, err error) {
	a, place, open := r.app(p), p.called, r.App.Port == 0 && p.Against == TheApp
	reach := boundary.Join(a.HolderName(place), sandbox.Reach{Self: []string{helper.AppAlias}})
	if open {
		place, reach = boundary.PlaceVerifier, a.JoinPlace(boundary.PlaceVerifier)
	}
	defer func() { err = a.HolderEnded(ctx, place, err) }()
	container := a.Worker(p.called, r.Image, place, a.Labels("replay", p.role, p.Key, time.Now().Add(p.Limit+time.Minute)))
	container.Tmpfs, container.Reach = a.Spaces.Tmpfs(roles.Verifier), reach
	if url != "" {
		container.Env = append(container.Env, "ABL_APP_URL="+url)
	}
	if a.IsProgram() {
		container.Env = append(container.Env, "ABL_EXCHANGE="+helper.Exchange)
	}
	dir := a.Project.Call(p.Key)
	uncancelled := context.WithoutCancel(ctx)
	one := &boundary.Batch{
		Launcher: boundary.Launcher{
			Containers: a.Containers,
			Project:    a.Project,
			Dir:        dir,
			Config:     container,
			Rule:       boundary.ReplayRule(a.Project, a.ID, dir, p.called, place, !open),
			Secrets:    a.Safe,
		},
		Run:   helper.RunSpec{Argv: []string{path.Join(helper.Tests, "run.sh")}, Dir: helper.Tests},
		Limit: p.Limit,
		Grace: time.Second,
		JSON:  map[string]any{"commands.json": p.Cmds},
		Tree:  func(w io.Writer, as string) error { return r.Tests(uncancelled, w, p.Commit, as) },
	}
	begun, err := one.Start(ctx)
	if err != nil {
		return out, err
	}
	exit, late, err := one.Await(ctx, p.Cut)
	if err != nil {
		return out, err
	}
	out.Exit, out.Late, out.Took = exit.Code, late, time.Since(begun)
	why, err := ended(ctx, one, exit, &out)
	if err == nil && a.Gone(ctx, a.HolderName(place)) { // from then on the tests could not reach the app
		why = a.HolderName(place) + ", which connects the tests to the app, ended before them: it was killed, or the tests " +
			"opened too many connections at a time"
	}
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", sandbox.ErrKilled, why)
	}
	if err == nil {
		err = r.read(ctx, one, &out)
	}
	if err != nil || open || p.Against != TheApp {
		return out, err
	}
	return out, r.witnessed(ctx, p, &out)
}

// ended returns how something other than abl or run.sh ended the tests, "" if nothing did. It sets
// out.Gone if run.sh could not be started. A killed run.sh counts as ended by the machine: the
// kernel kills processes if memory is short.
func ended(ctx context.Context, one *boundary.Batch, exit sandbox.Exit, out *Result) (why string, err error) {
	switch {
	case out.Late:
		return "", nil
	case one.Full:
		return one.Over, nil
	case one.Over != "":
		out.Gone = "abl ended run.sh: " + one.Over
		return "", nil
	}
	if why, err = one.EndedFromOutside(ctx, one.Config.Name, true); err != nil || why != "" {
		return why, err
	}
	end, _, err := one.RunEnd(ctx, one.Config.Name)
	switch {
	case exit.OOMKilled:
		why = "the tests ran out of memory (limits.memory)"
	case exit.Code == boundary.KilledCode:
		why = fmt.Sprintf("run.sh was killed (exit code %d)", exit.Code)
	case end.Error != "":
		out.Gone = "run.sh could not be started: " + end.Error
	}
	return why, err
}

// read removes the container, then cleans and reads the output.
func (r *Runner) read(ctx context.Context, one *boundary.Batch, out *Result) error {
	if err := one.Engine.Remove(ctx, one.Config.Name); err != nil {
		return err
	}
	if err := roles.CleanOutput(one.Safe, one.Dir, "stdout", "stderr"); err != nil {
		return err
	}
	f, err := hostfs.Open(one.Dir, "stdout")
	if err != nil {
		return err
	}
	defer f.Close()
	out.Output, err = io.ReadAll(io.LimitReader(f, maxReplay+1))
	return err
}

// clear removes everything that a replay has started, or that a killed abl left of it.
func (r *Runner) clear(ctx context.Context, p Job) error {
	a := r.app(p)
	_, err := a.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: a.ID, sandbox.LabelRole: p.role}, nil)
	if p.Against == TheApp {
		err = errors.Join(err, a.Down(ctx, p.Key))
	}
	return err
}
