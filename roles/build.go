package roles

import (
	"context"
	"errors"
	"io"
	"time"

	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
)

// Builds runs a project's own build: on a copy of its tree, without an agent and
// without a key, in a box that is proven as a role's is. Nothing comes back but
// what it prints. With a gate it reaches what a Builder would; without one it has
// no network at all.
type Builds struct {
	Engine  AppEngine
	Project state.Project // whose records take what is kept of a build
	ID      string
	Image   string
	UID     int
	GID     int
	Root    bool // see Runner
	Box     sandbox.Limits
	Net     Net
	Site    *Site             // whose place PlaceBuilder the box joins; nil where there is no gate
	Gate    Gate              // nil: there is no way out
	Files   map[string][]byte // laid into the box's read-only directory
	Argv    []string          // what builds, in dirs.Src
	Absent  []string          // paths where the box must find nothing
	Tree    func(w io.Writer, as string) error
	Safe    *redact.Sanitizer
}

// Build is one run.
type Build struct {
	Key            string // unique among the project's
	Limit          time.Duration
	Stdout, Stderr io.Writer // take what it prints while it does
}

// BuildEnd is how a build ended.
type BuildEnd struct {
	Exit      int
	Signal    string   // that ended it, "" when none did
	Late      bool     // stopped at its limit
	OOMKilled bool     // it wanted more memory than its box has
	Gone      string   // why it could not be started
	Notes     []string // of its gate: refused hosts, and the line that allows them
}

// buildVolume is the kind of the volume that a build stands in.
const buildVolume = "build-volume"

// Run takes one build to its end. What it put on the engine is gone then, but for
// the site, which the next one takes.
func (b *Builds) Run(ctx context.Context, w Build) (end BuildEnd, err error) {
	defer func() {
		tidy, cancel := tidying(ctx)
		defer cancel()
		notes, cerr := b.clear(tidy, w)
		if err = errors.Join(err, cerr); err == nil {
			end.Notes = notes
		}
	}()
	rec := Record{b.Project.Call(w.Key)}
	one, err := b.batch(context.WithoutCancel(ctx), w, rec)
	if err != nil {
		return end, err
	}
	if _, err := one.start(ctx); err != nil {
		return end, err
	}
	failpoint.Here("build.started")
	stop, err := copyOutput(rec, w.Stdout, w.Stderr)
	if err != nil {
		return end, err
	}
	const grace = 5 * time.Second
	exit, late, err := one.await(ctx, w.Limit, grace, nil)
	if end.Late = late; err == nil && !late {
		var last helper.RunEnd
		last, err = one.end(ctx)
		end.Exit, end.OOMKilled, end.Signal, end.Gone = exit.Code, exit.OOMKilled, last.Signal, last.Error
	}
	return end, errors.Join(err, stop())
}

// clear removes what a build has put up, and hears what its gate has to say.
func (b *Builds) clear(ctx context.Context, w Build) (notes []string, err error) {
	err = b.Engine.Remove(ctx, BoxName(b.ID, w.Key))
	if b.Gate != nil {
		traffic, gerr := b.Gate.Close(ctx, w.Key)
		notes, err = traffic.Notes, errors.Join(err, gerr)
	}
	_, serr := b.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: b.ID, sandbox.LabelKind: buildVolume}, nil)
	return notes, errors.Join(err, serr)
}
