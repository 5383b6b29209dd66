package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/hostfs"
	"abl/internal/proc"
)

func stopCommand() cli.Command {
	return cli.Command{
		Name:  "stop",
		Group: cli.Running,
		Usage: "stop the abl that works on this project in another terminal",
		Long: `Sends SIGTERM to the abl that works on the project, and waits until it has saved its
state and ended. The run ends with exit code 143, and the same command resumes it. If no
abl works on the project, it does nothing. Ctrl-C only ends the waiting.

Stop abl code-commit and abl learn with Ctrl-C: abl stop cannot find them.`,
		Run: project.Looking(runStop),
	}
}

// pollStop is the time between two checks of the lock.
const pollStop = 100 * time.Millisecond

func runStop(ctx context.Context, s *project.Project) error {
	lock := s.Paths.Lock()
	if !hostfs.Locked(lock) {
		_, err := fmt.Fprintln(s.In.Stdout, "no abl works on this project")
		return err
	}
	pid, err := ablAt(lock)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGTERM)
	}
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot stop the abl that works on this project: %w", err),
			"press Ctrl-C in its terminal")
	}
	s.In.Say("process %d is saving its state", pid)
	for hostfs.Locked(lock) {
		if err := proc.Pause(ctx, pollStop); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(s.In.Stdout, "stopped process", pid)
	return err
}

// ablAt returns the process that holds a lock. It fails if the process is on another machine or is not
// abl: the number of a process in a container is another one outside.
func ablAt(lock string) (pid int, err error) {
	h, err := hostfs.LastHolder(lock)
	if err != nil {
		return 0, err
	}
	if here, _ := os.Hostname(); here != h.Host {
		return 0, fmt.Errorf("it is process %d on %q", h.PID, h.Host)
	}
	if name := proc.Name(h.PID); filepath.Base(name) != "abl" {
		return 0, fmt.Errorf("process %d, which holds the lock, runs %q", h.PID, name)
	}
	return h.PID, nil
}
