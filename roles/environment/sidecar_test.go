package environment

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/images"
	"abl/internal/gateway"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/testing/lab"
)

const key = "a-key-of-nobody-0815"

// place returns a sidecar on a real engine, with its two networks.
func place(t *testing.T) (sidecar, *docker.Engine) {
	t.Helper()
	lab.Engine(t)
	ctx := context.WithoutCancel(t.Context())
	e, err := docker.Connect(ctx, os.Getenv)
	must(t, err)
	m := &images.Maker{Engine: e, Env: lab.Env(t)}
	image, err := m.Gateway(ctx)
	must(t, err)
	id := "test-sidecar-" + strings.ToLower(rand.Text()[:8])
	labels := map[string]string{sandbox.LabelProject: id, sandbox.LabelKind: "gateway"}
	t.Cleanup(func() {
		_, err := e.Sweep(ctx, map[string]string{sandbox.LabelProject: id}, nil)
		must(t, errors.Join(err, e.Close()))
	})
	for name, egress := range map[string]bool{"in": false, "out": true} {
		must(t, e.EnsureNetwork(ctx, sandbox.Network{Name: sandbox.Name(id, name), Labels: labels, Egress: egress, Pool: "10.214.0.0/16"}))
	}
	return sidecar{
		Engine: e, Name: sandbox.Name(id, "gate"), Image: image, Labels: labels,
		Inside: sandbox.Name(id, "in"), Way: sandbox.Endpoint{Network: sandbox.Name(id, "out")},
		Keep: filepath.Join(t.TempDir(), "gateway.jsonl"),
	}, e
}

func setup() gateway.Setup {
	return gateway.Setup{
		Call:      gateway.Call{ID: "c1", Token: gateway.Secret(rand.Text()), Deadline: time.Now().Add(time.Minute).Unix()},
		Providers: []gateway.Provider{{Name: "gemini", Upstream: "http://127.0.0.1:1", Key: key, Models: []string{"m"}}},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenAndClose(t *testing.T) {
	s, e := place(t)
	ctx := t.Context()
	must(t, s.Open(ctx, setup()))
	must(t, s.Open(ctx, setup())) // a killed abl repeats the call
	st, err := e.Status(ctx, s.Name)
	if must(t, err); st.State != sandbox.Running {
		t.Errorf("state of the gateway: got %s, want %s", st.State, sandbox.Running)
	}
	log, err := s.Close(ctx)
	must(t, err)
	if n := len(log.Entries); n != 2 || log.Entries[0].Kind != gateway.Ready || !log.Ended {
		t.Errorf("log: got %+v, want 2 entries, the first one ready, and an end", log)
	}
	if _, err := e.Status(ctx, s.Name); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("status of the closed gateway: got error %v, want %v", err, sandbox.ErrNotFound)
	}
	again, err := s.Close(ctx)
	if must(t, err); len(again.Entries) != 2 {
		t.Errorf("log of a second Close: got %+v, want 2 entries", again)
	}
	kept, err := os.ReadFile(s.Keep)
	if must(t, err); strings.Contains(string(kept), key) {
		t.Errorf("log on disk: got %s, want one without the key", kept)
	}
	must(t, s.Open(ctx, setup()))
	if _, err := os.Stat(s.Keep); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("log of an earlier run: got error %v, want %v", err, os.ErrNotExist)
	}
}

func TestGone(t *testing.T) {
	s, e := place(t)
	must(t, s.Open(t.Context(), setup()))
	must(t, e.Remove(t.Context(), s.Name))
	if log, err := s.Close(t.Context()); !errors.Is(err, errGatewayGone) {
		t.Errorf("removed gateway: got log %+v, error %v, want %v", log, err, errGatewayGone)
	}
}

func TestKilledGatewayLosesItsEnd(t *testing.T) {
	s, _ := place(t)
	must(t, s.Open(t.Context(), setup()))
	if out, err := exec.Command("docker", "kill", s.Name).CombinedOutput(); err != nil {
		t.Fatalf("cannot kill the gateway: %v: %s", err, out)
	}
	if log, err := s.Close(t.Context()); err != nil || log.Ended || log.Sum() == nil {
		t.Errorf("killed gateway: got log %+v, error %v, want a sum and no end", log, err)
	}
}

// If the gateway refuses its setup, the error contains its message, without the key.
func TestRefusedSetup(t *testing.T) {
	s, e := place(t)
	bad := setup()
	bad.Providers[0].Upstream = "unheard-of"
	err := s.Open(t.Context(), bad)
	if err == nil || !strings.Contains(err.Error(), `cannot use provider "gemini"`) || strings.Contains(err.Error(), key) {
		t.Errorf("got %v, want an error that names the provider and no key", err)
	}
	if _, err := e.Status(t.Context(), s.Name); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("status of the refused gateway: got error %v, want %v", err, sandbox.ErrNotFound)
	}
}

// The inspection of the container contains neither the key nor the token.
func TestInspectionShowsNoSecret(t *testing.T) {
	s, _ := place(t)
	order := setup()
	must(t, s.Open(t.Context(), order))
	container, err := json.Marshal(s.container())
	must(t, err)
	out, err := exec.CommandContext(t.Context(), "docker", "inspect", s.Name).Output()
	must(t, err)
	for _, secret := range []string{key, string(order.Call.Token)} {
		if strings.Contains(string(out), secret) || strings.Contains(string(container), secret) {
			t.Errorf("secret of %d bytes: got it in the inspection %t, in the container %t, want it in neither",
				len(secret), strings.Contains(string(out), secret), strings.Contains(string(container), secret))
		}
	}
}
