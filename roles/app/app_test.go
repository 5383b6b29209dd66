package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
	"abl/roles/boundary"
)

// stage is an App on the engine of a rig, whose broker writes these events.
type stage struct {
	*rolestest.Site
	app *App
}

func containersOn(e sandbox.Engine) *boundary.Containers {
	return &boundary.Containers{Engine: e, ID: "id", UID: 1000, GID: 1000, Limits: rolestest.Limits, Helper: "holder"}
}

func newStage(t *testing.T, app *helper.App, says string) *stage {
	t.Helper()
	s := &stage{Site: rolestest.NewSite(t)}
	rolestest.Must(t, os.MkdirAll(s.Project.Call("k"), 0o755))
	s.Engine.Scripts = map[string]sandboxtest.Script{"abl-id-app": rolestest.Broker(t, says)}
	s.app = &App{
		Containers: containersOn(s.Engine), Project: s.Project, Image: "i",
		Spec:    helper.BrokerSpec{Port: helper.BrokerPort, App: app},
		Silence: time.Hour, Life: time.Hour, Copy: "overlay", Commits: rolestest.OneCommit{Tree: "t1"}, Out: s.Out(),
		Services: []boundary.ServiceContainer{{Service: helper.Service{Name: "db"}, Image: "db"}},
	}
	return s
}

func TestAppUp(t *testing.T) {
	const away = "reads nothing\n{\"event\":\"listening\"}\n"
	for _, c := range []struct {
		name         string
		app          *helper.App
		says, failed string
		url          string
		events       string
	}{
		{"ready", rolestest.Web, away + `{"event":"ready"}`, "", "http://app:80", "app_start app_ready"},
		{"failed", rolestest.Web, away + `{"event":"failed","detail":"it listens on 127.0.0.1 only"}` + "\n" + `{"event":"ready"}`, "it listens on 127.0.0.1 only", "http://app:80", "app_start app_failed"},
		{"idle", nil, away, "", "", "app_start app_ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.app, c.says)
			up, err := s.app.Up(t.Context(), "k", "")
			if err != nil || up.Failed != c.failed || up.URL != c.url || up.Broker != "http://app:7070" || len(up.Token) < 26 {
				t.Errorf("app: got %+v, error %v, want failure %q, URL %q, broker http://app:7070 and a token",
					up, err, c.failed, c.url)
			}
			if got := s.Kinds(); got != c.events {
				t.Errorf("events: got %s, want %s", got, c.events)
			}
			s.Engine.Forget()
			again, err := s.app.Up(t.Context(), "k", "")
			if err != nil || again != up || strings.Contains(s.Engine.Journal(), "Start") {
				t.Errorf("second time: got %+v, error %v, want %+v without a start; calls:\n%s",
					again, err, up, s.Engine.Journal())
			}
			rolestest.Must(t, s.app.Down(t.Context(), "k"))
			rolestest.Must(t, s.app.Down(t.Context(), "k"))
			s.WantLeft("abl-id-holder-app", "abl-id-holder-svc-db", "abl-id-listener", "abl-id-net-app")
		})
	}
}

// A service's image has no deadline. The service ends with its holder, which abl creates again with
// each app, with the app's deadline.
func TestServiceHasTheAppsDeadline(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"ready"}`)
	s.app.Life = time.Hour
	var until []string
	for _, key := range []string{"k", "l"} {
		rolestest.Must(t, os.MkdirAll(s.Project.Call(key), 0o755))
		_, err := s.app.Up(t.Context(), key, "")
		rolestest.Must(t, err)
		container, _ := s.Engine.Config("abl-id-svc-db")
		holder, _ := s.Engine.Config("abl-id-holder-svc-db")
		app, _ := s.Engine.Config(s.app.container())
		end := app.Labels[sandbox.LabelDeadline]
		if !container.Below || container.Reach.Join != holder.Name || holder.Labels[sandbox.LabelDeadline] != end || holder.Argv[2] != end {
			t.Errorf("service: got %+v, its holder %+v, want it below the holder, which ends at %s", container, holder, end)
		}
		until = append(until, end)
		s.app.Life += time.Hour
	}
	if until[0] == until[1] {
		t.Errorf("deadline of the second app: got %s as of the first, want another one", until[1])
	}
}

// An app that is started again for a call keeps its token, because the call's Verifier may be
// running. The app of another call has another token.
func TestAppToken(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"ready"}`)
	first, err := s.app.Up(t.Context(), "k", "")
	rolestest.Must(t, err)
	rolestest.Must(t, s.Engine.Kill(t.Context(), s.app.container()))
	second, err := s.app.Up(t.Context(), "k", "")
	rolestest.Must(t, err)
	rolestest.Must(t, os.MkdirAll(s.Project.Call("l"), 0o755))
	other, err := s.app.Up(t.Context(), "l", "")
	rolestest.Must(t, err)
	if first.Token != second.Token || other.Token == first.Token {
		t.Errorf("tokens: got %q, %q, %q, want the first two equal and the third different",
			first.Token, second.Token, other.Token)
	}
	var spec helper.BrokerSpec
	data, err := os.ReadFile(filepath.Join(s.Project.Call("l"), "app", "in", "broker.json"))
	if err != nil || json.Unmarshal(data, &spec) != nil || spec.Deadline <= time.Now().Unix() {
		t.Errorf("broker.json: got %s, error %v, want a deadline in the future", data, err)
	}
}

