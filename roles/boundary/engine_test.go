package boundary

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"abl/images"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/testing/lab"
)

// onEngine returns a prober on the real engine, and removes everything at the end.
func onEngine(t *testing.T) Prober {
	t.Helper()
	lab.Engine(t)
	eng, err := docker.Connect(t.Context(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	m := &images.Maker{Engine: eng, Env: lab.Env(t)}
	image, err := m.Holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := Prober{Engine: eng, Image: image, Pool: "10.232.0.0/16", ID: "test-proof-" + strings.ToLower(rand.Text()[:8])}
	t.Cleanup(func() {
		for _, kind := range [][]string{{"ps", "-aq"}, {"network", "ls", "-q"}} {
			out, err := exec.Command("docker", append(kind, "--filter", "name=abl-"+p.ID)...).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("objects left on the engine: got %s, error %v, want none", out, err)
			}
		}
	})
	return p
}

// open makes every network an ordinary one, like an engine that accepts an option and ignores it.
type open struct{ sandbox.Engine }

func (o open) EnsureNetwork(ctx context.Context, n sandbox.Network) error {
	n.Egress = true
	return o.Engine.EnsureNetwork(ctx, n)
}

func TestEngineKeepsNetworksApart(t *testing.T) {
	p := onEngine(t)
	proof, err := p.Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := proof.Err(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"peer peer:9000", "peer 127.0.0.1:53", "resolver inside", "name example.com", "the host by tcp", "the host by udp", "IPv6 addresses", "datagrams beyond its networks", "next hops that answer", "datagrams that arrived", "control"} {
		c, ok := proof.Get(name)
		if !ok {
			t.Errorf("check %q: got none, want one", name)
		}
		t.Logf("%s: %s, wanted %s", c.Name, c.Got, c.Want)
	}
	if c, _ := proof.Get("control"); c.Got != "it does" {
		t.Errorf("host from an ordinary network: got %q, want %q, else silence proves nothing", c.Got, "it does")
	}
}

// The probe detects an open network, from both sides. It has no next hop there, because the holder
// has removed the route.
func TestProbeFindsAnOpenNetwork(t *testing.T) {
	p := onEngine(t)
	p.Engine = open{p.Engine}
	proof, err := p.Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"the host by tcp", "the host by udp", "datagrams that arrived"} {
		t.Run(name, func(t *testing.T) {
			if c, ok := proof.Get(name); !ok || c.OK {
				t.Errorf("check %q of an open network: got %+v, want it to fail", name, c)
			}
		})
	}
	if c, _ := proof.Get("the host by tcp"); !strings.Contains(c.Got, "said the word") {
		t.Errorf("host by TCP: got %+v, want %q in it", c, "said the word")
	}
	if c, _ := proof.Get("peer peer:9000"); !c.OK {
		t.Errorf("peer: got %+v, want it to pass", c)
	}
}
