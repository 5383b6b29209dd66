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

// Command is exec.CommandContext with the environment Env(os.Environ()).
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = Env(os.Environ())
	return cmd
}

// Env returns an environment (NAME=value) without the variables whose name marks a secret, and
// without those whose value contains such a secret. URLs of proxies stay with their passwords,
// because programs need them.
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

// Run starts cmd, waits for it and returns its exit code (see ExitCode). If ctx is done first, Run
// stops the command and its descendants within grace and returns the cause. cmd leads a process
// group if the caller set SysProcAttr.
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

// Head is a writer that keeps the first Max bytes.
type Head struct {
	Max  int
	Kept bytes.Buffer
	Cut  bool
}

// Write keeps the part of b that fits. It never fails.
func (h *Head) Write(b []byte) (int, error) {
	fits := min(len(b), h.Max-h.Kept.Len())
	h.Kept.Write(b[:fits])
	h.Cut = h.Cut || fits < len(b)
	return len(b), nil
}

// Wait waits for a started command in the background and then closes ended. Code is valid
// afterwards.
func Wait(cmd *exec.Cmd) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // ProcessState has the result; other errors are about inherited pipes
	}()
	return done
}

// ExitCode returns the exit code of a process as a shell reports it: 128 plus the signal if a
// signal killed it.
func ExitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// Code is ExitCode for a command that has ended.
func Code(cmd *exec.Cmd) int { return ExitCode(cmd.ProcessState.Sys().(syscall.WaitStatus)) }

// Pause waits for d. It returns the cause if ctx is done first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
