package proc

import (
	"context"
	"os/exec"
	"time"
)

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
