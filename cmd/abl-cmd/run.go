//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/helper"
	"abl/internal/proc"
)

// Exit codes as a shell gives them.
const (
	exitDeadline = 124 // as timeout(1)
	exitUnproven = 125
	exitNotRun   = 126
	exitNotFound = 127
	exitKilled   = 137
)

// runAgent runs the agent of the RunSpec in the file at path, with its output in files of the call,
// and ends it at the deadline. It writes a RunEnd as a line of JSON to out, after a line for the
// probe if the spec asks for one. It returns the exit code of the RunEnd.
func runAgent(ctx context.Context, path string, out io.Writer) int {
	end, err := runSpec(ctx, path, out)
	if err != nil {
		end.Error, end.Exit = err.Error(), cmp.Or(end.Exit, exitNotRun)
	}
	if err := json.NewEncoder(out).Encode(end); err != nil {
		return cmp.Or(end.Exit, exitNotRun)
	}
	return end.Exit
}

// runSpec runs the command that a file describes, to its end or its deadline.
func runSpec(ctx context.Context, path string, out io.Writer) (end helper.RunEnd, err error) {
	spec, err := helper.Read[helper.RunSpec](path)
	if err != nil {
		return end, fmt.Errorf("cannot read the command to run: %w", err)
	}
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return end, errors.New("cannot run an empty command")
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return end, fmt.Errorf("cannot run in %q: %w", spec.Dir, err)
	}
	if err := probe.First(ctx, spec.Probe, out); err != nil {
		return helper.RunEnd{Exit: exitUnproven, Unproven: true}, err
	}
	// The output files exist already. abl has them open, so it would never see a new file.
	const appending = os.O_WRONLY | os.O_APPEND
	files, flags := make([]*os.File, 3), []int{os.O_RDONLY, appending, appending}
	for i, name := range []string{cmp.Or(spec.Stdin, os.DevNull), spec.Stdout, spec.Stderr} {
		if files[i], err = os.OpenFile(name, flags[i], 0); err != nil {
			return end, fmt.Errorf("cannot open a file of the call: %w", err)
		}
	}
	// Orphans of the agent become children of this process, so that it can end them, whatever their
	// group or session.
	if err := proc.Adopt(); err != nil {
		return end, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	b := bounds{grace: deadlineGrace, limit: time.Duration(spec.LimitMS) * time.Millisecond}
	if spec.Deadline > 0 {
		b.deadline = time.Unix(spec.Deadline, 0)
	}
	pid, code, err := start(spec.Argv, files)
	if err != nil {
		return helper.RunEnd{Exit: code}, err
	}
	end = supervise(pid, b, signals)
	end.Full = helper.FullPlaces()
	for _, f := range files[1:] {
		if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
			end.Error = fmt.Sprintf("cannot make the output durable: %v", err)
		}
	}
	return end, nil
}

// start starts a program as the leader of a process group. Only reap may wait for it.
func start(argv []string, files []*os.File) (pid, code int, err error) {
	path, err := exec.LookPath(argv[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 0, exitNotFound, err
	}
	var p *os.Process
	if err == nil {
		leads := &syscall.SysProcAttr{Setpgid: true}
		p, err = os.StartProcess(path, argv, &os.ProcAttr{Files: files, Sys: leads})
	}
	if err != nil {
		return 0, exitNotRun, err
	}
	return p.Pid, 0, nil
}
