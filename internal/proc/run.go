package proc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"abl/internal/redact"
)

// Command is exec.CommandContext with an environment that Env left.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = Env(os.Environ())
	return cmd
}

// Env leaves out of an environment, given as NAME=value, the variables whose
// name says that they are secret, and those that repeat the value of one.
// Addresses of proxies stay, their passwords too: without them nothing is
// fetched where they are needed.
func Env(environ []string) []string {
	var secrets []string
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); redact.Named(name) && len(value) >= redact.Shortest {
			secrets = append(secrets, value)
		}
	}
	kept := make([]string, 0, len(environ))
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !redact.Named(name) && !slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(value, s) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}

// Run starts cmd, waits for it and returns its exit code as ExitCode gives it.
// When ctx ends first, the command and its descendants are stopped within
// grace, and the error is the cause of ctx's end. cmd leads a process group of
// its own when the caller has said so in SysProcAttr.
func Run(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (int, error) {
	if err := context.Cause(ctx); err != nil {
		return -1, err
	}
	if err := cmd.Start(); err != nil {
		return -1, err
	}
	ended := Wait(cmd)
	select {
	case <-ended:
		return Code(cmd), nil
	case <-ctx.Done():
		Stop(cmd.Process.Pid, ended, grace)
		<-ended
		return Code(cmd), context.Cause(ctx)
	}
}

// Head keeps the beginning of an output, Max bytes of it.
type Head struct {
	Max  int
	Kept bytes.Buffer
	Cut  bool
}

// Write takes all and keeps what still fits.
func (h *Head) Write(b []byte) (int, error) {
	fits := min(len(b), h.Max-h.Kept.Len())
	h.Kept.Write(b[:fits])
	h.Cut = h.Cut || fits < len(b)
	return len(b), nil
}

// Wait waits for a started command in the background and closes ended then;
// from then on Code may be asked.
func Wait(cmd *exec.Cmd) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // what it says is in ProcessState, or is about pipes that others hold
	}()
	return done
}

// ExitCode is how a shell would report the end of a process: its exit code, or
// 128 and the signal that killed it.
func ExitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// Code is ExitCode for a command that has been waited for.
func Code(cmd *exec.Cmd) int { return ExitCode(cmd.ProcessState.Sys().(syscall.WaitStatus)) }

// Pause waits for d, or until ctx ends: then the error is why it did.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
