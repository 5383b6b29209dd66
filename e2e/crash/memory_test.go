package crash

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"abl/internal/testing/lab"
	"abl/internal/testing/play"
	"abl/internal/testing/sandboxtest"
)

// plant is a scene whose engine runs in this process and outlives every killed supervisor.
type plant struct {
	*scene
	made   *play.Plant
	engine *sandboxtest.Engine
	socket string
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	made := play.NewPlant(t)
	p := &plant{
		scene:  &scene{Project: &lab.Project{TB: t, Dir: made.Dir}, points: t.TempDir(), steps: 2},
		made:   made,
		engine: made.Engine,
	}
	p.socket = filepath.Join(lab.SocketDir(t), "s")
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l, p.engine)
	return p
}

// supervisor returns a child process that runs the plant's phase, with failpoints set.
func (p *plant) supervisor(points string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+p.Dir, childSocket+"="+p.socket, "GOGC=off",
		"ABL_FAILPOINT_DIR="+p.points, "ABL_FAILPOINTS="+points)
	return cmd
}

// runToEnd runs a supervisor to the end and checks that nothing is left on the engine.
func (p *plant) runToEnd(points string) {
	p.Helper()
	if out, err := p.supervisor(points).CombinedOutput(); err != nil {
		p.Fatalf("supervisor: got error %v, want none: %s", err, out)
	}
	if left := p.engine.Left(); len(left) > 0 {
		p.Errorf("left on the engine: got %v, want nothing", left)
	}
}

var undisturbed struct {
	sync.Once
	print  string
	visits map[string]visits
	took   time.Duration
}

// expected returns the result of an undisturbed supervisor.
func expected(t *testing.T) (string, map[string]visits, time.Duration) {
	t.Helper()
	u := &undisturbed
	u.Do(func() {
		t.Run("undisturbed", func(t *testing.T) {
			p := newPlant(t)
			begun := time.Now()
			p.runToEnd(strings.Join(places(t), "=note;") + "=note")
			u.took, u.visits, u.print = time.Since(begun), p.visited(), p.print()
		})
	})
	if u.print == "" {
		t.Fatal("result of the undisturbed run: got none, want one")
	}
	return u.print, u.visits, u.took
}

// onlyReal lists the places that a supervisor on an engine in memory does not reach: the
// environment that cmd/abl opens, and gateways.
const onlyReal = "owner. lock. stage. closing. gateway."

// A supervisor is killed at each visit of each place. It is a real process, and its engine
// outlives it. The next supervisor reaches the same end.
func TestKilledAtEveryVisit(t *testing.T) {
	want, all, _ := expected(t)
	for _, name := range places(t) {
		met := all[name].times
		elsewhere := never(name)
		for _, prefix := range strings.Fields(onlyReal) {
			elsewhere = elsewhere || strings.HasPrefix(name, prefix)
		}
		if (met == 0) != elsewhere {
			t.Errorf("visits of %s: got some %t (%d), want %t", name, met > 0, met, !elsewhere)
		}
		if testing.Short() {
			met = min(met, 1)
		}
		for nth := range met {
			points := fmt.Sprintf("%s=%d*off->kill", name, nth)
			if nth == 0 {
				points = name + "=kill"
			}
			t.Run(points, func(t *testing.T) {
				t.Parallel()
				p := newPlant(t)
				out, err := p.supervisor(points).CombinedOutput()
				if err == nil || !strings.Contains(err.Error(), syscall.SIGKILL.String()) {
					t.Fatalf("end of the supervisor: got %v, want %v: %s", err, syscall.SIGKILL, out)
				}
				p.runToEnd("")
				checkSame(t, want, p.print())
			})
		}
	}
}

// Killed repeatedly at random moments, a supervisor reaches the same end.
func TestKilledRepeatedly(t *testing.T) {
	moments := newRand(t)
	want, _, took := expected(t)
	const runs, kills = 1000, 5
	for i := range runs {
		var after [kills]time.Duration
		for k := range after {
			after[k] = time.Duration(moments.Int64N(int64(took)))
		}
		t.Run(fmt.Sprint(i, after), func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			for _, wait := range after {
				cmd := p.supervisor("")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(wait) // the duration is under test
				cmd.Process.Kill()
				cmd.Wait()
			}
			p.runToEnd("")
			checkSame(t, want, p.print())
		})
	}
}
