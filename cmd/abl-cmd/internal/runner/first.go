package runner

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"abl/internal/proc"
)

// First stands in for an engine's init: as process 1 of a container it starts the
// program once more, passes signals on to it, waits for every orphan, and returns
// its exit code. An init of the engine's would have the user of the programs that
// it watches over, and its memory would be open to them.
func First(argv []string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot start %q: %v\n", argv[0], err)
		return exitNotRun
	}
	ended, _, status := reap(pid)
	for {
		select {
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok {
				syscall.Kill(pid, s)
			}
		case <-ended:
			return proc.ExitCode(status.ws)
		}
	}
}