// When an app starts again for a call, the record of its earlier end is removed.
func TestRestartForgetsTheEarlierEnd(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"ready"}`)
	for _, name := range []string{endFile, overFile, fullFile} {
		rolestest.Write(t, filepath.Join(s.app.dir("k"), name), "{}")
	}
	_, err := s.app.Up(t.Context(), "k", "")
	rolestest.Must(t, err)
	for _, name := range []string{endFile, overFile, fullFile} {
		if _, err := os.Stat(filepath.Join(s.app.dir("k"), name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want no file", name, err)
		}
	}
}

// An app fails if it stops the broker or floods the broker's file of events.
func TestAppThatSilencesItsBroker(t *testing.T) {
	for name, says := range map[string]string{"stopped": "{\"event\":\"listening\"}\n", "flooded": strings.Repeat("x", 2<<20) + "\n{\"event\":\"ready\"}\n"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, rolestest.Web, says)
			s.app.Silence = 50 * time.Millisecond
			up, err := s.app.Up(t.Context(), "k", "")
			if err != nil || !strings.Contains(up.Failed, "abl saw no result of its start") {
				t.Errorf("got %+v, %v, want a start that failed with \"abl saw no result of its start\"", up, err)
			}
		})
	}
}

func TestAppFails(t *testing.T) {
	s := newStage(t, rolestest.Web, "")
	s.Engine.Sync = true
	if _, err := s.app.Up(t.Context(), "k", ""); err == nil || !strings.Contains(err.Error(), "ended with exit code 3 before it reported anything") {
		t.Errorf("app that ends immediately: got error %v, want one with %q",
			err, "ended with exit code 3 before it reported anything")
	}
	s = newStage(t, rolestest.Web, `{"event":"failed","name":"db","detail":"no answer on port 5432"}`)
	if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, boundary.ErrService) {
		t.Errorf("service that fails: got error %v, want %v", err, boundary.ErrService)
	}
	for _, method := range []string{"Create", "Start", "EnsureVolume"} {
		t.Run(method, func(t *testing.T) {
			for _, nth := range []int{1, 2, 3} {
				s := newStage(t, rolestest.Web, `{"event":"ready"}`)
				s.Engine.Fail(method, nth, sandbox.ErrUnreachable)
				_, err := s.app.Up(t.Context(), "k", "")
				if method == "EnsureVolume" && nth == 3 {
					continue // there are two
				}
				if !errors.Is(err, sandbox.ErrUnreachable) {
					t.Errorf("%s %d: got error %v, want %v", method, nth, err, sandbox.ErrUnreachable)
				}
				if up, err := s.app.Up(t.Context(), "k", ""); err != nil || up.URL == "" {
					t.Errorf("start after %s %d failed: got %+v, error %v, want a URL", method, nth, up, err)
				}
			}
		})
	}
}

// A cancelled start of an app ends soon, and its error is the cancellation.
func TestAppCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStage(t, rolestest.Web, `{"event":"listening"}`)
	broker := s.Engine.Scripts["abl-id-app"]
	s.Engine.Scripts["abl-id-app"] = func(b sandbox.ContainerConfig) sandbox.Exit { cancel(); return broker(b) }
	if _, err := s.app.Up(ctx, "k", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it waits: got error %v, want %v", err, context.Canceled)
	}
	s = newStage(t, rolestest.Web, `{"event":"ready"}`)
	if _, err := s.app.Up(rolestest.Cancelled(t), "k", ""); !errors.Is(err, context.Canceled) || strings.Contains(s.Engine.Journal(), "Create") {
		t.Errorf("cancelled before it begins: got error %v, want %v and no container; calls:\n%s",
			err, context.Canceled, s.Engine.Journal())
	}
}

func TestAppGetsACopy(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"ready"}`)
	rolestest.Write(t, filepath.Join(s.Project.Src, "a"), "a change that no commit has")
	s.app.Copy = "tar"
	_, err := s.app.Up(t.Context(), "k", "")
	rolestest.Must(t, err)
	exported, err := os.ReadFile(s.app.Project.Cache("trees", "t1", "a"))
	if err != nil || string(exported) != "text of the commit" || !strings.Contains(s.Engine.Journal(), "CopyIn ") {
		t.Errorf("exported file: got %q, error %v, want the text of the commit and a copy; calls:\n%s",
			exported, err, s.Engine.Journal())
	}
	b, _ := s.Engine.Config(s.app.container())
	for _, m := range b.Mounts {
		if m.Source == s.Project.Src {
			t.Errorf("mounts of the app: got %+v, want none of the source itself", m)
		}
	}
	rolestest.Must(t, s.app.Down(t.Context(), "k"))
	broken := errors.New("unreadable")
	s.app.Commits = rolestest.OneCommit{Tree: "t2", Err: broken}
	if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, broken) {
		t.Errorf("a commit that cannot be read: got %v, want %v", err, broken)
	}
}

