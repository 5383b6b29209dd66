//go:build linux

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"abl/internal/broker"
	"abl/internal/helper"
	"abl/internal/proc"
)

const (
	defaultTimeout = 10 * time.Minute
	stopGrace      = 5 * time.Second
)

// run runs a declared command where it belongs.
func (t tool) run(ctx context.Context, c helper.Command) int {
	if t.URL != "" {
		reply, err := t.broker().Run(ctx, c.Name, os.Stdin)
		return t.show(reply, err)
	}
	if c.Background {
		return t.refuse("%s starts the system and stays, which only the app's container can do", c.Name)
	}
	return t.runHere(ctx, c)
}

func (t tool) restart(ctx context.Context) int {
	if t.URL == "" {
		return t.refuse("restart works where abl runs the app, which is not here")
	}
	reply, err := t.broker().Restart(ctx)
	return t.show(reply, err)
}

func (t tool) broker() broker.Client {
	return broker.Client{URL: t.URL, Token: t.Token}
}

// show prints what the broker tells of a command and returns its exit code.
func (t tool) show(reply helper.CommandReply, err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "abl-cmd: %v\n", err)
		return exitNotRun
	}
	_, _ = io.WriteString(os.Stdout, reply.Output)
	if reply.Truncated {
		fmt.Fprintln(os.Stderr, "abl-cmd: the output is longer; only its beginning is shown")
	}
	if reply.Error != "" {
		fmt.Fprintf(os.Stderr, "abl-cmd: %s\n", reply.Error)
	}
	return reply.Exit
}

// runHere runs a command in this container, on abl-cmd's own descriptors.
func (t tool) runHere(ctx context.Context, c helper.Command) int {
	limit := defaultTimeout
	if c.TimeoutMS > 0 {
		limit = time.Duration(c.TimeoutMS) * time.Millisecond
	}
	errLate := fmt.Errorf("%s was stopped after %v", c.Name, limit)
	cmd := exec.Command("sh", "-c", c.Command)
	cmd.Dir = t.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A person at a terminal keeps the command in the foreground.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal(os.Stdin)}
	code, err := bounded(ctx, cmd, limit, errLate)
	switch {
	case errors.Is(err, errLate):
		fmt.Fprintf(os.Stderr, "abl-cmd: %v\n", err)
		return exitTimeout
	case err != nil && code < 0:
		fmt.Fprintf(os.Stderr, "abl-cmd: cannot run %s: %v\n", c.Name, err)
		return exitNotRun
	}
	return code
}

// bounded runs a program until it ends, this one is told to end, or it is too late.
func bounded(ctx context.Context, cmd *exec.Cmd, limit time.Duration, late error) (exit int, err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	return proc.Run(ctx, cmd, stopGrace)
}

func terminal(f interface{ Fd() uintptr }) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
