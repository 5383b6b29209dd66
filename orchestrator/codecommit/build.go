package codecommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/roles/environment"
)

// Script is what builds a project.
const Script = "build.sh"

// shell starts the script, wherever the build runs.
var shell = []string{"/bin/sh", "-c", "exec ./" + Script}

// Codes of shells for a program that cannot be run and one that is not there.
const (
	notRunnable = 126
	notFound    = 127
)

// Builder runs the build of the project.
type Builder interface {
	Build(ctx context.Context) (Built, error)
}

// Built is how a build ended.
type Built struct {
	Code           int               // exit code, 128 and more for a signal
	Signal         string            // that ended it, "" when none did
	Note           string            // what else there is to know: it could not be started, say
	Stdout, Stderr string            // capped, with a word on what is missing
	Notes          []string          // for the person alone: what the build asked the network for in vain, say
	Papers         map[string]string // what else is kept of it beside its log, by name
}

// Why says why the build is red. It is green, "", by exit code 0 and nothing else.
func (b Built) Why() string {
	if b.Note == "" && (b.Code != 0 || b.Signal != "") {
		return fmt.Sprintf("build.sh ended with exit code %d", b.Code)
	}
	return b.Note
}

// Text is the build as the log and the model get it.
func (b Built) Text() string {
	why := line(b.Note)
	if b.Signal != "" {
		why = "It was ended by the signal " + b.Signal + ".\n" + why
	}
	return fmt.Sprintf("EXIT CODE: %d\n%s\nSTDOUT:\n%s\nSTDERR:\n%s", b.Code, why, line(b.Stdout), line(b.Stderr))
}

// ErrEnvironment is a build that says nothing about the code: a tool is missing
// where it ran, or the engine failed. A model cannot repair it.
var ErrEnvironment error = &environment.Error{Class: environment.Unavailable, Err: errors.New("the build's environment failed")}

// Host runs build.sh on this machine, as the person who runs the program, but
// without keys in its environment and with nothing to read.
type Host struct {
	Root    string
	Stream  io.Writer // shows both outputs as they come; may be nil
	Limit   time.Duration
	Grace   time.Duration    // for a build that is stopped to end by itself; 0 is five seconds
	Secrets *redact.Redactor // taken out of what is kept and shown
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

// Build runs it once.
func (h Host) Build(ctx context.Context) (b Built, err error) {
	if b.Note, b.Code = Runnable(h.Root); b.Note != "" {
		return b, nil
	}
	out, voice := NewOutput(h.Stream, h.Secrets), NewOutput(h.Stream, h.Secrets)
	cmd := proc.Command(context.WithoutCancel(ctx), shell[0], shell[1:]...) // proc stops it, with all that it started
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.Root, out, voice
	cmd.SysProcAttr = proc.Leader()
	cmd.WaitDelay = time.Second // what it leaves running may hold its outputs for ever
	if err := proc.Adopt(); err != nil {
		return b, err
	}
	runtime.LockOSThread() // proc.Leader is about the thread
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, cmp.Or(h.Limit, time.Hour))
	defer cancel()
	b.Code, err = proc.Run(limited, cmd, cmp.Or(h.Grace, 5*time.Second))
	if cmd.Process != nil {
		proc.EndOrphans(cmd.Process.Pid) // a server that it left behind, say
	}
	b.Stdout, b.Stderr = out.Text(), voice.Text()
	if cmd.ProcessState != nil {
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
			b.Signal = ws.Signal().String()
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		b.Note, err = fmt.Sprintf("build.sh was stopped after %s", h.Limit), nil
	}
	return b, err
}

// half is how much is kept of the beginning of an output, and of its end.
const half = 128 << 10

// Output keeps the beginning and the end of what a build prints, without secrets, and
// shows all of it.
type Output struct {
	io.WriteCloser // takes secrets out, before a part is left out that might begin within one
	kept           ends
}

// NewOutput is an output of one build; stream may be nil.
func NewOutput(stream io.Writer, secrets *redact.Redactor) *Output {
	o := &Output{kept: ends{show: cmp.Or(stream, io.Discard)}}
	o.WriteCloser = cmp.Or(secrets, &redact.Redactor{}).Writer(&o.kept)
	return o
}

// Text ends the output and gives what was kept, with a word about what was not.
func (o *Output) Text() string {
	_ = o.Close() // what it held back goes to memory, and cannot fail
	k := &o.kept
	cut := max(0, len(k.tail)-half)
	if left := k.left + cut; left > 0 {
		return hostfs.Text(k.head) + fmt.Sprintf("\n[%d bytes of output are left out here]\n", left) + hostfs.Text(k.tail[cut:])
	}
	return hostfs.Text(append(k.head, k.tail...))
}

// ends are those of what is written.
type ends struct {
	show       io.Writer
	head, tail []byte
	left       int // bytes between them
}

// Write implements io.Writer.
func (k *ends) Write(p []byte) (int, error) {
	_, _ = k.show.Write(p) // that nobody looks is no reason to stop a build
	free := min(half-len(k.head), len(p))
	k.head = append(k.head, p[:free]...)
	k.tail = append(k.tail, p[free:]...)
	if cut := len(k.tail) - half; cut > half { // seldom, so that little is moved
		k.left += cut
		k.tail = append(k.tail[:0], k.tail[cut:]...)
	}
	return len(p), nil
}
