package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/boundary"
)

// Builds runs a project's own build in a proven container, without an agent and without a key. The
// build runs on a copy of the tree or in the source itself. With a gateway it reaches the hosts
// that a Builder reaches; without one it has no network.
type Builds struct {
	*boundary.Containers
	Project state.Project // whose records contain the build's output
	Image   string
	Gate    roles.Gate // nil without a gateway
	// Files in the container's read-only directory.
	Files map[string][]byte
	Argv  []string // the build command, run in helper.Src
	// Paths that must not exist in the container.
	Absent []string
	// Writes the copy of the tree; nil to run in the source itself.
	Tree func(w io.Writer, as string) error
	// The source has no .git: it is an export of a commit.
	Exported bool
	// Folder below helper.Src in which the command runs, "" for the whole.
	Dir string
	Env []string
}

// Build is one run of Builds.
type Build struct {
	Key            string // unique among the project's
	Limit          time.Duration
	Stdout, Stderr io.Writer // receive its output while it runs
}

// BuildEnd is how a build ended.
type BuildEnd struct {
	Exit      int
	Late      bool     // stopped at its limit
	OOMKilled bool     // it exceeded its memory limit
	Gone      string   // why it could not be started
	Over      string   // what it wrote too much of, if abl ended it for that
	Full      string   // which in-memory file systems were full at its end
	Notes     []string // of its gateway: refused hosts, and the setting that allows them
}

// ofPrepare replaces names of settings: a build's in-memory file systems have other limits.
var ofPrepare = strings.NewReplacer("limits.tmp", "limits.prepare", "limits.home", "limits.prepare")

// Run runs one build to its end and removes its container and volume. It returns a sandbox.ErrKilled if
// something other than abl ended the build.
func (b *Builds) Run(ctx context.Context, w Build) (end BuildEnd, err error) {
	defer func() {
		tidy, cancel := boundary.CleanupContext(ctx)
		defer cancel()
		notes, cerr := b.clear(tidy, w)
		if err = errors.Join(err, cerr); err == nil {
			end.Notes = notes
		}
	}()
	one, err := b.batch(context.WithoutCancel(ctx), w)
	if err != nil {
		return end, err
	}
	if _, err := one.Start(ctx); err != nil {
		return end, err
	}
	failpoint.Here("build.started")
	done, copied := make(chan struct{}), make(chan error, 1)
	go func() { copied <- copyOutput(done, roles.Record{Dir: one.Dir}, w.Stdout, w.Stderr) }()
	exit, late, err := one.Await(ctx, nil)
	end.Late, end.Over = late, one.Over
	if !late {
		end.Exit, end.OOMKilled = exit.Code, exit.OOMKilled
	}
	if err == nil && one.Full {
		err = fmt.Errorf("%w: %s", roles.ErrNoRoom, one.Over)
	}
	if err == nil && !late && end.Over == "" {
		var last helper.RunEnd
		var why string
		if last, _, err = one.RunEnd(ctx, one.Config.Name); err == nil {
			why, err = one.EndedFromOutside(ctx, one.Config.Name, true)
		}
		if why != "" {
			err = fmt.Errorf("%w: %s", sandbox.ErrKilled, why)
		}
		end.Gone, end.Full = last.Error, ofPrepare.Replace(last.Full)
		if end.Gone == "" && one.Writes.Grown != nil { // it may have ended before abl checked
			end.Gone = one.Writes.Grown()
		}
	}
	close(done)
	return end, errors.Join(err, <-copied)
}

// batch describes a build's container and opens its gateway.
func (b *Builds) batch(ctx context.Context, w Build) (*boundary.Batch, error) {
	rec, deadline, place := roles.Record{Dir: b.Project.Call(w.Key)}, time.Now().Add(w.Limit+time.Minute), ""
	if err := os.RemoveAll(rec.Dir); err != nil {
		return nil, fmt.Errorf("cannot prepare a build: %w", err)
	}
	var env []string
	if b.Gate != nil {
		place = boundary.PlaceBuilder
		if err := b.Holder(ctx, place); err != nil {
			return nil, err
		}
		var err error
		if env, err = b.Gate.Open(ctx, w.Key, "", deadline); err != nil {
			return nil, fmt.Errorf("cannot start the build's gateway: %w", err)
		}
	}
	container := b.Worker(w.Key, b.Image, place, b.Labels("build", "", w.Key, deadline))
	container.Env = slices.Concat(container.Env, b.Env, env)
	container.Tmpfs = b.Spaces.PrepareTmpfs()
	rules := boundary.BuildRule(b.ID, rec.Dir, w.Key, b.Absent, b.Gate != nil)
	var written boundary.Writes
	if b.Tree == nil {
		was, err := roles.MeasureTree(ctx, b.Project.Src)
		if err = errors.Join(err, b.Disk.CheckRoom()); err != nil {
			return nil, err
		}
		begun := time.Now()
		written.Grown = func() string { return b.Disk.Grown(ctx, b.Project.Src, was, begun) }
		rules = boundary.PrepareRule(b.Project, b.ID, rec.Dir, b.Gate != nil, b.Exported)
		// The source, and its .git read-only.
		container.Mounts = roles.Mounts(roles.Builder, b.Project, rec)[:2]
		if b.Exported {
			container.Mounts = container.Mounts[:1]
		}
	}
	return &boundary.Batch{
		Launcher: boundary.Launcher{Containers: b.Containers, Project: b.Project, Dir: rec.Dir, Config: container, Rule: rules, Secrets: b.Safe},
		Run:      helper.RunSpec{Argv: b.Argv, Dir: path.Join(helper.Src, b.Dir)},
		Limit:    w.Limit,
		Grace:    5 * time.Second,
		Files:    b.Files,
		JSON:     map[string]any{},
		Writes:   written,
		Tree:     b.Tree,
	}, nil
}

// clear removes a build's container and volume, closes its gateway and returns the gateway's notes.
func (b *Builds) clear(ctx context.Context, w Build) (notes []string, err error) {
	err = b.Engine.Remove(ctx, b.Name(w.Key))
	if b.Gate != nil {
		traffic, gerr := b.Gate.Close(ctx, w.Key)
		notes, err = traffic.Notes, errors.Join(err, gerr)
	}
	volumes := map[string]string{sandbox.LabelProject: b.ID, sandbox.LabelKind: "build" + boundary.VolumeKind}
	_, serr := b.Engine.Sweep(ctx, volumes, nil)
	return notes, errors.Join(err, serr)
}

// copyOutput copies the output of a build until done is closed, and then the rest.
func copyOutput(done <-chan struct{}, rec roles.Record, stdout, stderr io.Writer) error {
	out, err := roles.OpenOutput(rec.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := roles.OpenOutput(rec.Stderr())
	if err != nil {
		return err
	}
	defer errs.Close()
	for more := true; more && err == nil; {
		select {
		case <-done:
			more = false
		case <-time.After(roles.PollInterval):
		}
		_, oerr := io.Copy(stdout, out) // from the end of the last copy
		_, eerr := io.Copy(stderr, errs)
		err = errors.Join(oerr, eerr)
	}
	return err
}
