package boundary

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
	"abl/roles"
)

// Batch is a program that runs once, without an agent and without a key, in a proven container:
// the tests of a commit or a build on a copy of a tree, or app.prepare in the source itself.
type Batch struct {
	Launcher                // its container, without the settings that all batches share
	Run      helper.RunSpec // the program and its directory; Start sets the other fields
	Limit    time.Duration
	Grace    time.Duration // between SIGTERM and SIGKILL
	Files    map[string][]byte
	JSON     map[string]any
	Writes   Writes
	Over     string // why abl stopped it: it wrote too much, or a disk is full; "" if abl did not
	Full     bool   // abl stopped it because a disk is full
	// Writes the tree into the program's directory; nil if a mount provides it.
	Tree func(w io.Writer, as string) error
}

// Start creates the container, copies the tree into its volume, and starts it. begun is the
// time of the request to start: the program does not wait until abl has checked the proof.
func (b *Batch) Start(ctx context.Context) (begun time.Time, err error) {
	uncancelled := context.WithoutCancel(ctx)
	kind := b.Config.Labels[sandbox.LabelKind]
	rec := roles.Record{Dir: b.Dir}
	b.Run.Stdout, b.Run.Stderr, b.Run.Probe = helper.Out, helper.Err, helper.Probe
	// Tests can read the deadline. It must not reveal in which replay they run.
	b.Run.Deadline = time.Now().Add(max(b.Limit+time.Minute, 15*time.Minute)).Unix()
	b.JSON["run.json"] = b.Run
	if err := errors.Join(WriteInput(rec, b.Files, b.JSON), b.CreateFiles(rec.Stdout(), rec.Stderr())); err != nil {
		return begun, fmt.Errorf("cannot prepare a %s: %w", kind, err)
	}
	b.Config.Dir, b.Config.Argv = "/", []string{helper.Bin + "/" + helper.HelperRun, helper.Run}
	b.Config.Mounts = append(b.Config.Mounts, roles.OutputMounts(rec)...)
	fill := func() error { return nil }
	if b.Tree != nil {
		volume := sandbox.Mount{What: sandbox.Scratch, Source: b.Config.Name, Target: path.Dir(b.Run.Dir)}
		b.Config.Mounts = append(b.Config.Mounts, volume)
		labels := maps.Clone(b.Config.Labels)
		labels[sandbox.LabelKind] = kind + VolumeKind
		if err := b.Engine.EnsureVolume(uncancelled, sandbox.Volume{Name: volume.Source, Labels: labels}); err != nil {
			return begun, err
		}
		fill = func() error {
			b.Writes.Volume = volume.Source
			if b.Writes.Before, err = CopyTree(uncancelled, b.Engine, b.Config.Name, b.Run.Dir, b.Tree); err != nil {
				return fmt.Errorf("cannot copy files into the %s's container: %w", kind, err)
			}
			return nil
		}
	}
	err = b.Launch(ctx, fill, func() error {
		b.Writes.Files = map[string]int64{rec.Stdout(): b.Output, rec.Stderr(): b.Output}
		begun = time.Now()
		return nil
	})
	return begun, err
}

// VolumeKind is the suffix of the kind label of a batch's volume.
const VolumeKind = "-volume"

