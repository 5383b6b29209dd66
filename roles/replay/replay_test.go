package replay

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/internal/witness"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/boundary"
)

// target is an app on an engine in memory.
type target struct {
	*rolestest.Site
	app *app.App
}

// replayer returns a Runner with an app that is ready, and tests without files.
func replayer(t *testing.T) (*target, *Runner) {
	s := &target{Site: rolestest.NewSite(t)}
	s.Engine.Scripts = map[string]sandboxtest.Script{"abl-id-app": rolestest.Broker(t, `{"event":"ready"}`)}
	containers := &boundary.Containers{
		Engine: s.Engine, ID: "id", UID: 1000, GID: 1000, Limits: rolestest.Limits, Helper: "holder",
		Port: rolestest.Web.Port,
	}
	s.app = &app.App{
		Containers: containers, Project: s.Project, Image: "i",
		Spec:    helper.BrokerSpec{Port: helper.BrokerPort, App: rolestest.Web},
		Silence: time.Hour, Life: time.Hour, Copy: "overlay", Commits: rolestest.OneCommit{Tree: "t1"}, Out: s.Out(),
		Services: []boundary.ServiceContainer{{Service: helper.Service{Name: "db"}, Image: "db"}},
	}
	return s, &Runner{App: s.app, Image: "i", Tests: func(_ context.Context, w io.Writer, _, as string) error {
		out := tar.NewWriter(w)
		err := out.WriteHeader(&tar.Header{Name: as + "/", Mode: 0o755, Typeflag: tar.TypeDir})
		return errors.Join(err, out.Close())
	}}
}

// A replay whose tests, holder, witness, app or service was ended from outside proves nothing, and the
// app is not blamed. The result of run.sh counts.
func TestReplayFaults(t *testing.T) {
	const appContainer = "abl-id-app"
	kill := func(t *testing.T, s *target, name string) { rolestest.Must(t, s.Engine.Kill(t.Context(), name)) }
	for _, c := range []struct {
		name  string
		does  func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit
		fault string // "" for none
		app   bool   // it needs one
	}{
		{"nothing", func(*testing.T, *target, sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{} }, "", false},
		{"it gives up", func(*testing.T, *target, sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{Code: 1} }, "", false},
		{"its container is killed", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			kill(t, s, b.Name)
			return sandbox.Exit{}
		}, "was killed (exit code 137)", false},
		{"its container is removed", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			rolestest.Must(t, s.Engine.Remove(t.Context(), b.Name))
			return sandbox.Exit{}
		}, "was removed", false},
		{"the machine is started again", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			s.Engine.Finish(b.Name, sandbox.Exit{Code: 0}) // as some engines have it
			return sandbox.Exit{}
		}, "was killed (exit code 0)", false},
		{"its container is stopped", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			s.Engine.Print(b.Name, `{"exit":143,"signal":"SIGTERM","stopped":true}`+"\n")
			return sandbox.Exit{Code: 143}
		}, "was stopped by a signal", false},
		{"it runs out of memory", func(*testing.T, *target, sandbox.ContainerConfig) sandbox.Exit {
			return sandbox.Exit{Code: 1, OOMKilled: true}
		}, "out of memory (limits.memory)", false},
		{"run.sh is killed", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			s.Engine.Print(b.Name, `{"exit":137,"signal":"SIGKILL"}`+"\n")
			return sandbox.Exit{Code: 137}
		}, "run.sh was killed (exit code 137)", false},
		{"what stands at the app's port is killed", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			kill(t, s, b.Reach.Join)
			return sandbox.Exit{}
		}, ", which connects the tests to the app, ended before them", false},
		{"the app is killed", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			kill(t, s, appContainer)
			return sandbox.Exit{Code: 1}
		}, appContainer + " was killed (exit code 137)", true},
		{"the app's network is", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			kill(t, s, "abl-id-holder-app")
			return sandbox.Exit{Code: 1}
		}, "abl-id-holder-app ended, which holds the app's network", true},
		{"a service is", func(t *testing.T, s *target, b sandbox.ContainerConfig) sandbox.Exit {
			kill(t, s, "abl-id-svc-db")
			return sandbox.Exit{Code: 1}
		}, "the app's service abl-id-svc-db ended", true},
	} {
		for _, against := range []Against{TheApp, NoApp, Trouble} {
			if c.app && against != TheApp {
				continue
			}
			t.Run(c.name+", "+string(against), func(t *testing.T) {
				s, r := replayer(t)
				s.Engine.Scripts["replay"] = func(b sandbox.ContainerConfig) sandbox.Exit {
					rolestest.Prints(b, "1..1\nnot ok 1 - P1.C1\n")
					return c.does(t, s, b)
				}
				rolestest.Must(t, os.MkdirAll(s.Project.Call("p1-verify-1.1"), 0o755))
				out, err := r.Run(t.Context(), Job{Key: "p1-verify-1.1/replay-x", Against: against, Limit: time.Minute})
				if err != nil || out.Fault != (c.fault != "") || !strings.Contains(out.Gone, c.fault) || len(out.Ends.Broke) > 0 {
					t.Errorf("got %+v, %v, want the fault %q", out, err, c.fault)
				}
				if data, err := os.ReadFile(filepath.Join(s.Project.Call("p1-verify-1.1"), "replay-x", "replay.json")); err != nil || !strings.Contains(string(data), c.fault) {
					t.Errorf("record: got %s, error %v, want one with %q", data, err, c.fault)
				}
				for _, name := range s.Engine.Left() {
					if !strings.Contains(name, "holder") && !strings.Contains(name, "net-") && !strings.Contains(name, "sockets") && name != "abl-id-listener" {
						t.Errorf("left on the engine: got %s, want none", name)
					}
				}
			})
		}
	}
}

