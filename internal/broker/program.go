package broker

import (
	"context"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

// A background command that lives so long has started the system.
const backgroundAlive = time.Second

// program is one that is meant to stay: the app, or a background command.
type program struct {
	*server
	name, command string

	mu      sync.Mutex
	current *run
}

// run is one life of a program. Its end is told once: by who claims it first.
type run struct {
	cmd     *exec.Cmd
	started time.Time
	ended   <-chan struct{}
	claimed atomic.Bool
}

func (r *run) claim() (mine bool) { return r.claimed.CompareAndSwap(false, true) }

// endedEarly says whether r has ended by now, and claims that.
func (r *run) endedEarly() (code int, mine bool) {
	select {
	case <-r.ended:
		return proc.Code(r.cmd), r.claim()
	default:
		return 0, false
	}
}

// shell is a declared command as it is started: by a shell, in a session of its
// own, so that all of it can be ended.
func (s *server) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.SysProcAttr = s.spec.Dir, &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = s.log.pipe, s.log.pipe
	return cmd
}

// start starts the program, which must not be running.
func (p *program) start() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.shell(p.command)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.current = &run{cmd: cmd, started: time.Now(), ended: proc.Wait(cmd)}
	return p.current, nil
}

// watch reports when r ends, unless somebody claims its end before. A signal that comes
// with a declared command, such as one that kills the app, is the command's.
func (p *program) watch(r *run) {
	go func() {
		<-r.ended
		if !r.claim() {
			return
		}
		const hangup, interrupt, kill, terminate = 129, 130, 137, 143
		code := proc.Code(r.cmd)
		signalled := slices.Contains([]int{hangup, interrupt, kill, terminate}, code)
		asked := signalled && (p.running.Load() > 0 || time.Since(time.Unix(0, p.ran.Load())) < stopGrace)
		p.log.note("%s ended with exit code %d", p.name, code)
		p.events.add(helper.Event{Event: EventExited, Name: p.name, Exit: &code, MS: since(r.started), Asked: asked})
	}()
}

// stop ends the program with all that it started; it may have ended before.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return
	}
	p.current.claim()
	proc.Stop(p.current.cmd.Process.Pid, p.current.ended, stopGrace)
	<-p.current.ended
	p.current = nil
}

// background starts a command that is meant to stay, anew when it is running, and
// answers once it has lived for a while or the app's port answers.
func (s *server) background(ctx context.Context, c *declared) helper.CommandReply {
	c.program.stop()
	r, err := c.program.start()
	if err != nil {
		return helper.CommandReply{Exit: exitNotRun, Error: "cannot run " + c.Name}
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundAlive)
	defer cancel()
	for up := false; !up; {
		select {
		case <-r.ended:
			if r.claim() {
				return helper.CommandReply{Exit: proc.Code(r.cmd)}
			}
			return helper.CommandReply{Exit: 1}
		case <-ctx.Done():
			up = true
		case <-time.After(probeEvery):
			up = s.app != nil && prober{helper.App{Port: s.spec.App.Port}, s.host}.probe(ctx, s.host).ready
		}
	}
	c.program.watch(r)
	return helper.CommandReply{}
}
