package phase

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// killers lists the containers of replays to kill, each once. The key is the container of tests
// whose start is the moment, with the number of its starts. In a value X stands for the container
// of the tests, and HOLDER for the one whose network it joins.
var killers = map[string][]string{
	"replay-app-1":  {"app", "X"},
	"replay-no-app": {"X", "HOLDER"},
	"replay-empty":  {"HOLDER", "X"},
	"replay-500":    {"X"},
}

// killsReplays kills the containers in killers until the test ends. killed returns the number of
// kills.
func killsReplays(p *lab.Project, killers map[string][]string) (killed func() int) {
	p.Helper()
	const form = `{{.Actor.Attributes.name}} {{index .Actor.Attributes "abl.role"}}`
	events := exec.Command("docker", "events", "--filter", "event=start", "--filter", "label=abl.project="+p.ID(),
		"--filter", "label=abl.kind=replay", "--format", form)
	out, err := events.StdoutPipe()
	if err == nil {
		err = events.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	var mu sync.Mutex
	started, n := map[string]int{}, 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			name, role, _ := strings.Cut(lines.Text(), " ")
			of := killers[role]
			if started[role]++; started[role] > len(of) {
				continue
			}
			prefix := "abl-" + p.ID() + "-"
			what := map[string]string{
				"X":      name,
				"HOLDER": prefix + "holder-" + strings.TrimPrefix(name, prefix),
			}[of[started[role]-1]]
			if what == "" {
				what = prefix + of[started[role]-1]
			}
			if text, err := exec.Command("docker", "kill", what).CombinedOutput(); err != nil {
				p.Errorf("cannot kill %s: %v: %s", what, err, text)
			}
			mu.Lock()
			n++
			mu.Unlock()
		}
	}()
	p.Cleanup(func() {
		_ = events.Process.Kill()
		<-ended
		_ = events.Wait()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// A replay is not evidence if its container, its holder, its witness or its app was killed: abl
// repeats it, without another call. Then an honest suite passes, and a suite that checks nothing
// does not.
func TestKilledReplaysAreNotEvidence(t *testing.T) {
	lab.Long(t)
	always := map[string][]string{}
	for _, role := range []string{"replay-no-app", "replay-empty", "replay-500"} {
		always[role] = []string{"X", "X", "X", "X"}
	}
	for _, c := range []struct {
		name, suite string
		killers     map[string][]string
		kills       int
		code        int
		says        string
	}{
		{
			name:    "honest",
			suite:   "honest-and-slow.sh",
			killers: killers,
			kills:   7,
			says:    ", abl repeats it: a container was ended from outside",
		},
		{
			name:    "checks-nothing",
			suite:   "checks-nothing-and-slow.sh",
			killers: killers,
			kills:   7,
			code:    4,
			says:    "P1.C1 is vacuous",
		},
		{
			name:    "checks-nothing-and-is-always-killed",
			suite:   "checks-nothing-and-slow.sh",
			killers: always,
			kills:   9,
			code:    4,
			says:    "P1.C1 is untried: its tests were not run with the app away",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.kills == 7 {
				lab.Long(t)
			}
			p := newProject(t, evidence, builds(write("server.mjs", server)), verifies(hasSuite(t, c.suite)))
			limits := "loop: {max_verifier_iterations: 1, no_progress: {unverified: 1}, "
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", limits, 1))
			var killed func() int
			r := watch(p, func(e state.Event, _ *os.Process) {
				if e.Kind == state.CallStart && e.Role == "builder" {
					killed = killsReplays(p, c.killers)
				}
			}, "phase", "1")
			all := events(t, r)
			if r.Code != c.code {
				t.Fatalf("got exit %d, want %d: %s", r.Code, c.code, r.Stderr)
			}
			if got := called(all); got != "p1-build-1.1 p1-verify-1.1" {
				t.Errorf("calls: got %s, want one of each role", got)
			}
			if got := killed(); got != c.kills {
				t.Errorf("killed containers: got %d, want %d", got, c.kills)
			}
			var said []string
			for _, e := range append(of(all, state.Verdict), of(all, state.Note)...) {
				said = append(said, e.Text)
			}
			wants(t, "the verdict and the notes", strings.Join(said, "\n"), c.says)
			checkNothingLeft(p)
		})
	}
}
