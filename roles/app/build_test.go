package app

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
)

// gated is a Gate that records the calls of its methods.
type gated struct {
	said []string
	err  error
}

func (g *gated) Open(_ context.Context, key, _ string, _ time.Time) ([]string, error) {
	g.said = append(g.said, "open "+key)
	return []string{"HTTPS_PROXY=x"}, g.err
}
func (g *gated) Resume(context.Context, string) error { return nil }
func (g *gated) Used() *roles.Used                    { return nil }
func (g *gated) Close(_ context.Context, key string) (roles.Traffic, error) {
	g.said = append(g.said, "close "+key)
	return roles.Traffic{Notes: []string{"refused"}}, nil
}

// yard returns the Builds of a source with one file, and their engine in memory.
func yard(t *testing.T, script sandboxtest.Script) (*Builds, *sandboxtest.Engine) {
	t.Helper()
	e := &sandboxtest.Engine{Scripts: map[string]sandboxtest.Script{"build": script}}
	b := &Builds{
		Containers: containersOn(e), Image: "i", Argv: []string{"build"},
		Tree: func(w io.Writer, as string) error {
			out := tar.NewWriter(w)
			err := out.WriteHeader(&tar.Header{Name: as + "/a", Mode: 0o644, Size: 1})
			_, werr := out.Write([]byte("x"))
			return errors.Join(err, werr, out.Close())
		},
	}
	b.Project = state.NewProject(t.TempDir(), "src", "tests")
	return b, e
}

func TestBuildsWithoutANetwork(t *testing.T) {
	var container sandbox.ContainerConfig
	b, e := yard(t, func(x sandbox.ContainerConfig) sandbox.Exit {
		container = x
		rolestest.Prints(x, "out\n")
		return sandbox.Exit{Code: 3}
	})
	var out, stderr strings.Builder
	end, err := b.Run(t.Context(), Build{Key: "build-1", Limit: time.Hour, Stdout: &out, Stderr: &stderr})
	if err != nil || end.Exit != 3 || end.Late || out.String() != "out\n" || stderr.Len() > 0 {
		t.Errorf("build: got %+v, error %v, stdout %q, stderr %q, want exit code 3, stdout %q and no stderr",
			end, err, out.String(), stderr.String(), "out\n")
	}
	const env = "HOME=/home/agent USER=agent LOGNAME=agent LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1"
	if container.Reach.Join != "" || len(container.Reach.Endpoints) > 0 || strings.Join(container.Env, " ") != env {
		t.Errorf("container: got %+v, want no network and the environment %s", container, env)
	}
	proof, ok, err := roles.Record{Dir: b.Project.Call("build-1")}.Boundary()
	if err != nil || !ok || proof.Made.Err() != nil || proof.Inside.Err() != nil || proof.Failed != "" {
		t.Errorf("proof: got %+v, present %t, error %v, want one without a failed check", proof, ok, err)
	}
	if left := e.Left(); len(left) > 0 {
		t.Errorf("objects left on the engine: got %q, want none", left)
	}
}