// An app that ends on its own under the tests, or runs out of memory, has broken its contract.
func TestAppThatEndsInAReplay(t *testing.T) {
	for want, exit := range map[string]sandbox.Exit{"with exit code 7": {Code: 7}, "out of memory": {Code: 137, OOMKilled: true}} {
		t.Run(want, func(t *testing.T) {
			s, r := replayer(t)
			end := make(chan struct{})
			s.Engine.Scripts["abl-id-app"] = func(b sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Must(t, os.WriteFile(sandboxtest.Host(b, helper.Events), []byte(`{"event":"ready"}`), 0o644))
				<-end
				return exit
			}
			s.Engine.Scripts["replay"] = func(b sandbox.ContainerConfig) sandbox.Exit {
				close(end)
				if _, err := s.Engine.Wait(t.Context(), "abl-id-app"); err != nil {
					t.Error(err)
				}
				return sandbox.Exit{Code: 1}
			}
			rolestest.Must(t, os.MkdirAll(s.Project.Call("p1-verify-1.1"), 0o755))
			out, err := r.Run(t.Context(), Job{Key: "p1-verify-1.1/replay-x", Against: TheApp, Limit: time.Minute})
			if got := strings.Join(out.Ends.Broke, ", "); err != nil || out.Fault || !strings.Contains(got, want) {
				t.Errorf("got %q, %+v, %v, want %q", got, out, err, want)
			}
		})
	}
}

// Tests that fill their volume are ended, and prove nothing.
func TestReplayWritesTooMuch(t *testing.T) {
	s, r := replayer(t)
	s.app.Disk = roles.DiskQuota{Bytes: 60 << 20, Every: time.Millisecond}
	s.Engine.Used = func(volume string) int64 {
		if volume == "abl-id-app-scratch" {
			return 0
		}
		return 70 << 20
	}
	s.Engine.Scripts["replay"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "1..1\nok 1 - P1.C1\n")
		<-t.Context().Done()
		return sandbox.Exit{}
	}
	rolestest.Must(t, os.MkdirAll(s.Project.Call("p1-verify-1.1"), 0o755))
	out, err := r.Run(t.Context(), Job{Key: "p1-verify-1.1/replay-app-1", Against: TheApp, Limit: time.Hour})
	if err != nil || !strings.Contains(out.Gone, "abl ended run.sh: it wrote 69 MiB into its copy") || out.Late {
		t.Errorf("replay: got %+v, error %v, want one that abl ended for the size of its copy", out, err)
	}
}

