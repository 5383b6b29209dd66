package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"abl/internal/child"
	"abl/internal/proc"
	"abl/orchestrator/codecommit"
)

// Script is what builds a project.
const Script = "build.sh"

// Codes of shells for a program that cannot be run and one that is not there.
const (
	notRunnable = 126
	notFound    = 127
)

// usualGrace is how long a build that is stopped may take to end by itself.
const usualGrace = 5 * time.Second

// Host runs build.sh on this machine, as the person who runs the program, but
// without keys in its environment and with nothing to read.
type Host struct {
	Root   string
	Stream io.Writer     // shows the output as it comes; may be nil
	Limit  time.Duration // 0 is none
	Grace  time.Duration // for a build that is stopped to end by itself; 0 is five seconds
	// Clean takes secrets out of an output before a part of it is left out, which
	// might begin within one; nil takes none out.
	Clean func(io.Writer) io.WriteCloser
}

// Build runs it once.
func (h Host) Build(ctx context.Context) (codecommit.Built, error) {
	if note, code := Runnable(h.Root); note != "" {
		return codecommit.Built{Code: code, Note: note}, nil
	}
	built, err := h.run(ctx, filepath.Join(h.Root, Script))
	switch {
	case errors.Is(err, syscall.ENOEXEC): // no first line that says how
		built, err = h.run(ctx, "/bin/sh", filepath.Join(h.Root, Script))
	case errors.Is(err, fs.ErrNotExist):
		built.Code, built.Note, err = notFound, "build.sh cannot be run: the program that its first line names is not there", nil
	case errors.Is(err, fs.ErrPermission):
		built.Code, built.Note, err = notRunnable, "build.sh cannot be run: "+syscall.EACCES.Error(), nil
	}
	return built, err
}

// Runnable says why the script of a project cannot be run, and with which of a
// shell's codes; "" when nothing is known against it.
func Runnable(root string) (note string, code int) {
	info, err := os.Stat(filepath.Join(root, Script))
	switch {
	case err != nil:
		return "there is no build.sh in the project's folder", notFound
	case !info.Mode().IsRegular():
		return "build.sh cannot be run: it is no file", notRunnable
	case info.Mode()&0o111 == 0:
		return "build.sh cannot be run: make it executable (chmod +x build.sh)", notRunnable
	}
	return "", 0
}

func (h Host) run(ctx context.Context, name string, args ...string) (b codecommit.Built, err error) {
	out, voice := &Capped{To: h.Stream}, &Capped{To: h.Stream}
	cmd := child.Command(context.WithoutCancel(ctx), name, args...) // proc stops it, with all that it started
	cmd.Dir = h.Root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipes := &pipes{}
	cleanOut, cleanVoice := h.clean(out), h.clean(voice)
	cmd.Stdout, cmd.Stderr, err = pipes.open(cleanOut, cleanVoice)
	if err != nil {
		return b, err
	}
	if err := proc.Adopt(); err != nil {
		return b, err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if h.Limit > 0 {
		limited, cancel = context.WithTimeout(ctx, h.Limit)
	}
	defer cancel()
	began := time.Now()
	b.Code, err = proc.Run(limited, cmd, cmp.Or(h.Grace, usualGrace))
	b.Took = time.Since(began)
	proc.EndOrphans() // a server that it left behind, say
	pipes.drain()
	cleanOut.Close() // what it held back goes to memory, and cannot fail
	cleanVoice.Close()
	b.Stdout, b.Stderr = out.String(), voice.String()
	if cmd.ProcessState != nil {
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			b.Signal = ws.Signal().String()
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		b.Note, err = fmt.Sprintf("build.sh was stopped after %s", h.Limit), nil
	}
	return b, err
}

func (h Host) clean(w io.Writer) io.WriteCloser {
	if h.Clean == nil {
		return asItIs{w}
	}
	return h.Clean(w)
}

// asItIs is a writer that holds nothing back.
type asItIs struct{ io.Writer }

func (asItIs) Close() error { return nil }
