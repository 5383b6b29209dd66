// Package failpoint lets a test stop, kill or fail abl at a named place. Outside tests
// ABL_FAILPOINTS is empty, and a place costs one read of a variable.
//
// ABL_FAILPOINTS is a list such as "intent.saved=kill;git.staged=2*off->exit(3)". Places are
// separated by ";", and the actions of a place by "->". An action with the prefix N* is performed
// N times, then the next action follows. An action without a prefix is performed every time. After
// the last action nothing happens. The actions are
//
//	off        do nothing
//	kill       send SIGKILL to this process
//	term, int  send that signal to this process
//	exit(N)    exit with code N, without cleaning up
//	sleep(MS)  sleep for MS milliseconds
//	note       append the place's name as a line to ABL_FAILPOINT_DIR/visits
//	pause      create the file ABL_FAILPOINT_DIR/PLACE.here and wait for PLACE.go
//	error(TEXT) make Err return an error with this text
package failpoint

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	variable = "ABL_FAILPOINTS"
	folder   = "ABL_FAILPOINT_DIR"
)

// plan is the parsed value of ABL_FAILPOINTS.
var plan = sync.OnceValue(func() *points { return mustParse(os.Getenv(variable)) })

// mustParse exits if ABL_FAILPOINTS is invalid. A test whose failpoint is ignored would pass
// without having tested anything.
func mustParse(spec string) *points {
	p, err := parse(spec)
	if err != nil {
		fmt.Fprintf(os.Stderr, "abl: cannot read %s: %v\n", variable, err)
		os.Exit(2)
	}
	return p
}

// Here marks a place where nothing can fail. It panics if the action is error(TEXT).
func Here(name string) {
	if err := Err(name); err != nil {
		panic(fmt.Sprintf("internal error: failpoint %q cannot fail: %v", name, err))
	}
}

// Err marks a place that can fail. It returns an error if the action is error(TEXT).
func Err(name string) error {
	p := plan()
	if p == nil {
		return nil
	}
	return p.next(name).do(name)
}

// points holds the remaining actions of each place.
type points struct {
	mu   sync.Mutex
	left map[string][]action
}

// next returns the action for this visit to a place.
func (p *points) next(name string) action {
	p.mu.Lock()
	defer p.mu.Unlock()
	todo := p.left[name]
	if len(todo) == 0 {
		return action{}
	}
	now := todo[0]
	if now.times > 0 {
		if todo[0].times--; todo[0].times == 0 {
			p.left[name] = todo[1:]
		}
	}
	return now
}

// do performs the action; the zero action does nothing.
func (a action) do(name string) error {
	switch a.what {
	case "kill":
		return raise(unix.SIGKILL)
	case "term":
		return raise(unix.SIGTERM)
	case "int":
		return raise(unix.SIGINT)
	case "exit":
		os.Exit(a.number)
	case "sleep":
		time.Sleep(time.Duration(a.number) * time.Millisecond)
	case "note":
		return note(name)
	case "pause":
		return pause(name)
	case "error":
		return fmt.Errorf("failpoint %s: %w", name, errors.New(a.text))
	}
	return nil
}

func raise(sig unix.Signal) error {
	if err := unix.Kill(os.Getpid(), sig); err != nil {
		return err
	}
	if sig == unix.SIGKILL {
		select {} // the signal may arrive later, and nothing else may happen before
	}
	return nil
}

// note records that the place was visited.
func note(name string) error {
	f, err := os.OpenFile(os.Getenv(folder)+"/visits", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	return errors.Join(err, f.Close())
}

// pause reports that the place was reached and waits until the test creates the file PLACE.go.
func pause(name string) error {
	const between = 5 * time.Millisecond
	path := os.Getenv(folder) + "/" + name
	if err := os.WriteFile(path+".here", nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(path + ".go"); err == nil {
			return nil
		}
		time.Sleep(between)
	}
}