// Tests cannot distinguish replays by the names of mounts and by their environment.
func TestReplaysLookAlike(t *testing.T) {
	s, r := replayer(t)
	for _, p := range []Job{
		{Key: "p1-verify-1.1/replay-app-1", Against: TheApp, Limit: 10 * time.Minute},
		{Key: "p1-verify-1.1/replay-altered-1", Against: TheApp, Limit: time.Minute, Altering: &witness.Altering{}},
		{Key: "p1-verify-1.1/replay-no app", Against: NoApp, Limit: 10 * time.Minute},
		{Key: "p1-verify-1.1/replay-empty", Against: Empty, Limit: 10 * time.Minute},
	} {
		t.Run(path.Base(p.Key), func(t *testing.T) {
			var container sandbox.ContainerConfig
			var run helper.RunSpec
			var cmds helper.CmdSpec
			s.Engine.Scripts["replay"] = func(b sandbox.ContainerConfig) sandbox.Exit {
				container = b
				for name, into := range map[string]any{"run.json": &run, "commands.json": &cmds} {
					data, err := os.ReadFile(filepath.Join(sandboxtest.Host(b, helper.In), name))
					if err = errors.Join(err, json.Unmarshal(data, into)); err != nil {
						t.Error(err)
					}
				}
				rolestest.Prints(b, "1..0\n")
				return sandbox.Exit{}
			}
			call := s.Project.Call("p1-verify-1.1")
			for _, left := range []string{path.Base(p.Key) + "/app", underWay + "X/app"} { // by an abl that was killed
				rolestest.Must(t, os.MkdirAll(filepath.Join(call, left), 0o755))
			}
			r.begun = sync.Once{}
			out, err := r.Run(t.Context(), p)
			if err != nil || string(out.Output) != "1..0\n" {
				t.Fatalf("replay: got %+v, error %v, want the output %q", out, err, "1..0\n")
			}
			for _, m := range container.Mounts {
				if strings.Contains(m.Source, "replay-") {
					t.Errorf("source of a mount: got %q, want one without replay-", m.Source)
				}
			}
			left := time.Until(time.Unix(run.Deadline, 0)).Round(time.Minute)
			if left != 15*time.Minute || len(cmds.Token) < 26 {
				t.Errorf("time left and token: got %s, %q, want 15m0s and at least 26 characters", left, cmds.Token)
			}
			data, err := os.ReadFile(filepath.Join(s.Project.Call(p.Key), "stdout"))
			if err != nil || string(data) != "1..0\n" {
				t.Errorf("output on disk: got %q, error %v, want %q", data, err, "1..0\n")
			}
			entries, _ := os.ReadDir(s.Project.Call("p1-verify-1.1"))
			for _, e := range entries {
				if !strings.HasPrefix(e.Name(), "replay-") {
					t.Errorf("files of the call: got %s, want only replays", e.Name())
				}
			}
		})
	}
	if got := s.Kinds(); strings.Contains(got, "app_failed") {
		t.Errorf("events: got %s, want no app_failed", got)
	}
	for _, name := range s.Engine.Left() {
		if !strings.Contains(name, "holder") && !strings.Contains(name, "net-") && !strings.Contains(name, "sockets") && name != "abl-id-listener" {
			t.Errorf("left on the engine: got %s, want none", name)
		}
	}
}

// A full disk ends a replay, which then proves nothing.
func TestReplayOnAFullDisk(t *testing.T) {
	rolestest.FullDisks(t, func(t *testing.T, disk, why string) {
		s, r := replayer(t)
		s.app.Disk = roles.DiskQuota{Bytes: 60 << 20, Disks: []string{disk}, Every: time.Millisecond}
		s.Engine.Scripts["replay"] = func(sandbox.ContainerConfig) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} }
		rolestest.Must(t, os.MkdirAll(s.Project.Call("p1-verify-1.1"), 0o755))
		out, err := r.Run(t.Context(), Job{Key: "p1-verify-1.1/replay-no app", Against: NoApp, Limit: time.Hour})
		if err != nil || !out.Fault || !strings.Contains(out.Gone, why) {
			t.Errorf("got %+v, %v, want a fault with %q", out, err, why)
		}
	})
}
