package roles

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/orchestrator/dirs"
	"abl/orchestrator/project"
)

// Builds runs a project's own build: on a copy of its tree, without an agent and
// without a key, in a box that is proven as a role's is. Nothing comes back but
// what it prints. With a gate it reaches what a Builder would; without one it has
// no network at all.
type Builds struct {
	Engine  AppEngine
	Project project.Project // whose records take what is kept of a build
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
	Outlet  *redact.Sanitizer
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
	// What is asked of the engine is seen through, lest it makes a box that no sweep
	// has seen.
	whole := context.WithoutCancel(ctx)
	box, err := b.make(whole, w, rec)
	if err != nil {
		return end, err
	}
	proof := proving{engine: b.Engine, box: box, dir: rec.Dir, rule: ofBuild(b.ID, rec.Dir, b.Absent, b.Gate != nil), net: b.Net, cutOff: b.Gate == nil, secret: b.Outlet}
	done, err := proof.before(whole)
	defer done()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return end, err
	}
	if err := b.Engine.Start(whole, box.Name); err != nil {
		return end, err
	}
	failpoint.Here("build.started")
	if err := proof.after(ctx, true); err != nil {
		return end, err
	}
	stop, err := copyOutput(rec, w.Stdout, w.Stderr)
	if err != nil {
		return end, err
	}
	end, err = b.await(ctx, box.Name, w.Limit)
	return end, errors.Join(err, stop())
}

// await waits for the end, and brings it about at the limit.
func (b *Builds) await(ctx context.Context, name string, limit time.Duration) (end BuildEnd, err error) {
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	exit, err := b.Engine.Wait(bound, name)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		const grace = 5 * time.Second
		return BuildEnd{Late: true}, b.Engine.Stop(ctx, name, grace)
	}
	if err != nil {
		return end, err
	}
	end.Exit, end.OOMKilled = exit.Code, exit.OOMKilled
	words, err := b.Engine.Logs(ctx, name, 4<<10)
	if err != nil {
		return end, err
	}
	for _, line := range splitLines(words) {
		var last dirs.RunEnd
		if json.Unmarshal(line, &last) == nil && (last.Error != "" || last.Signal != "") {
			end.Signal, end.Gone = last.Signal, last.Error
		}
	}
	return end, nil
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
