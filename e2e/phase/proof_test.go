package phase

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/lab"
)

// proofOf is the stored proof of a container.
type proofOf struct {
	Weak    string        `json:"weak_network"`
	Made    sandbox.Proof `json:"made"`
	Inside  sandbox.Proof `json:"inside"`
	Unheard bool          `json:"unheard"`
	Failed  string        `json:"failed"`
}

func readProof(p *lab.Project, name string) (b proofOf) {
	p.Helper()
	if err := json.Unmarshal([]byte(p.Read(filepath.Join(".abl/logs/calls", name, "boundary.json"))), &b); err != nil {
		p.Fatalf("boundary.json of %s: got error %v, want valid JSON", name, err)
	}
	return b
}

// checkStoredProofs checks that every call of phase 1 and its app have a stored proof.
func checkStoredProofs(p *lab.Project) {
	p.Helper()
	for name, other := range map[string]string{
		"p1-build-1.1":      "/workspace/tests",
		"p1-verify-1.1":     "/workspace/src",
		"p1-verify-1.1/app": "/workspace/specs",
	} {
		b := readProof(p, name)
		if b.Failed != "" || b.Weak != "" || b.Unheard || b.Made.Err() != nil || b.Inside.Err() != nil {
			p.Errorf("%s: got %+v, want every check to hold", name, b)
		}
		var asked struct{ Absent []string }
		err := json.Unmarshal([]byte(p.Read(filepath.Join(".abl/logs/calls", name, "probe.json"))), &asked)
		if err != nil || !strings.Contains(strings.Join(asked.Absent, " "), other) {
			p.Errorf("%s: the paths that must be absent: got %v, %v, want %s among them", name, asked, err, other)
		}
		checks := []string{"writing in /abl/in", "other mounts", "environment inside"}
		if c, _ := b.Made.Get("network"); name == "p1-build-1.1" {
			if c.Got != "none" {
				p.Errorf("the network of the Builder, which reaches nobody: got %+v, want none", c)
			}
		} else {
			checks = append(checks, "the host by tcp", "next hops that answer", "resolver inside")
		}
		for _, check := range checks {
			if _, ok := b.Inside.Get(check); !ok {
				p.Errorf("%s: got %s, want %q among them", name, names(b.Inside), check)
			}
		}
	}
	if b := readProof(p, "p1-build-1.1"); !lab.Portable && !lab.Remote() &&
		!strings.Contains(names(b.Inside), "identity of /workspace/src/.git") {
		p.Errorf("got %s, want the identity of the history among them", names(b.Inside))
	}
	if !testing.Short() {
		wants(p, "abl doctor --boundary", p.Must(0, "doctor", "--boundary").Stdout, "-build-1.1 at ",
			"-verify-1.1 at ", "-app at ", " checks passed\n")
	}
}

func names(p sandbox.Proof) string {
	var all []string
	for _, c := range p {
		all = append(all, c.Name)
	}
	return strings.Join(all, ", ")
}

// A role's holder is connected to a network with egress. The next call does not start, and the
// run after that continues on new networks.
func TestWidenedNetworkIsFound(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "network: {allow: [npm]}\n"+nodeApp, builds(write("server.mjs", server)),
		call("verifier", 1, write("run.sh", suite, "0755"), refute("no"), report()), verifies(run("rm -f failed_specs.md")))
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallStart && e.Call == "p1-verify-1.1" {
			docker(t, "network", "connect", "bridge", "abl-"+p.ID()+"-holder-builder")
		}
	}, "phase", "1")
	if r.Code != 8 || !strings.Contains(r.Stderr, "call p1-build-2.1: the boundary is not proven: holder's networks is") {
		t.Errorf("got exit %d, want 8 because of the holder's networks: %s", r.Code, r.Stderr)
	}
	if b := readProof(p, "p1-build-2.1"); b.Failed == "" || len(b.Inside) > 0 {
		t.Errorf("stored proof: got %+v, want one that failed before the checks inside", b)
	}
	if text := p.Read(".abl/logs/calls/p1-build-2.1/stdout"); text != "" {
		t.Errorf("the agent ran: got output %s, want none", text)
	}
	checkNothingLeft(p)
	p.Must(0, "phase", "1")
	if b := readProof(p, "p1-build-2.1"); b.Failed != "" {
		t.Errorf("stored proof of the next run: got %+v, want one that did not fail", b)
	}
	checkNothingLeft(p)
}

// An engine that abl reaches over TCP is not taken for a local one. abl proves its networks as on any
// engine: a container listens on the engine's machine.
func TestEngineByTCP(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), verifies())
	p.Env = append(p.Env, "DOCKER_HOST=tcp://"+engineByTCP(t))
	t.Cleanup(func() { p.Env = nil })
	r := p.Must(0, "phase", "1", "--allow-weak-network", "--json")
	for _, e := range events(t, r) {
		switch e.Kind {
		case state.PhaseStart, state.CallStart, state.Outcome:
			if !e.Weak {
				t.Errorf("got an event without the label of a weak network: %+v, want the label", e)
			}
		}
	}
	for _, name := range []string{"p1-build-1.1", "p1-verify-1.1", "p1-verify-1.1/app"} {
		if b := readProof(p, name); b.Weak != "" || b.Failed != "" || b.Inside.Err() != nil {
			t.Errorf("proof of %s: got %+v, want one without a failure or a weak network", name, b)
		}
	}
	if c, ok := readProof(p, "p1-verify-1.1").Inside.Get("datagrams that arrived"); !ok || c.Got != "0" {
		t.Errorf("got datagrams on the engine's machine: %+v, want 0", c)
	}
	if r := p.Must(0, "status"); strings.Contains(r.Stdout, "weak network") {
		t.Errorf("got status %s, want no weak network", r.Stdout)
	}
	p.Must(0, "doctor", "--boundary")
	checkNothingLeft(p)
}

// engineByTCP starts a proxy to the engine's socket and returns its address.
func engineByTCP(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := net.Dial("unix", lab.Socket())
				if err != nil {
					return
				}
				defer to.Close()
				go func() {
					io.Copy(to, from)
					to.(*net.UnixConn).CloseWrite() // abl waits until the engine has read what it sent
				}()
				io.Copy(from, to)
			}()
		}
	}()
	return l.Addr().String()
}
