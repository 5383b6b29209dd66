//go:build linux

package main

import (
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

	"golang.org/x/sys/unix"
)

// Exit codes as a shell gives them.
const (
	exitDeadline = 124 // as timeout(1)
	exitUnproven = 125
	exitNotRun   = 126
	exitNotFound = 127
)

// lastGrace is what it may take to end an agent after its deadline.
const lastGrace = deadlineGrace + 5*time.Second

// runAgent starts an agent as the RunSpec in the file at path says, with its output in
// files of the call, and ends it at the deadline when nobody else did. It writes one
// RunEnd as a line of JSON to out, and returns the exit code that belongs to it. Where
// the spec asks for a probe, its answer is the line before.
func runAgent(ctx context.Context, path string, out io.Writer) int {
	end := runSpec(ctx, path, out)
	if err := tell(out, end); err != nil && end.Exit == 0 {
		return exitNotRun
	}
	return end.Exit
}

// tell writes one line with one write.
func tell(out io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}

func runSpec(ctx context.Context, path string, out io.Writer) helper.RunEnd {
	spec, err := readSpec(path)
	if err != nil {
		return helper.RunEnd{Exit: exitNotRun, Error: err.Error()}
	}
	if err := probe.First(ctx, spec.Probe, out); err != nil {
		return helper.RunEnd{Exit: exitUnproven, Error: err.Error(), Unproven: true}
	}
	files, err := openFiles(spec)
	if err != nil {
		return helper.RunEnd{Exit: exitNotRun, Error: err.Error()}
	}
	defer closeAll(files)

	// Orphans of the agent become children of this process, so that they can be
	// found and ended, whatever group or session they are in.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return helper.RunEnd{Exit: exitNotRun, Error: fmt.Sprintf("cannot become subreaper: %v", err)}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	if spec.Deadline > 0 { // for an agent that stops this process
		if err := armDeadMan(max(time.Until(time.Unix(spec.Deadline, 0)), 0) + lastGrace); err != nil {
			return helper.RunEnd{Exit: exitNotRun, Error: err.Error()}
		}
	}
	before := listening()
	pid, end := start(spec, files)
	if end.Error != "" {
		return end
	}
	b := bounds{limit: time.Duration(spec.LimitMS) * time.Millisecond}
	if spec.Deadline > 0 {
		b.deadline = time.Unix(spec.Deadline, 0)
	}
	if b.limit > 0 {
		b.look = func() string { return newPorts(before, listening()) }
	}
	end = supervise(pid, b, signals)
	for _, f := range files[1:] {
		if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
			end.Error = fmt.Sprintf("cannot make the output durable: %v", err)
		}
	}
	return end
}

// readSpec reads what to run and goes to the folder where it is to run.
func readSpec(path string) (helper.RunSpec, error) {
	spec, err := helper.Read[helper.RunSpec](path)
	if err != nil {
		return spec, fmt.Errorf("cannot read what to run: %w", err)
	}
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return spec, fmt.Errorf("cannot run an empty command")
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return spec, fmt.Errorf("cannot run in %q: %w", spec.Dir, err)
	}
	return spec, nil
}

// openFiles opens the child's descriptors 0, 1 and 2. The output files exist
// already: abl reads them through descriptors of its own, so a new file would
// never be seen.
func openFiles(spec helper.RunSpec) (files []*os.File, err error) {
	stdin := spec.Stdin
	if stdin == "" {
		stdin = os.DevNull
	}
	const appending = os.O_WRONLY | os.O_APPEND
	for _, f := range []struct {
		name string
		flag int
	}{{stdin, os.O_RDONLY}, {spec.Stdout, appending}, {spec.Stderr, appending}} {
		file, err := os.OpenFile(f.name, f.flag, 0)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("cannot open a file of the call: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// start uses ForkExec rather than os/exec: whoever is a subreaper waits for any
// child, and os/exec waits for its own.
func start(spec helper.RunSpec, files []*os.File) (int, helper.RunEnd) {
	notRun := func(code int, err error) (int, helper.RunEnd) {
		return 0, helper.RunEnd{Exit: code, Error: fmt.Sprintf("cannot start %q: %v", spec.Argv[0], err)}
	}
	path, err := exec.LookPath(spec.Argv[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return notRun(exitNotFound, err)
	}
	if err != nil {
		return notRun(exitNotRun, err)
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	pid, err := syscall.ForkExec(path, spec.Argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: fds,
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return notRun(exitNotRun, err)
	}
	return pid, helper.RunEnd{}
}