// An app that writes more than its limit to its copy of the source, or to its output, is stopped,
// and its record has the reason.
func TestAppWritesTooMuch(t *testing.T) {
	const up = `{"event":"listening"}` + "\n" + `{"event":"ready"}` + "\n"
	for name, c := range map[string]struct {
		says string
		used int64
		want string
	}{
		"its copy":    {up, 61 << 20, "abl ended its container: it wrote 61 MiB into its copy (limits.disk is 60 MiB)"},
		"its events":  {up + strings.Repeat("x", maxEvents), 0, "abl ended its container: events has more than 1048576 bytes"},
		"not so much": {up, 60 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, rolestest.Web, c.says)
			looked := make(chan struct{}, 100)
			s.app.Disk = roles.DiskQuota{Bytes: 60 << 20, Every: time.Millisecond}
			s.Engine.Used = func(volume string) int64 {
				select {
				case looked <- struct{}{}:
				default:
				}
				if volume != s.app.volume("scratch") {
					return 0
				}
				return c.used
			}
			up, err := s.app.Up(t.Context(), "k", "")
			rolestest.Must(t, err)
			if c.want == "" {
				<-looked
				<-looked // the first look passed
			} else if up.Failed == "" {
				_, err := s.Engine.Wait(t.Context(), s.app.container())
				rolestest.Must(t, err)
			}
			rolestest.Must(t, s.app.Down(t.Context(), "k"))
			ends, err := EndsOf(s.app.Project, "k")
			rolestest.Must(t, err)
			if got := strings.Join(append(ends.Broke, up.Failed), "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAppIsKeptSafe(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"failed","detail":"said `+rolestest.Key+`\u001b[2J\nabl: passed"}`+"\n")
	s.app.Safe = rolestest.Hiding()
	up, err := s.app.Up(t.Context(), "k", "")
	if err != nil || up.Failed != `said [secret …11]\x1b[2J abl: passed` {
		t.Errorf("failure of the app: got %q, error %v, want %q",
			up.Failed, err, `said [secret …11]\x1b[2J abl: passed`)
	}
	rolestest.Write(t, filepath.Join(s.app.dir("k"), "app.log"), "log "+rolestest.Key+rolestest.Evil)
	rolestest.Must(t, s.app.Down(t.Context(), "k"))
	rolestest.Spotless(t, s.app.Project.Root)
	if log, err := os.ReadFile(filepath.Join(s.app.dir("k"), "app.log")); err != nil || !strings.HasPrefix(string(log), "log [secret …11]") {
		t.Errorf("app.log: got %q, error %v, want %q at its start", log, err, "log [secret …11]")
	}
	rolestest.Must(t, s.app.Down(t.Context(), "none"))
}

// The app is proven like the roles, and so are the containers without a probe.
func TestProofOfTheApp(t *testing.T) {
	s := newStage(t, rolestest.Web, `{"event":"ready"}`)
	if _, err := s.app.Up(t.Context(), "k", ""); err != nil {
		t.Fatal(err)
	}
	rec := roles.Record{Dir: s.app.Project.Call("k")}
	if b, ok, err := rec.App().Boundary(); err != nil || !ok || b.Inside.Err() != nil || b.Made.Err() != nil {
		t.Errorf("proof of the app: got %+v, present %v, error %v, want one without a failed check", b, ok, err)
	}
	s = newStage(t, rolestest.Web, `{"event":"ready"}`)
	s.Engine.Opening = func(sandbox.ContainerConfig) string { return `{"probe_error":"no"}` + "\n" }
	if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, sandbox.ErrUnproven) {
		t.Errorf("probe that fails: got error %v, want %v", err, sandbox.ErrUnproven)
	}
	for kind, name := range map[string]string{"holder": "abl-id-holder-app", "service": "abl-id-svc-db", "helper": "abl-id-app-fill", "app": "box is"} {
		s = newStage(t, rolestest.Web, `{"event":"ready"}`)
		if kind == "helper" {
			s.app.Copy = "tar"
		}
		another := rolestest.Changed{Engine: s.Engine, Change: func(b *sandbox.ContainerConfig) {
			if b.Labels[sandbox.LabelKind] == kind {
				b.Limits.Pids++
			}
		}}
		s.app.Engine = another
		if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, sandbox.ErrUnproven) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with another limit: got error %v, want %v with %q", kind, err, sandbox.ErrUnproven, name)
		}
	}
}