// CopyTree copies a tree into a folder of a container and returns the number of bytes. It
// starts again if the engine did not respond.
func CopyTree(ctx context.Context, engine sandbox.Streams, name, dir string,
	tree func(w io.Writer, as string) error) (int64, error) {
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

// Await waits for the end. It stops the program at the limit, when cut is closed, or when the
// program has written too much. late is true if the program still ran at the limit or the cut.
func (b *Batch) Await(ctx context.Context, cut <-chan struct{}) (exit sandbox.Exit, late bool, err error) {
	defer func() {
		if errors.Is(err, sandbox.ErrNotFound) {
			err = fmt.Errorf("%w: %s was removed", sandbox.ErrKilled, b.Config.Name)
		}
	}()
	bound, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	type excess struct {
		why  string
		full bool
	}
	over := make(chan excess, 1)
	go func() {
		why, full := b.Overflow(bound, b.Writes)
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
	exit, err = b.Engine.Wait(bound, b.Config.Name)
	if bound.Err() == nil || ctx.Err() != nil {
		return exit, false, err
	}
	select {
	case e := <-over:
		b.Over, b.Full = e.why, e.full
	default:
	}
	st, err := b.Engine.Status(ctx, b.Config.Name)
	late = err == nil && st.State == sandbox.Running
	if late {
		err = b.Engine.Stop(ctx, b.Config.Name, b.Grace)
	}
	if err == nil {
		exit, err = b.Engine.Wait(ctx, b.Config.Name)
	}
	return exit, late && b.Over == "", err
}

// runEndPrefix is the beginning of a helper.RunEnd in JSON.
const runEndPrefix = `{"exit":`

// RunEnd returns the report of a container's process 1 about its end, from the engine's log. ok
// is false without a report. No program in the container can suppress the report.
func (s *Containers) RunEnd(ctx context.Context, name string) (end helper.RunEnd, ok bool, err error) {
	words, err := s.Engine.Logs(ctx, name, 4<<10)
	for _, line := range slices.Backward(bytes.Split(bytes.TrimSpace(words), []byte("\n"))) {
		if bytes.HasPrefix(line, []byte(runEndPrefix)) && json.Unmarshal(line, &end) == nil {
			return end, true, err
		}
	}
	return helper.RunEnd{}, false, err
}

// EndedFromOutside returns how something other than abl ended a container, and "" if nothing
// did. asked includes requests to stop, which programs in the container can also make. Running
// out of memory counts as the container's own end.
func (s *Containers) EndedFromOutside(ctx context.Context, name string, asked bool) (why string, err error) {
	st, err := s.Engine.Status(ctx, name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return name + " was removed", nil
	case err != nil || st.State != sandbox.Exited || st.OOMKilled:
		return "", err
	}
	end, said, err := s.RunEnd(ctx, name)
	switch {
	case err != nil:
		return "", err
	case !said:
		why = fmt.Sprintf("%s was killed (exit code %d)", name, st.ExitCode)
	case asked && end.Stopped:
		why = name + " was stopped by a signal"
	}
	return why, nil
}

// WriteInput writes the read-only directory of a record's container: files, and values as JSON.
func WriteInput(rec roles.Record, files map[string][]byte, asJSON map[string]any) error {
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

// CreateFiles creates empty files that a container writes. If abl is root, the container's user
// becomes their owner.
func (s *Containers) CreateFiles(paths ...string) error {
	for _, path := range paths {
		if err := hostfs.Put(path, nil, roles.OutputMode); err != nil {
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

// KilledCode is the exit code of a program that SIGKILL ended. The signal may come from abl,
// from the engine or from the kernel.
const KilledCode = 137

// Writes lists what a container without an agent can write.
type Writes struct {
	Volume string           // the engine's volume, "" without one
	Before int64            // bytes in it at the start
	Files  map[string]int64 // output files and their largest sizes in bytes; 0 for any size
	Grown  func() string    // returns how its workspace exceeds its quota; nil without a workspace
}

// Overflow returns why a container must end, "" if ctx ends first. full is true if a disk has too
// little free space while the container is within its own limits: the cause may be another program.
func (s *Containers) Overflow(ctx context.Context, w Writes) (why string, full bool) {
	why = s.Disk.Watch(ctx, func() string {
		own := s.spilled(ctx, w)
		full = own == ""
		if full {
			return s.Disk.FullDisk()
		}
		return own
	})
	return why, full && why != ""
}

// spilled returns which limit a container's files exceed, "" if none or if the size is unknown.
func (s *Containers) spilled(ctx context.Context, w Writes) string {
	for path, most := range w.Files {
		if fi, err := os.Lstat(path); err == nil && most > 0 && fi.Size() > most {
			return fmt.Sprintf("%s has more than %d bytes", filepath.Base(path), most)
		}
	}
	if w.Grown != nil {
		return w.Grown()
	}
	if w.Volume == "" || s.Disk.Bytes == 0 {
		return ""
	}
	if now, err := s.Engine.Usage(ctx, w.Volume); err == nil && now-w.Before > s.Disk.Bytes {
		return fmt.Sprintf("it wrote %d MiB into its copy (limits.disk is %d MiB)", (now-w.Before)>>20, s.Disk.Bytes>>20)
	}
	return ""
}

// late is how long cleaning up may take after the work was cancelled.
const late = 30 * time.Second

// CleanupContext returns a context that ends only a short time after ctx.
func CleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(late, cancel)
		context.AfterFunc(tidy, func() { end.Stop() })
	})
	return tidy, func() { stop(); cancel() }
}
