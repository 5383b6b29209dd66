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

	"abl/e2e/lab"
	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/sandboxtest"
	"abl/orchestrator/state"
)

// plant is a scene whose engine lives in this process and outlives every
// supervisor that is killed.
type plant struct {
	*scene
	engine *sandboxtest.Engine
	socket string
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	dir := t.TempDir()
	p := &plant{scene: &scene{Project: &lab.Project{TB: t, Dir: dir}, points: t.TempDir()}, engine: &sandboxtest.Engine{}}
	p.engine.Scripts = map[string]sandboxtest.Script{"": p.play}
	for _, name := range []string{"src", ".abl/tests", ".abl/logs/calls"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.Write(".abl/specs/phase1.md", "# Phase 1: A word\n\n## Context\n\nA word.\n\n## Contracts\n\n- read word.txt → right\n")
	if err := state.Save(filepath.Join(dir, ".abl/state.json"), state.New(dir)); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "abl") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	p.socket = filepath.Join(sockets, "s")
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(sockets) })
	go serve(l, p.engine)
	return p
}

// play is what runs in a box, by its kind.
func (p *plant) play(b sandbox.Box) sandbox.Exit {
	switch kind := b.Labels[sandbox.LabelKind]; {
	case kind == "role" && b.Labels[sandbox.LabelRole] == "builder":
		return p.builds(b)
	case kind == "role":
		return p.verifies(b)
	case kind == "replay":
		return p.replays(b)
	case kind == "app":
		add(b, dirs.Events, "{\"event\":\"listening\"}\n")
	case kind == "stand-in":
		p.engine.Print(b.Name, "{\"ready\":\":1\"}\n")
	}
	<-p.Context().Done() // it goes on until it is stopped
	return sandbox.Exit{}
}

// moment is what an agent takes for its work, so that a supervisor can be killed
// in the middle of it.
const moment = 5 * time.Millisecond

// step is the step of the call that a box belongs to.
func step(b sandbox.Box) (n int) {
	attempt := 0 // another one than the first is a call too many, which the comparison finds
	for _, form := range []string{"p1-build-%d.%d", "p1-verify-%d.%d"} {
		if _, err := fmt.Sscanf(b.Labels[sandbox.LabelCall], form, &n, &attempt); err == nil {
			return n
		}
	}
	panic("no call: " + b.Labels[sandbox.LabelCall])
}

// add puts a line at the end of a file in a box: a call that is repeated would
// leave one too many.
func add(b sandbox.Box, path, text string) {
	name := sandboxtest.Host(b, path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		panic(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		panic(err)
	}
}

func (p *plant) builds(b sandbox.Box) sandbox.Exit {
	n := step(b)
	time.Sleep(moment)
	add(b, dirs.Src+"/log.txt", fmt.Sprintf("builder %d\n", n))
	add(b, dirs.Src+"/word.txt", map[bool]string{true: "wrong\n", false: "right\n"}[n == 1])
	add(b, fmt.Sprintf("%s/builder_reports/phase1_v%d_done.md", dirs.Src, n), "done\n")
	time.Sleep(moment)
	return sandbox.Exit{}
}

func (p *plant) verifies(b sandbox.Box) sandbox.Exit {
	n := step(b)
	time.Sleep(moment)
	add(b, dirs.Tests+"/log.txt", fmt.Sprintf("verifier %d\n", n))
	if n == 1 {
		add(b, dirs.Tests+"/run.sh", "tests\n")
		add(b, dirs.Tests+"/failed_specs.md", "SPEC: read word.txt → right\nINPUT: word.txt\nOBSERVED: wrong\n")
	}
	add(b, fmt.Sprintf("%s/verifier_reports/phase1_v%d_done.md", dirs.Tests, n), "done\n")
	time.Sleep(moment)
	return sandbox.Exit{}
}

// replays prints what the tests would: ok against the app, once it is right.
func (p *plant) replays(b sandbox.Box) sandbox.Exit {
	verdict := "not ok 1 - P1.C1\n  ---\n  input: word.txt\n  observed: wrong\n  ...\n"
	if b.Labels[sandbox.LabelRole] == "app" && strings.Contains(b.Labels[sandbox.LabelCall], "p1-verify-2.1") {
		verdict = "ok 1 - P1.C1\n"
	}
	add(b, dirs.Out, "1..1\n"+verdict)
	return sandbox.Exit{}
}

// supervisor is a child process that supervises the plant, with failpoints set.
func (p *plant) supervisor(points string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+p.Dir, childSocket+"="+p.socket, "ABL_FAILPOINT_DIR="+p.points, "ABL_FAILPOINTS="+points)
	return cmd
}

// ends lets a supervisor come to the end, and wants nothing left on the engine.
func (p *plant) ends(points string) {
	p.Helper()
	if out, err := p.supervisor(points).CombinedOutput(); err != nil {
		p.Fatalf("%v: %s", err, out)
	}
	if left := p.engine.Left(); len(left) > 0 {
		p.Errorf("left on the engine: %v", left)
	}
}

var undisturbed struct {
	sync.Once
	print  string
	visits map[string]int
	took   time.Duration
}

// expected is what every disturbed supervisor has to come to.
func expected(t *testing.T) (string, map[string]int, time.Duration) {
	t.Helper()
	u := &undisturbed
	u.Do(func() {
		t.Run("undisturbed", func(t *testing.T) {
			p := newPlant(t)
			begun := time.Now()
			p.ends(strings.Join(places(t), "=note;") + "=note")
			u.took, u.visits, u.print = time.Since(begun), p.visited(), p.print()
		})
	})
	if u.print == "" {
		t.Fatal("the undisturbed run failed")
	}
	return u.print, u.visits, u.took
}

// onlyReal are the places that no supervisor of an engine in memory comes by: the
// stage that cmd/abl sets, and gateways.
const onlyReal = "lease. lock. stage. strike. gateway."

// A supervisor is killed at each visit of each place, a real process with an
// engine that outlives it, and another one comes to the same end.
func TestKilledAtEveryVisit(t *testing.T) {
	want, visits, _ := expected(t)
	for _, name := range places(t) {
		met := visits[name]
		elsewhere := never(name)
		for _, prefix := range strings.Fields(onlyReal) {
			elsewhere = elsewhere || strings.HasPrefix(name, prefix)
		}
		if (met == 0) != elsewhere {
			t.Errorf("%s is met %d times", name, met)
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
					t.Fatalf("it was not killed: %v: %s", err, out)
				}
				p.ends("")
				same(t, want, p.print())
			})
		}
	}
}

// Killed at moments that nobody chose, again and again, it comes to the same end.
func TestKilledAgainAndAgain(t *testing.T) {
	want, _, took := expected(t)
	moments, runs := dice(t), 40
	if os.Getenv("ABL_SOAK") != "" {
		runs = 1000
	}
	const kills = 5
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
				time.Sleep(wait) // the moment is what is tested
				cmd.Process.Kill()
				cmd.Wait()
			}
			p.ends("")
			same(t, want, p.print())
		})
	}
}
