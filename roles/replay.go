package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/internal/witness"
)

// Replayer runs the tests that a Verifier saved once more, without the Verifier:
// no agent, no key and no way out, in a box of its own, from the commit and not
// from the directory.
type Replayer struct {
	App   *App
	Image string                                                          // the Verifier's
	Tests func(ctx context.Context, w io.Writer, commit, as string) error // the tree of a commit of the tests, as a tar

	mu     sync.Mutex
	tries  int  // that are under way against what stands in for the app
	stands bool // it runs
}

// Against is what stands where the app should be.
type Against string

// What tests can be replayed against.
const (
	TheApp  Against = "app"
	NoApp   Against = "no app" // connections are refused
	Empty   Against = "empty"  // everything is answered with 200 and no body
	Trouble Against = "500"    // everything is answered with 500

	TestLines Against = "test lines" // everything is answered with 200 and witness.Planted
)

// ports are where something stands in the app's place, in the app's own network
// namespace and beside it: so the tries go on at the same time as the replay
// against the app does, and at the same time as one another.
var ports = map[Against]int{TheApp: 1, NoApp: 3, Empty: 5, Trouble: 7, TestLines: 9}

// commandsPort is where all tries find the declared commands.
const commandsPort = 2

// Replay is one run of the saved tests.
type Replay struct {
	Key     string // "<call>/replay-<name>": the folder of its record below the calls
	Commit  string // of the tests
	Against Against
	Limit   time.Duration
	Cut     <-chan struct{} // closed when its time is up before that, nil for never
	Cmds    helper.CmdSpec  // what abl-cmd offers; the broker's address is added

	Altering *witness.Altering // which answers of the app are altered, nil for none
}

// called is a name of what a replay puts on the engine. One of a kind is made at a time.
func (p Replay) called(what string) string { return what + "-" + p.slug() }

func (p Replay) slug() string { return strings.ReplaceAll(string(p.Against), " ", "-") }

// Replayed is what came of it.
type Replayed struct {
	Output    []byte        `json:"-"` // of run.sh, at most maxReplay+1 bytes
	Exit      int           `json:"exit"`
	Late      bool          `json:"late,omitempty"`       // stopped at its time limit
	Gone      string        `json:"gone,omitempty"`       // why nothing could be run
	AppFailed string        `json:"app_failed,omitempty"` // the app did not start: nothing was run
	Ends      AppEnds       `json:"-"`                    // of the app that was to go on; its record keeps them
	Took      time.Duration `json:"took_ns"`

	Watched bool               `json:"watched,omitempty"` // a witness stood at the app's door
	Record  []witness.Exchange `json:"-"`                 // what it saw
}

// maxReplay bounds the output of run.sh that is read, in bytes.
const maxReplay = 4 << 20

// Run makes one replay. A repetition makes it anew: it costs time and no tokens.
func (r *Replayer) Run(ctx context.Context, p Replay) (out Replayed, err error) {
	defer func() {
		tidy, cancel := tidying(ctx)
		defer cancel()
		err = errors.Join(err, r.clear(tidy, p, -1))
	}()
	if err := r.clear(ctx, p, +1); err != nil {
		return out, err
	}
	at := time.Now().UTC()
	up, err := r.stand(ctx, p)
	if err != nil {
		return out, err
	}
	if out.AppFailed = up.Failed; up.Failed == "" {
		failpoint.Here("replay.standing")
		p.Cmds.URL, p.Cmds.Token = up.Broker, up.Token
		if out, err = r.play(ctx, p, up.URL); err != nil {
			return out, err
		}
	}
	if p.Against == TheApp && up.Failed == "" {
		if err := r.App.noteEnd(ctx, p.Key); err != nil {
			return out, err
		}
		if out.Ends, err = EndsOf(r.App.Project, p.Key); err != nil {
			return out, err
		}
	}
	return out, r.keep(p, at, out)
}

// stand puts up what the tests are run against. What answers in the app's place says of
// every command that it was done, or the tests would fail for the wrong reason.
func (r *Replayer) stand(ctx context.Context, p Replay) (up Up, err error) {
	if p.Against == TheApp {
		return r.App.Up(ctx, p.Key)
	}
	a, app := r.App, 0
	if a.Spec.App != nil {
		app = a.Spec.App.Port
	}
	up = Up{Broker: fmt.Sprintf("http://%s:%d", helper.AppAlias, helper.Beside(app, commandsPort)), Token: "none"}
	if a.Spec.App != nil {
		up.URL = fmt.Sprintf("http://%s:%d", helper.AppAlias, helper.Beside(app, ports[p.Against]))
	} else if p.Against != NoApp {
		return up, errors.New("internal error: a stand-in for a system without an app section")
	}
	return up, r.standIn(ctx, p, app)
}

