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

// backgroundAlive is the time after which a background command counts as started.
const backgroundAlive = time.Second

// program is the app or a declared command. The app and background commands have a run while they run.
type program struct {
	*server
	helper.Command
	turn chan struct{} // has room for one: the same command never runs twice at once

	mu      sync.Mutex
	current *run
}

// run is one process of a program.
type run struct {
	cmd     *exec.Cmd
	started time.Time
	ended   <-chan struct{}
	stopped bool // by abl
}

// shell returns the command of a program. A shell runs it in a separate session, so that stop can end
// all its processes.
func (p *program) shell() *exec.Cmd {
	cmd := exec.Command("sh", "-c", p.Command.Command)
	cmd.Dir, cmd.SysProcAttr = p.spec.Dir, &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = p.log.pipe, p.log.pipe
	return cmd
}

// programCommand returns the command of one run of an app of kind command. The shell gets the
// arguments behind the command.
func programCommand(command string, args [][]byte) *exec.Cmd {
	argv := []string{"-c", strings.TrimSpace(command) + ` "$@"`, helper.AppAlias}
	for _, arg := range args {
		argv = append(argv, string(arg))
	}
	cmd := exec.Command("sh", argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// start starts the program. It must not be running.
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

// watch waits until r ends, and writes an event unless abl stopped it. A signal during a declared
// command, such as one that kills the app, counts as sent by the command.
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

// stop ends the program and all its processes. It does nothing if the program has ended.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return
	}
	select {
	case <-p.current.ended: // watch writes the event, maybe later
	default:
		p.current.stopped = true
	}
	proc.Stop(p.current.cmd.Process.Pid, p.current.ended, stopGrace)
	<-p.current.ended
	p.current = nil
}

// background starts a background command, or restarts it. It returns when the command has run for
// backgroundAlive, or has ended.
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
