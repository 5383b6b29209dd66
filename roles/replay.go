package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"abl/internal/helper"
	"abl/internal/testing/failpoint"
)

// Replayer runs the tests that a Verifier saved once more, without the Verifier:
// no agent, no key and no way out, in a box of its own, from the commit and not
// from the directory.
type Replayer struct {
	App    *App
	Image  string // the Verifier's
	Holder func(ctx context.Context, place string) (string, error)
	Tests  func(ctx context.Context, w io.Writer, commit, as string) error // the tree of a commit of the tests, as a tar
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

// Replay is one run of the saved tests.
type Replay struct {
	Key     string // "<call>/replay-<name>": the folder of its record below the calls
	Commit  string // of the tests
	Against Against
	Limit   time.Duration
	Cut     <-chan struct{} // closed when its time is up before that, nil for never
	Cmds    helper.CmdSpec  // what abl-cmd offers; the broker's address is added
}

// Replayed is what came of it.
type Replayed struct {
	Output    []byte        `json:"-"` // of run.sh, at most maxReplay+1 bytes
	Exit      int           `json:"exit"`
	Late      bool          `json:"late,omitempty"`       // stopped at its time limit
	Gone      string        `json:"gone,omitempty"`       // why nothing could be run
	AppFailed string        `json:"app_failed,omitempty"` // the app did not start: nothing was run
	Ends      AppEnds       `json:"-"`                    // of the app that was to go on; its record keeps them
	Took      time.Duration `json:"took_ns"`
}

// maxReplay bounds the output of run.sh that is read, in bytes.
const maxReplay = 4 << 20

// Run makes one replay. A repetition makes it anew: it costs time and no tokens.
func (r *Replayer) Run(ctx context.Context, p Replay) (out Replayed, err error) {
	defer func() {
		tidy, cancel := tidying(ctx)
		defer cancel()
		err = errors.Join(err, r.clear(tidy, p))
	}()
	if err := r.clear(ctx, p); err != nil {
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
		if out.Ends, err = r.ends(ctx, p); err != nil {
			return out, err
		}
	}
	return out, r.keep(p, at, out)
}

// ends is how the app under test ended, if it did.
func (r *Replayer) ends(ctx context.Context, p Replay) (AppEnds, error) {
	if p.Against != TheApp {
		return AppEnds{}, nil
	}
	if err := r.App.noteEnd(ctx, p.Key); err != nil {
		return AppEnds{}, err
	}
	return EndsOf(r.App.Project, p.Key)
}

// stand puts up what the tests are run against.
func (r *Replayer) stand(ctx context.Context, p Replay) (Up, error) {
	if p.Against == TheApp {
		return r.App.Up(ctx, p.Key)
	}
	up := Up{Broker: at(r.place(p).commands), Token: "none"}
	if r.App.Spec.App != nil {
		up.URL = at(r.place(p).app)
	}
	return up, r.standIn(ctx, p)
}

// ports are where something stands in the app's place, in the app's own network
// namespace and beside it: so the tries go on at the same time as the replay
// against the app does, and at the same time as one another.
type ports struct{ app, commands int }

func (r *Replayer) place(p Replay) ports {
	app := 0
	if r.App.Spec.App != nil {
		app = r.App.Spec.App.Port
	}
	n := map[Against]int{TheApp: 1, NoApp: 3, Empty: 5, Trouble: 7, TestLines: 9}[p.Against]
	return ports{helper.Beside(app, n), helper.Beside(app, n+1)}
}

// at is the address of a port in the app's place.
func at(port int) string { return fmt.Sprintf("http://%s:%d", helper.AppAlias, port) }
