package phase

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// behind is a project whose engine stands behind a proxy. Its Builder waits for the
// file go when it is there as far as at.
func behind(t *testing.T) (*lab.Project, *lab.Proxy) {
	t.Helper()
	px := lab.NewProxy(t) // before the project, which is cleaned up through it
	p := newProject(t, nodeApp+"verify: {evidence: off}\n",
		builds(write("server.mjs", server), run("touch at; for i in $(seq 1000); do [ -e go ] && break; sleep 0.05; done; rm -f at go")), verifies())
	p.Env = append(p.Env, "DOCKER_HOST="+px.Host)
	return p, px
}

// running are the ids of the project's containers that the engine says run.
func running(t *testing.T, p *lab.Project, filters ...string) []string {
	args := []string{"ps", "-q", "--filter", "label=abl.project=" + p.ID()}
	for _, f := range filters {
		args = append(args, "--filter", f)
	}
	ids, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Error(err)
	}
	return strings.Fields(string(ids))
}

// The engine is away for a while in the middle of a call, and comes back: with the
// call still running, which then goes on, or with all that it ran stopped, as after
// a restart. Then the call is made again, with what it had written.
func TestEngineGoesAway(t *testing.T) {
	for _, c := range []struct {
		name    string
		stopped bool
		want    string // how the Builder's calls ended
	}{{"and its containers live", false, "done"}, {"and its containers with it", true, "engine done"}} {
		t.Run(c.name, func(t *testing.T) {
			if !c.stopped {
				lab.Long(t)
			}
			p, px := behind(t)
			go func() {
				// A program runs a moment before the engine says that its container does.
				for !p.Exists("src/at") || len(running(t, p, "label=abl.kind=role")) == 0 {
					time.Sleep(20 * time.Millisecond)
				}
				px.Away()
				if c.stopped {
					if out, err := exec.Command("docker", append([]string{"kill"}, running(t, p)...)...).CombinedOutput(); err != nil {
						t.Errorf("%v: %s", err, out)
					}
					_ = os.Remove(p.Dir + "/src/at")
				}
				time.Sleep(2 * time.Second) // longer than a call to the engine is repeated without patience
				p.Write("src/go", "")
				px.Back()
			}()
			r := p.Must(0, "phase", "1", "--json")
			var ends, notes []string
			for _, e := range events(t, r) {
				switch {
				case e.Kind == state.CallEnd && e.Role == "builder":
					ends = append(ends, e.Class)
				case e.Kind == state.Note:
					notes = append(notes, e.Text)
				}
			}
			if got := strings.Join(ends, " "); got != c.want {
				t.Errorf("the Builder's calls ended as %s, want %s", got, c.want)
			}
			wants(t, "what was said", strings.Join(notes, "\n"), "the engine does not answer", "the engine answers again")
			if got := verdictsOf(p); got != "1 pass" {
				t.Errorf("iteration and verdict: %s", got)
			}
			noLeftovers(p)
		})
	}
}

// The engine does what it is asked and its answer is lost: nothing is done twice.
func TestEnginesAnswersAreLost(t *testing.T) {
	lab.Long(t)
	for _, request := range []string{"/containers/create", "/start", "DELETE /", "/stop"} {
		t.Run(fmt.Sprint(request), func(t *testing.T) {
			p, px := behind(t)
			p.Write("src/go", "")
			px.Drop(request)
			p.Must(0, "phase", "1")
			if px.Drops() == 0 && request != "/stop" {
				t.Error("no answer was lost")
			}
			if got := calls(p); got != "p1-build-1.1 p1-verify-1.1" {
				t.Errorf("calls %s", got)
			}
			noLeftovers(p)
		})
	}
}

// The engine cannot stop a call at its deadline: abl kills its processes, and the report and
// the record of the call mention that.
func TestEngineCannotStop(t *testing.T) {
	p, px := behind(t)
	p.Write(".abl/config.yaml", replacing(p.Read(".abl/config.yaml"), "loop: {call_timeout: 3s}\n"))
	script(p, builds(run("trap '' TERM; (trap '' TERM; sleep 1000) & sleep 1000")))
	px.Fail("/stop?", lab.Stuck)
	r := p.Must(5, "phase", "1", "--json")
	all := events(t, r)
	ends := of(all, state.CallEnd)
	if len(ends) == 0 || ends[0].Class != "timeout" {
		t.Fatalf("calls ended as %+v, want a timeout", ends)
	}
	const cause = "did not receive an exit event"
	wants(t, "the call's end", ends[0].Text, "call_timeout", cause, "abl killed its processes")
	wants(t, "the call's record", p.Read(".abl/logs/calls/p1-build-1.1/outcome.json"), cause)
	var notes []string
	for _, e := range of(all, state.Note) {
		notes = append(notes, e.Text)
	}
	wants(t, "the notes", strings.Join(notes, "\n"), "the engine could not stop container", cause)
	noLeftovers(p)
}

// An engine that is not there is named before anything is begun.
func TestNoEngine(t *testing.T) {
	p, px := behind(t)
	px.Away()
	r := p.Run("phase", "1")
	if r.Code != 7 {
		t.Errorf("exit %d", r.Code)
	}
	wants(t, "the error", r.Stderr, "engine not reachable", px.Host)
	if p.Exists(".abl/logs/calls/p1-build-1.1") {
		t.Error("a call was begun")
	}
	px.Back()
}

// Somebody removes the container of a call, for which the engine kills it first: the
// call is made again, once.
func TestContainerRemoved(t *testing.T) {
	p, _ := behind(t)
	removed := 0
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == "builder" && strings.Contains(e.Text, "touch at") {
			if removed++; removed == 1 {
				docker(t, "rm", "-f", "abl-"+p.ID()+"-p1-build-1.1")
			}
			p.Write("src/go", "")
		}
	}, "phase", "1")
	ends := of(events(t, r), state.CallEnd)
	if r.Code != 0 || len(ends) != 3 || ends[0].Class != "lost" && ends[0].Class != "engine" || ends[1].Class != "done" {
		t.Errorf("exit %d: %+v\n%s", r.Code, ends, r.Stderr)
	}
	noLeftovers(p)
}

// The app's container ends while the Verifier tests it: that is not the Verifier's
// fault, and it is called again with a new app.
func TestAppGoesAway(t *testing.T) {
	lab.Long(t)
	v := verifies()
	v.Steps = append([]agent.Step{run("touch /tmp/at; for i in $(seq 1000); do [ -e go ] && break; sleep 0.05; done"), must(0, `curl -sf "$ABL_APP_URL/"`)}, v.Steps...)
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), v)
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == "verifier" && strings.Contains(e.Text, "touch") && !p.Exists(".abl/tests/go") {
			docker(t, "kill", "abl-"+p.ID()+"-app")
			p.Write(".abl/tests/go", "")
		}
	}, "phase", "1")
	var ends []string
	for _, e := range of(events(t, r), state.CallEnd) {
		ends = append(ends, e.Role+" "+e.Class)
	}
	if got := strings.Join(ends, ", "); r.Code != 0 || got != "builder done, verifier app, verifier done" {
		t.Errorf("exit %d, calls ended as %s: %s", r.Code, got, r.Stderr)
	}
	noLeftovers(p)
}