// standIn makes sure that what answers in the app's place runs, one box for all tries
// that are under way, and waits for its first words, which it says when it listens. One
// that says nothing ends at its deadline, so an engine that is slow is waited for.
func (r *Replayer) standIn(ctx context.Context, p Replay, app int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stands {
		return nil
	}
	a := r.App
	if err := a.Holder(ctx, PlaceApp); err != nil {
		return err
	}
	labels := a.Labels("stand-in", "", p.Key, time.Now().Add(p.Limit+time.Minute))
	argv := []string{helper.Bin + "/" + helper.HelperNull, "-deadline", labels[sandbox.LabelDeadline], "-commands", port(app, commandsPort)}
	if a.Spec.App != nil { // where no app is tried nobody listens: a live namespace refuses at once
		argv = append(argv, "-empty", port(app, ports[Empty]), "-trouble", port(app, ports[Trouble]), "-lines", port(app, ports[TestLines]))
	}
	box := a.Tool(standInName, labels, argv...)
	box.Reach = a.joined(PlaceApp)
	if err := Make(ctx, a.Engine, box); err != nil {
		return fmt.Errorf("cannot make what stands in for the app: %w", err)
	}
	if err := a.Engine.Start(ctx, box.Name); err != nil {
		return err
	}
	err := a.firstLine(ctx, box.Name)
	r.stands = err == nil
	return err
}

const standInName = "stand-in"

func port(app, n int) string { return fmt.Sprintf(":%d", helper.Beside(app, n)) }

// play runs run.sh to its end. The tests stand in a volume below the folder that the
// Verifier knows, so that each replay begins with the commit.
func (r *Replayer) play(ctx context.Context, p Replay, url string) (out Replayed, err error) {
	a := r.App
	if err := a.Holder(ctx, PlaceVerifier); err != nil {
		return out, err
	}
	defer func() { err = held(ctx, a.Engine, a.holder(PlaceVerifier), err) }()
	box := a.worker(p.called("replay"), r.Image, PlaceVerifier, a.Labels("replay", p.slug(), p.Key, time.Now().Add(p.Limit+time.Minute)))
	box.Tmpfs = tmpfs(Verifier)
	if url != "" {
		box.Env = append(box.Env, "ABL_APP_URL="+url)
	}
	dir, whole := a.Project.Call(p.Key), context.WithoutCancel(ctx)
	one := &batch{
		proving: proving{Boxes: a.Boxes, project: a.Project, dir: dir, box: box, rule: ofReplay(a.Project, a.ID, dir), secret: a.Safe},
		run:     helper.RunSpec{Argv: []string{path.Join(helper.Tests, "run.sh")}, Dir: helper.Tests}, limit: p.Limit, grace: time.Second,
		asJSON: map[string]any{"commands.json": p.Cmds},
		tree:   func(w io.Writer, as string) error { return r.Tests(whole, w, p.Commit, as) },
	}
	begun, err := one.start(ctx)
	if err != nil {
		return out, err
	}
	exit, late, err := one.await(ctx, p.Cut)
	if err != nil {
		return out, err
	}
	out.Exit, out.Late, out.Took = exit.Code, late, time.Since(begun)
	return out, r.read(ctx, one, &out)
}

// read takes what was printed, once the box is gone, and says what kept run.sh
// from being run at all.
func (r *Replayer) read(ctx context.Context, one *batch, out *Replayed) error {
	end, err := one.lastWords(ctx, one.box.Name)
	if err != nil {
		return err
	}
	if end.Error != "" {
		out.Gone = "run.sh could not be started: " + end.Error
	}
	if err := one.Engine.Remove(ctx, one.box.Name); err != nil {
		return err
	}
	if err := keepAll(one.Safe, one.dir, "stdout", "stderr"); err != nil {
		return err
	}
	f, err := hostfs.Open(one.dir, "stdout")
	if err != nil {
		return err
	}
	defer f.Close()
	out.Output, err = io.ReadAll(io.LimitReader(f, maxReplay+1))
	return err
}

// clear removes all that a replay has put up, or an abl that was killed in it. What
// stands in for the app stays while another needs it; by is how many more do from now on.
func (r *Replayer) clear(ctx context.Context, p Replay, by int) error {
	a := r.App
	err := a.Engine.Remove(ctx, a.name(p.called("replay")))
	if p.Against != TheApp {
		err = errors.Join(err, r.clearStandIn(ctx, by))
	}
	if err == nil {
		_, err = a.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: a.ID, sandbox.LabelKind: "replay" + volumeKind, sandbox.LabelRole: p.slug()}, nil)
	}
	if p.Against == TheApp {
		err = errors.Join(err, a.Down(ctx, p.Key))
	}
	return err
}

func (r *Replayer) clearStandIn(ctx context.Context, by int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.tries
	r.tries += by
	if before > 0 && r.tries > 0 {
		return nil
	}
	r.stands = false
	return r.App.Engine.Remove(ctx, r.App.name(standInName))
}