// A build with a gate uses the Builder's place, and reports refused hosts.
func TestBuildsThroughAGate(t *testing.T) {
	var container sandbox.ContainerConfig
	b, e := yard(t, func(x sandbox.ContainerConfig) sandbox.Exit { container = x; return sandbox.Exit{} })
	gate := &gated{}
	b.Gate, b.Files = gate, map[string][]byte{"ca.pem": []byte("c")}
	end, err := b.Run(t.Context(), Build{Key: "build-1", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || len(end.Notes) != 1 || strings.Join(gate.said, ", ") != "open build-1, close build-1" {
		t.Errorf("build: got %+v, error %v, gate calls %q, want one note and the gate opened and closed",
			end, err, gate.said)
	}
	if container.Reach.Join != "abl-id-holder-builder" || container.Reach.Through[0].Network != "abl-id-net-builder" || !slices.Contains(container.Env, "HTTPS_PROXY=x") {
		t.Errorf("container: got %+v, want the Builder's network and HTTPS_PROXY=x", container)
	}
	if data, err := os.ReadFile(sandboxtest.Host(container, helper.In) + "/ca.pem"); err != nil || string(data) != "c" {
		t.Errorf("ca.pem: got %q, error %v, want %q", data, err, "c")
	}
	if left := strings.Join(e.Left(), " "); left != "abl-id-holder-builder abl-id-listener abl-id-net-builder" {
		t.Errorf("objects left on the engine: got %q, want those of the Builder's network for the next build", left)
	}
}

// After any failure nothing of the build stays, and a container that differs from the intent is not
// started.
func TestBuildsThatFail(t *testing.T) {
	lost := errors.New("engine lost")
	for _, method := range []string{"EnsureVolume", "Create", "CopyIn", "Prove", "Start", "Wait", "Logs"} {
		t.Run(method, func(t *testing.T) {
			b, e := yard(t, func(sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{} })
			e.Fail(method, 1, lost)
			if _, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, lost) {
				t.Errorf("%s failed: got error %v, want %v", method, err, lost)
			}
			if left := e.Left(); len(left) > 0 {
				t.Errorf("got %q on the engine, want no object", left)
			}
		})
	}
	b, e := yard(t, func(sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{} })
	e.Opening = func(sandbox.ContainerConfig) string { return "no proof\n" }
	if _, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, sandbox.ErrUnproven) {
		t.Errorf("unproven: got error %v, want %v", err, sandbox.ErrUnproven)
	}
	if left := e.Left(); len(left) > 0 {
		t.Errorf("unproven: got %q on the engine, want no object", left)
	}
}

// A build is stopped at its limit, and ends with the reason if the user stops it.
func TestBuildsEnd(t *testing.T) {
	hang := make(chan struct{})
	b, _ := yard(t, func(sandbox.ContainerConfig) sandbox.Exit { <-hang; return sandbox.Exit{Code: 143} })
	defer close(hang)
	end, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Millisecond, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || !end.Late {
		t.Errorf("build at its limit: got %+v, error %v, want a late one", end, err)
	}
	if _, err := b.Run(rolestest.Cancelled(t), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v, want %v", err, context.Canceled)
	}
}

// A build that writes or prints too much is stopped, and does not count as late.
func TestBuildWritesTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		used int64
		out  string
		want string
	}{
		"its copy":   {61<<20 + 4<<10, "", "it wrote 61 MiB into its copy (limits.disk is 60 MiB)"},
		"its output": {0, "too much", "stdout has more than 7 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b, e := yard(t, func(container sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Prints(container, c.out)
				<-t.Context().Done()
				return sandbox.Exit{}
			})
			b.Disk, b.Output = roles.DiskQuota{Bytes: 60 << 20, Every: time.Millisecond}, 7
			e.Used = func(string) int64 { return c.used }
			end, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard})
			if err != nil || end.Over != c.want || end.Late || end.Exit == 0 {
				t.Errorf("got %+v, %v; want %q", end, err, c.want)
			}
		})
	}
}

// A full disk ends a build, which then has not failed.
func TestBuildOnAFullDisk(t *testing.T) {
	rolestest.FullDisks(t, func(t *testing.T, disk, why string) {
		b, _ := yard(t, func(sandbox.ContainerConfig) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} })
		b.Disk = roles.DiskQuota{Bytes: 60 << 20, Disks: []string{disk}, Every: time.Millisecond}
		end, err := b.Run(t.Context(), Build{Key: "k", Limit: time.Hour, Stdout: io.Discard, Stderr: io.Discard})
		if !errors.Is(err, roles.ErrNoRoom) || !strings.Contains(err.Error(), why) {
			t.Errorf("got %+v, %v, want %v with %q", end, err, roles.ErrNoRoom, why)
		}
	})
}
