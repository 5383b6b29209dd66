package broker

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

// A background command that lives so long has started the system.
const backgroundAlive = time.Second

// program is the app, or a declared command with what is known of it. One that is meant to
// stay, as the app or a background command, has a run.
type program struct {
	*server
	helper.Command
	turn chan struct{} // holds one token: the same command never runs twice at once

	mu      sync.Mutex
	current *run
}

// run is one life of a program.
type run struct {
	cmd     *exec.Cmd
	started time.Time
	ended   <-chan struct{}
	stopped bool // before it ended by itself
}

// shell is a declared command as it is started: by a shell, in a session of its
// own, so that all of it can be ended.
func (p *program) shell() *exec.Cmd {
	cmd := exec.Command("sh", "-c", p.Command.Command)
	cmd.Dir, cmd.SysProcAttr = p.spec.Dir, &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = p.log.pipe, p.log.pipe
	return cmd
}

// programCommand is one run of an app that is a program, which is its shell's last word.
func programCommand(command string, args [][]byte) *exec.Cmd {
	argv := []string{"-c", strings.TrimSpace(command) + ` "$@"`, helper.AppAlias}
	for _, arg := range args {
		argv = append(argv, string(arg))
	}
	cmd := exec.Command("sh", argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// start starts the program, which must not be running.
func (p *program) start() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.shell()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.current = &run{cmd: cmd, started: time.Now(), ended: proc.Wait(cmd)}
	return p.current, nil
}

// watch waits until r ends, and reports it unless abl stopped it. A signal that comes with a
// declared command, such as one that kills the app, is the command's.
func (p *program) watch(r *run) {
	<-r.ended
	p.mu.Lock()
	stopped := r.stopped
	p.mu.Unlock()
	if stopped {
		return
	}
	const hangup, interrupt, kill, terminate = 129, 130, 137, 143
	code := proc.Code(r.cmd)
	signalled := slices.Contains([]int{hangup, interrupt, kill, terminate}, code)
	asked := signalled && (p.running.Load() > 0 || time.Since(time.Unix(0, p.ran.Load())) < stopGrace)
	p.log.note("%s ended with exit code %d", p.Name, code)
	p.events.add(helper.Event{Event: EventExited, Name: p.Name, Exit: &code, MS: since(r.started), Asked: asked})
}

// stop ends the program with all that it started; it may have ended before.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return
	}
	select {
	case <-p.current.ended: // by itself: watch reports that, maybe only later
	default:
		p.current.stopped = true
	}
	proc.Stop(p.current.cmd.Process.Pid, p.current.ended, stopGrace)
	<-p.current.ended
	p.current = nil
}

// background starts a command that is meant to stay, anew when it is running, and
// answers once it has lived for a while.
func (p *program) background(ctx context.Context) helper.CommandReply {
	p.stop()
	r, err := p.start()
	if err != nil {
		return helper.CommandReply{Exit: exitNotRun, Error: "cannot run " + p.Name}
	}
	select {
	case <-r.ended:
		return helper.CommandReply{Exit: proc.Code(r.cmd)}
	case <-ctx.Done():
	case <-time.After(backgroundAlive):
	}
	go p.watch(r)
	return helper.CommandReply{}
}
