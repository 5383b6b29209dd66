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

// batch is a program that runs once, without an agent and without a key, in a proven container:
// the tests of a commit or a build on a copy of a tree, or app.prepare in the source itself.
type batch struct {
	proving                // its container, without the settings that all batches share
	run     helper.RunSpec // the program and its directory; start sets the other fields
	limit   time.Duration
	grace   time.Duration // between SIGTERM and SIGKILL
	files   map[string][]byte
	asJSON  map[string]any
	spill   spill
	over    string // why abl stopped it: it wrote too much, or a disk is full; "" if abl did not
	full    bool   // abl stopped it because a disk is full
	// Writes the tree into the program's directory; nil if a mount provides it.
	tree func(w io.Writer, as string) error
}

// start creates the container, copies the tree into its volume, and starts it. begun is the
// time of the request to start: the program does not wait until abl has checked the proof.
func (b *batch) start(ctx context.Context) (begun time.Time, err error) {
	whole, kind, rec := context.WithoutCancel(ctx), b.box.Labels[sandbox.LabelKind], Record{Dir: b.dir}
	b.run.Stdout, b.run.Stderr, b.run.Probe = helper.Out, helper.Err, helper.Probe
	// Tests can read the deadline. It must not reveal in which replay they run.
	b.run.Deadline = time.Now().Add(max(b.limit+time.Minute, 15*time.Minute)).Unix()
	b.asJSON["run.json"] = b.run
	if err := errors.Join(writeInput(rec, b.files, b.asJSON), b.createFiles(rec.Stdout(), rec.Stderr())); err != nil {
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
			if b.spill.was, err = copyTree(whole, b.Engine, b.box.Name, b.run.Dir, b.tree); err != nil {
				return fmt.Errorf("cannot copy files into the %s's container: %w", kind, err)
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

// volumeKind is the suffix of the kind label of a batch's volume.
const volumeKind = "-volume"

// copyTree copies a tree into a folder of a container and returns the number of bytes. It
// starts again if the engine did not respond.
func copyTree(ctx context.Context, engine sandbox.Streams, name, dir string, tree func(w io.Writer, as string) error) (int64, error) {
	var written counter
	err := engine.CopyIn(ctx, name, path.Dir(dir), func(w io.Writer) error {
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

// await waits for the end. It stops the program at the limit, when cut is closed, or when the
// program has written too much. late is true if the program still ran at the limit or the cut.
func (b *batch) await(ctx context.Context, cut <-chan struct{}) (exit sandbox.Exit, late bool, err error) {
	defer func() {
		if errors.Is(err, sandbox.ErrNotFound) {
			err = fmt.Errorf("%w: %s was removed", sandbox.ErrKilled, b.box.Name)
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
		case <-cut: // blocks forever if it is nil
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

// runEndPrefix is the beginning of a helper.RunEnd in JSON.
const runEndPrefix = `{"exit":`

// runEnd returns the report of a container's process 1 about its end, from the engine's log. ok
// is false without a report. No program in the container can suppress the report.
func (s *Boxes) runEnd(ctx context.Context, name string) (end helper.RunEnd, ok bool, err error) {
	words, err := s.Engine.Logs(ctx, name, 4<<10)
	for _, line := range slices.Backward(bytes.Split(bytes.TrimSpace(words), []byte("\n"))) {
		if bytes.HasPrefix(line, []byte(runEndPrefix)) && json.Unmarshal(line, &end) == nil {
			return end, true, err
		}
	}
	return helper.RunEnd{}, false, err
}

// endedFromOutside returns how something other than abl ended a container, and "" if nothing
// did. asked includes requests to stop, which programs in the container can also make. Running
// out of memory counts as the container's own end.
func (s *Boxes) endedFromOutside(ctx context.Context, name string, asked bool) (why string, err error) {
	st, err := s.Engine.Status(ctx, name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return name + " was removed", nil
	case err != nil || st.State != sandbox.Exited || st.OOMKilled:
		return "", err
	}
	end, said, err := s.runEnd(ctx, name)
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

// writeInput writes the read-only directory of a record's container: files, and values as JSON.
func writeInput(rec Record, files map[string][]byte, asJSON map[string]any) error {
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

// createFiles creates empty files that a container writes. If abl is root, the container's user
// becomes their owner.
func (s *Boxes) createFiles(paths ...string) error {
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

// killedCode is the exit code of a program that SIGKILL ended. The signal may come from abl,
// from the engine or from the kernel.
const killedCode = 137

// spill lists what a container without an agent can write.
type spill struct {
	volume string           // the engine's volume, "" without one
	was    int64            // bytes in it at the start
	files  map[string]int64 // output files and their largest sizes in bytes; 0 for any size
	grown  func() string    // returns how its workspace exceeds its quota; nil without a workspace
}

// overflow returns why a container must end, "" if ctx ends first. full is true if a disk has too
// little free space while the container is within its own limits: the cause may be another program.
func (s *Boxes) overflow(ctx context.Context, w spill) (why string, full bool) {
	why = s.Disk.outgrown(ctx, func() string {
		own := s.spilled(ctx, w)
		if full = own == ""; full {
			return s.Disk.short()
		}
		return own
	})
	return why, full && why != ""
}

// spilled returns what a container has written too much of, "" if it did not or cannot be measured.
func (s *Boxes) spilled(ctx context.Context, w spill) string {
	for path, most := range w.files {
		if fi, err := os.Lstat(path); err == nil && most > 0 && fi.Size() > most {
			return fmt.Sprintf("%s has more than %d bytes", filepath.Base(path), most)
		}
	}
	if w.grown != nil {
		return w.grown()
	}
	if w.volume == "" || s.Disk.Bytes == 0 {
		return ""
	}
	if now, err := s.Engine.Usage(ctx, w.volume); err == nil && now-w.was > s.Disk.Bytes {
		return fmt.Sprintf("it wrote %d MiB into its copy (limits.disk is %d MiB)", (now-w.was)>>20, s.Disk.Bytes>>20)
	}
	return ""
}

// late is how long cleaning up may take after the work was cancelled.
const late = 30 * time.Second

// tidying returns a context that ends only a short time after ctx.
func tidying(ctx context.Context) (context.Context, context.CancelFunc) {
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(late, cancel)
		context.AfterFunc(tidy, func() { end.Stop() })
	})
	return tidy, func() { stop(); cancel() }
}