// A full disk ends an app. That is a fault of the machine, unless the app itself wrote too much.
func TestAppOnAFullDisk(t *testing.T) {
	rolestest.FullDisks(t, func(t *testing.T, disk, why string) {
		full := roles.DiskQuota{Bytes: 60 << 20, Disks: []string{disk}, Every: time.Millisecond}
		s := newStage(t, rolestest.Web, "")
		s.app.Disk = full
		s.Engine.Scripts["abl-id-app"] = func(sandbox.ContainerConfig) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} }
		up, err := s.app.Up(t.Context(), "k", "")
		if !errors.Is(err, sandbox.ErrKilled) || !strings.Contains(err.Error(), why) {
			t.Errorf("got %+v, %v, want %v with %q", up, err, sandbox.ErrKilled, why)
		}
		s = newStage(t, rolestest.Web, `{"event":"listening"}`+"\n")
		s.app.Disk = full
		s.Engine.Used = func(string) int64 { return 61 << 20 }
		const want = "it wrote 61 MiB into its copy"
		if up, err := s.app.Up(t.Context(), "k", ""); err != nil || !strings.Contains(up.Failed, want) {
			t.Errorf("got %+v, %v, want %q", up, err, want)
		}
	})
}

// If something other than abl kills an app's container during its start, abl starts the app again,
// at most twice. An app that ends otherwise, even by a signal to process 1, has failed.
func TestAppKilledAtItsStart(t *testing.T) {
	stopped := `{"exit":143,"signal":"SIGTERM","stopped":true}` + "\n"
	for _, c := range []struct {
		name, last string
		kills      int
		failed     string
		is         error
	}{
		{"once", "", 1, "", nil},
		{"always", "", 9, "", sandbox.ErrKilled},
		{"without a signal", stopped, 9, "its container ended with exit code 143", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, rolestest.Web, "")
			starts := 0
			s.Engine.Scripts["abl-id-app"] = func(b sandbox.ContainerConfig) sandbox.Exit {
				if starts++; starts > c.kills {
					rolestest.Must(t, os.WriteFile(sandboxtest.Host(b, helper.Events), []byte(`{"event":"ready"}`), 0o644))
					<-t.Context().Done()
					return sandbox.Exit{}
				}
				rolestest.Must(t, os.WriteFile(sandboxtest.Host(b, helper.Events), []byte(`{"event":"listening"}`), 0o644))
				if s.Engine.Print(b.Name, c.last); c.last != "" {
					return sandbox.Exit{Code: 143}
				}
				return sandbox.Exit{Code: 137}
			}
			up, err := s.app.Up(t.Context(), "k", "")
			if !errors.Is(err, c.is) || up.Failed != c.failed || starts != min(c.kills+1, 3) && c.last == "" {
				t.Errorf("got %+v, %v after %d starts, want %q, %v", up, err, starts, c.failed, c.is)
			}
		})
	}
}
