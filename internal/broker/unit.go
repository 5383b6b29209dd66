package broker

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"abl/internal/proc"
)

// unit is a program that is meant to stay: the app, or a background command.
type unit struct {
	command string
	dir     string
	output  *os.File
	exited  func(code int, ran time.Duration) // called when it ends without having been stopped

	mu      sync.Mutex
	current *run
}

// run is one life of a unit.
type run struct {
	cmd     *exec.Cmd
	started time.Time
	ended   <-chan struct{}
	once    sync.Once // the end is reported once, or never when it was asked for
}

// claim says whether the caller is the one to report the end of r.
func (r *run) claim() (mine bool) {
	r.once.Do(func() { mine = true })
	return mine
}

// shell is a declared command as it is started: by a shell, in a session of its
// own, so that all of it can be ended.
func shell(command, dir string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// start starts the unit, which must not be running.
func (u *unit) start() (*run, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	cmd := shell(u.command, u.dir)
	cmd.Stdout, cmd.Stderr = u.output, u.output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, started: time.Now(), ended: proc.Wait(cmd)}
	u.current = r
	return r, nil
}

// watch calls exited when r ends, unless somebody claims its end before.
func (u *unit) watch(r *run) {
	go func() {
		<-r.ended
		if r.claim() {
			u.exited(proc.Code(r.cmd), time.Since(r.started))
		}
	}()
}

// stop ends the unit with all that it started; it may have ended before.
func (u *unit) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.current == nil {
		return
	}
	u.current.claim()
	proc.Stop(u.current.cmd.Process.Pid, u.current.ended, stopGrace)
	<-u.current.ended
	u.current = nil
}
