// Package failpoint lets a test stop, kill or fail abl at a named place. With
// ABL_FAILPOINTS empty, as it always is outside tests, a place costs one read
// of a variable.
//
// ABL_FAILPOINTS is a list such as "intent.saved=kill;git.staged=2*off->exit(3)":
// places parted by ";", each with actions parted by "->". An action is taken N
// times when N* stands before it, else every time; when it is used up the next
// one follows, and after the last nothing. Actions are
//
//	off        nothing
//	kill       SIGKILL to this process
//	term, int  that signal to this process
//	exit(N)    end with this code, without cleaning up
//	sleep(MS)  wait for milliseconds
//	note       add the place's name as a line to ABL_FAILPOINT_DIR/visits
//	pause      make the file ABL_FAILPOINT_DIR/PLACE.here, wait for PLACE.go
//	error(TEXT) fail with this text, where the place can fail (Err)
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

// plan is what the environment asks for, read once.
var plan = sync.OnceValue(func() *points { return mustParse(os.Getenv(variable)) })

// mustParse ends abl over a mistake: a test whose failpoint is not understood
// would pass without having tested anything.
func mustParse(spec string) *points {
	p, err := parse(spec)
	if err != nil {
		fmt.Fprintf(os.Stderr, "abl: cannot read %s: %v\n", variable, err)
		os.Exit(2)
	}
	return p
}

// Here is a place at which nothing can fail. An error(TEXT) there is a mistake
// of the test and panics.
func Here(name string) {
	if err := Err(name); err != nil {
		panic(fmt.Sprintf("internal error: failpoint %q cannot fail: %v", name, err))
	}
}

// Err is a place that fails when a test says so.
func Err(name string) error {
	p := plan()
	if p == nil {
		return nil
	}
	return p.next(name).do(name)
}

// points are the actions that are left for each place.
type points struct {
	mu   sync.Mutex
	left map[string][]action
}

// next takes the action of this visit to a place.
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
		select {} // it may take a moment, and nothing more may happen in it
	}
	return nil
}

// note tells a test that the place was visited.
func note(name string) error {
	f, err := os.OpenFile(os.Getenv(folder)+"/visits", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	return errors.Join(err, f.Close())
}

// pause says that the place is reached and waits until a test has looked around
// and makes the file.
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
