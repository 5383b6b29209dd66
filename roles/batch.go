package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
)

// batch is a program that runs once, without an agent and without a key, in a box that is
// proven as a role's is: the tests of a commit or a build on a copy of a tree, or what
// prepares the source in its place.
type batch struct {
	proving                // its box is as intent, but for what every batch has
	run     helper.RunSpec // what is run, and where; the rest is every batch's
	limit   time.Duration
	grace   time.Duration // between the word to end and the end
	files   map[string][]byte
	asJSON  map[string]any
	spill   spill
	over    string                             // why abl ended it: it wrote too much, or a disk is full
	full    bool                               // abl ended it because a disk is full, not for what it wrote
	tree    func(w io.Writer, as string) error // written into the folder that the program runs in; nil where a mount shows it
}

// start makes the box, fills its volume with the tree, and starts it. begun is when the
// engine was told to: the program does not wait for the proof to be read.
func (b *batch) start(ctx context.Context) (begun time.Time, err error) {
	whole, kind, rec := context.WithoutCancel(ctx), b.box.Labels[sandbox.LabelKind], Record{b.dir}
	b.run.Stdout, b.run.Stderr, b.run.Probe = helper.Out, helper.Err, helper.Probe
	// Tests can read this, and must not know by it which replay they are in.
	b.run.Deadline = time.Now().Add(max(b.limit+time.Minute, 15*time.Minute)).Unix()
	b.asJSON["run.json"] = b.run
	if err := errors.Join(layIn(rec, b.files, b.asJSON), b.layOutput(rec)); err != nil {
		return begun, fmt.Errorf("cannot prepare a %s: %w", kind, err)
	}
	b.box.Dir, b.box.Argv = "/", []string{helper.Bin + "/" + helper.HelperRun, helper.Run}
	b.box.Mounts = append(b.box.Mounts, outputMounts(rec)...)
	fill := func() error { return nil }
	if b.tree != nil {
		volume := sandbox.Mount{What: sandbox.Scratch, Source: b.box.Name, Target: path.Dir(b.run.Dir)}
		b.box.Mounts = append(b.box.Mounts, volume)
		labels := maps.Clone(b.box.Labels)
		labels[sandbox.LabelKind] = kind + volumeKind
		if err := b.Engine.EnsureVolume(whole, sandbox.Volume{Name: volume.Source, Labels: labels}); err != nil {
			return begun, err
		}
		fill = func() error {
			b.spill.volume = volume.Source
			if b.spill.was, err = b.pour(whole, b.box.Name, b.run.Dir, b.tree); err != nil {
				return fmt.Errorf("cannot fill the %s's container: %w", kind, err)
			}
			return nil
		}
	}
	err = b.launch(ctx, fill, func() error {
		b.spill.files = map[string]int64{rec.Stdout(): b.Output, rec.Stderr(): b.Output}
		begun = time.Now()
		return nil
	})
	return begun, err
}

// volumeKind ends the kind of the volume that a batch stands in.
const volumeKind = "-volume"

// pour writes a tree into a folder of a box, again from the start where the engine did not
// answer, and returns how many bytes it wrote last.
func (s *Boxes) pour(ctx context.Context, name, dir string, tree func(w io.Writer, as string) error) (int64, error) {
	var written counter
	err := s.Engine.CopyIn(ctx, name, path.Dir(dir), func(w io.Writer) error {
		written = counter{Writer: w}
		return tree(&written, path.Base(dir))
	})
	return written.n, err
}

// counter counts the bytes that are written through it.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// await waits for the end, and brings it about at the limit, when cut is closed, or when the
// program has written too much. late is whether it did that at the limit or the cut; what had
// ended before, with the engine perhaps, is not late.
func (b *batch) await(ctx context.Context, cut <-chan struct{}) (exit sandbox.Exit, late bool, err error) {
	defer func() {
		if errors.Is(err, sandbox.ErrNotFound) {
			err = fmt.Errorf("%w: %s was removed", ErrKilled, b.box.Name)
		}
	}()
	bound, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	type excess struct {
		why  string
		full bool
	}
	over := make(chan excess, 1)
	go func() {
		why, full := b.overflow(bound, b.spill)
		over <- excess{why, full}
		if why != "" {
			cancel()
		}
	}()
	go func() {
		select {
		case <-cut: // never, where it is nil
			cancel()
		case <-bound.Done():
		}
	}()
	exit, err = b.Engine.Wait(bound, b.box.Name)
	if bound.Err() == nil || ctx.Err() != nil {
		return exit, false, err
	}
	select {
	case e := <-over:
		b.over, b.full = e.why, e.full
	default:
	}
	st, err := b.Engine.Status(ctx, b.box.Name)
	if late = err == nil && st.State == sandbox.Running; late {
		err = b.Engine.Stop(ctx, b.box.Name, b.grace)
	}
	if err == nil {
		exit, err = b.Engine.Wait(ctx, b.box.Name)
	}
	return exit, late && b.over == "", err
}

// lastWord is how a helper.RunEnd begins.
const lastWord = `{"exit":`

// lastWords are what process 1 of a box reported of its end in the engine's log, false for
// nothing: nobody inside can keep it from that.
func (s *Boxes) lastWords(ctx context.Context, name string) (end helper.RunEnd, said bool, err error) {
	words, err := s.Engine.Logs(ctx, name, 4<<10)
	for _, line := range slices.Backward(bytes.Split(bytes.TrimSpace(words), []byte("\n"))) {
		if bytes.HasPrefix(line, []byte(lastWord)) && json.Unmarshal(line, &end) == nil {
			return end, true, err
		}
	}
	return helper.RunEnd{}, false, err
}

// fromOutside reports how somebody outside ended a box that abl did not end, "" if nobody did.
// asked is whether a request to end counts, which what runs inside can make too. A box that ran
// out of memory was ended by its own limit.
func (s *Boxes) fromOutside(ctx context.Context, name string, asked bool) (why string, err error) {
	st, err := s.Engine.Status(ctx, name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return name + " was removed", nil
	case err != nil || st.State != sandbox.Exited || st.OOMKilled:
		return "", err
	}
	end, said, err := s.lastWords(ctx, name)
	switch {
	case err != nil:
		return "", err
	case !said:
		why = fmt.Sprintf("%s was killed (exit code %d)", name, st.ExitCode)
	case asked && end.Stopped:
		why = name + " was asked to end"
	}
	return why, nil
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
	all := maps.Clone(files)
	if all == nil {
		all = map[string][]byte{}
	}
	for name, v := range asJSON {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
		all[name] = data
	}
	if err := errors.Join(os.RemoveAll(rec.In()), os.MkdirAll(rec.In(), 0o755)); err != nil {
		return err
	}
	for name, data := range all {
		if err := hostfs.Put(filepath.Join(rec.In(), name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// layOutput makes the two empty files that take the output of a record's box.
func (s *Boxes) layOutput(rec Record) error { return s.makeOver(rec.Stdout(), rec.Stderr()) }

// makeOver makes empty files that a box writes, and makes them over to its user where
// abl is root.
func (s *Boxes) makeOver(paths ...string) error {
	for _, path := range paths {
		if err := hostfs.Put(path, nil, outputMode); err != nil {
			return err
		}
		if !s.Root {
			continue
		}
		if err := os.Chown(path, s.UID, s.GID); err != nil {
			return err
		}
	}
	return nil
}
