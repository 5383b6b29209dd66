package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
)

// batch is a program that runs once on a copy of a tree, without an agent and without a
// key, in a box that is proven as a role's is: the tests of a commit, or a build.
type batch struct {
	engine  AppEngine
	project state.Project
	proof   proving
	box     sandbox.Box // as intent; its first mount is the volume that takes the tree
	labels  map[string]string
	as      string // the tree's folder in the volume
	tree    func(w io.Writer, as string) error
}

// start makes the box, fills its volume with the tree, and starts it. What is asked of
// the engine is seen through, lest it makes a box that no sweep has seen. begun is when
// the engine was told to: the program does not wait for the proof to be read.
func (b batch) start(ctx context.Context) (begun time.Time, err error) {
	whole := context.WithoutCancel(ctx)
	volume := b.box.Mounts[0]
	if err := b.engine.EnsureVolume(whole, sandbox.Volume{Name: volume.Source, Labels: b.labels}); err != nil {
		return begun, err
	}
	if err := checkSources(b.project, b.box.Mounts); err != nil {
		return begun, err
	}
	if _, err := b.engine.Create(whole, b.box); err != nil {
		return begun, fmt.Errorf("cannot make the %s's container: %w", b.box.Labels[sandbox.LabelKind], err)
	}
	from, to := io.Pipe()
	go func() { to.CloseWithError(b.tree(to, b.as)) }()
	defer from.Close()
	if err := b.engine.CopyIn(whole, b.box.Name, volume.Target, from); err != nil {
		return begun, fmt.Errorf("cannot fill the %s's container: %w", b.box.Labels[sandbox.LabelKind], err)
	}
	done, err := b.proof.before(whole)
	defer done()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return begun, err
	}
	begun = time.Now()
	if err := b.engine.Start(whole, b.box.Name); err != nil {
		return begun, err
	}
	return begun, b.proof.after(ctx, true)
}

// await waits for the end, and brings it about at the limit or when cut is closed.
func (b batch) await(ctx context.Context, limit, grace time.Duration, cut <-chan struct{}) (exit sandbox.Exit, late bool, err error) {
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-cut: // never, where it is nil
			cancel()
		case <-bound.Done():
		}
	}()
	exit, err = b.engine.Wait(bound, b.box.Name)
	if bound.Err() == nil || ctx.Err() != nil {
		return exit, false, err
	}
	if err := b.engine.Stop(ctx, b.box.Name, grace); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return exit, true, err
	}
	exit, err = b.engine.Wait(ctx, b.box.Name)
	return exit, true, err
}

// end is what abl-run said of the program's end, if that was no ordinary one.
func (b batch) end(ctx context.Context) (end helper.RunEnd, err error) {
	words, err := b.engine.Logs(ctx, b.box.Name, 4<<10)
	for _, line := range splitLines(words) {
		var last helper.RunEnd
		if json.Unmarshal(line, &last) == nil && (last.Error != "" || last.Signal != "") {
			end = last
		}
	}
	return end, err
}

// outputMounts are those of every box that abl-run is the first program of.
func outputMounts(rec Record) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.CallIn, Source: rec.In(), Target: helper.In, ReadOnly: true},
		{What: sandbox.CallOut, Source: rec.Stdout(), Target: helper.Out},
		{What: sandbox.CallOut, Source: rec.Stderr(), Target: helper.Err},
	}
}

// layIn writes what the box of a record sees read-only: files, and those that are
// written as JSON.
func layIn(rec Record, files map[string][]byte, asJSON map[string]any) error {
	if err := errors.Join(os.RemoveAll(rec.In()), os.MkdirAll(rec.In(), 0o755)); err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		if err := writeReadable(filepath.Join(rec.In(), name), files[name]); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(asJSON) {
		data, err := json.Marshal(asJSON[name])
		if err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
		if err := writeReadable(filepath.Join(rec.In(), name), data); err != nil {
			return err
		}
	}
	return nil
}

// layOutput makes the two empty files that take the output of a record's box, and makes
// them over to its user where abl is root.
func layOutput(rec Record, root bool, uid, gid int) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		if err := os.WriteFile(path, nil, outputMode); err != nil {
			return err
		}
		if !root {
			continue
		}
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
