package phase

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// gate returns a step that creates the file at-NAME in the workspace and waits for the file
// go-NAME. The command is one line, because the Gemini CLI prints only the name of the script
// that several lines become.
func gate(t *testing.T, name string) agent.Step {
	t.Helper()
	_, commands, _ := strings.Cut(lab.File(t, "steps/gate.sh"), "\n") // after the comment
	commands = strings.ReplaceAll(strings.TrimSpace(commands), "\n", "; ")
	return run(strings.ReplaceAll(commands, "GATE", name))
}

// behindProxy returns a project and the proxy of its engine. Its Builder waits at the gate
// "engine".
func behindProxy(t *testing.T) (*lab.Project, *lab.Proxy) {
	t.Helper()
	px := lab.NewProxy(t) // created before the project, whose cleanup uses it
	p := newProject(t, nodeApp, builds(write("server.mjs", server), gate(t, "engine")), verifies())
	p.Env = append(p.Env, "DOCKER_HOST="+px.Host)
	return p, px
}

// running returns the ids of the project's running containers.
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

// A call meets three troubles of the engine. First the user removes its container. Then the
// engine stops and its containers end, as after a restart: abl repeats the call each time. Then
// the engine stops responding while the containers continue: abl waits for the call. Last, the
// user kills the app's container while the Verifier tests the app: abl calls the Verifier again
// with a new app.
func TestCallsSurviveTheEngine(t *testing.T) {
	px := lab.NewProxy(t) // created before the project, whose cleanup uses it
	v := verifies()
	v.Steps = append([]agent.Step{gate(t, "verifier"), must(0, `curl -sf "$ABL_APP_URL/"`)}, v.Steps...)
	p := newProject(t, nodeApp, builds(write("server.mjs", server), gate(t, "builder")), v)
	p.Env = append(p.Env, "DOCKER_HOST="+px.Host)

	var atBuilder, atVerifier int
	var notes []string
	r := watch(p, func(e state.Event, _ *os.Process) {
		switch {
		case e.Kind == state.Action && strings.Contains(e.Text, "at-builder"):
			switch atBuilder++; atBuilder {
			case 1:
				docker(t, "rm", "-f", "abl-"+p.ID()+"-p1-build-1.1")
			case 2:
				// The engine lists a container a moment after its program has started.
				for len(running(t, p, "label=abl.kind=role")) == 0 {
					time.Sleep(20 * time.Millisecond)
				}
				px.Refuse()
				docker(t, append([]string{"kill"}, running(t, p)...)...)
			case 3:
				px.Refuse()
				p.Write("src/go-builder", "")
			}
		case e.Kind == state.Action && strings.Contains(e.Text, "at-verifier"):
			if atVerifier++; atVerifier == 1 {
				docker(t, "kill", "abl-"+p.ID()+"-app")
			}
			p.Write(".abl/tests/go-verifier", "")
		case e.Kind == state.Note:
			notes = append(notes, e.Text)
			if strings.Contains(e.Text, "the engine does not respond") {
				px.Accept()
			}
		}
	}, "phase", "1")
	var ends []string
	for _, e := range of(events(t, r), state.CallEnd) {
		// A container that is killed first has the class engine.
		ends = append(ends, e.Role+" "+strings.Replace(e.Class, "lost", "engine", 1))
	}
	const want = "builder engine, builder engine, builder done, verifier app, verifier done"
	if got := strings.Join(ends, ", "); r.Code != 0 || got != want {
		t.Errorf("got exit %d and the calls %q, want %q: %s", r.Code, got, want, r.Stderr)
	}
	for _, text := range []string{"the engine does not respond", "the engine responds again"} {
		if got := strings.Count(strings.Join(notes, "\n"), text); got != 2 {
			t.Errorf("got %d notes that %s, want 2: %q", got, text, notes)
		}
	}
	if got := verdictsOf(p); got != "1 pass" {
		t.Errorf("iteration and verdict: got %q, want %q", got, "1 pass")
	}
	checkNothingLeft(p)
}

// The engine does what abl requests, but its responses are lost. abl does nothing twice.
func TestLostEngineResponses(t *testing.T) {
	lab.Long(t)
	p, px := behindProxy(t)
	p.Write("src/go-engine", "")
	requests := []string{"/containers/create", "/start", "DELETE /", "/stop"}
	lost := 0
	px.Drop(requests[0])
	r := watch(p, func(state.Event, *os.Process) {
		if px.Drops() > lost && lost+1 < len(requests) {
			lost++
			px.Drop(requests[lost])
		}
	}, "phase", "1")
	if got := px.Drops(); r.Code != 0 || got < len(requests)-1 { // a call that ends normally needs no stop
		t.Errorf("got exit %d and %d lost responses, want 0 and %d or more: %s", r.Code, got, len(requests)-1, r.Stderr)
	}
	if got, want := calls(p), "p1-build-1.1 p1-verify-1.1"; got != want {
		t.Errorf("calls: got %q, want %q", got, want)
	}
	checkNothingLeft(p)
}

// The engine cannot stop a call at its deadline. abl kills its processes, and the report and the
// record of the call mention that.
func TestEngineCannotStop(t *testing.T) {
	p, px := behindProxy(t)
	p.Write(".abl/config.yaml", replacing(p.Read(".abl/config.yaml"), "loop: {call_timeout: 3s}\n"))
	script(p, builds(run(lab.File(t, "steps/ignores-sigterm.sh"))))
	px.Fail("/stop?", lab.Stuck)
	r := p.Must(5, "phase", "1", "--json")
	all := events(t, r)
	ends := of(all, state.CallEnd)
	if len(ends) == 0 || ends[0].Class != "timeout" {
		t.Fatalf("ends of calls: got %+v, want a timeout first", ends)
	}
	const cause = "did not receive an exit event"
	wants(t, "the call's end", ends[0].Text, "call_timeout", cause, "abl killed its processes")
	wants(t, "the call's record", p.Read(".abl/logs/calls/p1-build-1.1/outcome.json"), cause)
	var notes []string
	for _, e := range of(all, state.Note) {
		notes = append(notes, e.Text)
	}
	wants(t, "the notes", strings.Join(notes, "\n"), "the engine could not stop container", cause)
	checkNothingLeft(p)
}

// abl reports an engine that does not listen, and starts no call.
func TestNoEngine(t *testing.T) {
	p, px := behindProxy(t)
	px.Refuse()
	r := p.Run("phase", "1")
	if r.Code != 7 {
		t.Errorf("got exit %d, want 7", r.Code)
	}
	wants(t, "the error", r.Stderr, "engine not reachable", px.Host)
	if p.Exists(".abl/logs/calls/p1-build-1.1") {
		t.Error("got a call, want none")
	}
	px.Accept()
}
