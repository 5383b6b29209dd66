package roles

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
	"abl/internal/state"
	"abl/internal/testing/sandboxtest"
)

// stage is an App on the engine of a rig; its broker says these events.
type stage struct {
	*rig
	app *App
}

func newStage(t *testing.T, app *helper.App, says string) *stage {
	t.Helper()
	r := newRig(t, nil)
	must(t, os.MkdirAll(r.runner.Project.Call("k"), 0o755))
	r.engine.Scripts = map[string]sandboxtest.Script{"abl-id-app": func(b sandbox.Box) sandbox.Exit {
		if err := os.WriteFile(sandboxtest.Host(b, helper.Events), []byte(says), 0o644); err != nil {
			panic(err)
		}
		if says != "" {
			<-t.Context().Done()
		}
		return sandbox.Exit{Code: 3}
	}}
	return &stage{r, &App{
		Boxes: boxesOn(r.engine), Project: r.runner.Project, Image: "i", Spec: helper.BrokerSpec{Port: helper.BrokerPort, App: app}, Silence: time.Hour, Life: time.Hour, Copy: "overlay", Commits: oneCommit{tree: "t1"}, Out: state.Func(r.record),
		Services: []ServiceBox{{Service: helper.Service{Name: "db"}, Image: "db"}},
	}}
}

// oneCommit is a source whose last commit has one file.
type oneCommit struct {
	tree string
	err  error
}

func (c oneCommit) Tip() (string, error)            { return "c0ffee", nil }
func (c oneCommit) TreeHash(string) (string, error) { return c.tree, nil }
func (c oneCommit) Content(string) (map[string]string, error) {
	return map[string]string{"a": "0100644 1"}, nil
}

func (c oneCommit) ExportTo(_ context.Context, dir, _, _ string) error {
	return errors.Join(c.err, os.WriteFile(filepath.Join(dir, "a"), []byte("text of the commit"), 0o644))
}

var web = &helper.App{Command: "serve", Port: 80}

func TestAppUp(t *testing.T) {
	const away = "reads nothing\n{\"event\":\"listening\"}\n"
	for _, c := range []struct {
		name         string
		app          *helper.App
		says, failed string
		url          string
		events       string
	}{
		{"ready", web, away + `{"event":"ready"}`, "", "http://app:80", "app_start app_ready"},
		{"failed", web, away + `{"event":"failed","detail":"it listens on 127.0.0.1 only"}` + "\n" + `{"event":"ready"}`, "it listens on 127.0.0.1 only", "http://app:80", "app_start app_failed"},
		{"idle", nil, away, "", "", "app_start app_ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.app, c.says)
			up, err := s.app.Up(t.Context(), "k", "")
			if err != nil || up.Failed != c.failed || up.URL != c.url || up.Broker != "http://app:7070" || len(up.Token) < 26 {
				t.Errorf("got %+v, %v", up, err)
			}
			if got := s.kinds(); got != c.events {
				t.Errorf("events %s", got)
			}
			s.engine.Forget()
			again, err := s.app.Up(t.Context(), "k", "")
			if err != nil || again != up || strings.Contains(s.engine.Journal(), "Start") {
				t.Errorf("again: %+v, %v\n%s", again, err, s.engine.Journal())
			}
			must(t, s.app.Down(t.Context(), "k"))
			must(t, s.app.Down(t.Context(), "k"))
			s.wantLeft("abl-id-holder-app", "abl-id-holder-svc-db", "abl-id-listener", "abl-id-net-app")
		})
	}
}

// A service's image has no deadline. It ends with its holder, which abl creates again
// with the app and has the app's.
func TestServiceHasTheAppsDeadline(t *testing.T) {
	s := newStage(t, web, `{"event":"ready"}`)
	s.app.Life = time.Hour
	var until []string
	for _, key := range []string{"k", "l"} {
		must(t, os.MkdirAll(s.runner.Project.Call(key), 0o755))
		_, err := s.app.Up(t.Context(), key, "")
		must(t, err)
		box, _ := s.engine.Box("abl-id-svc-db")
		holder, _ := s.engine.Box("abl-id-holder-svc-db")
		app, _ := s.engine.Box(s.app.box())
		end := app.Labels[sandbox.LabelDeadline]
		if !box.Below || box.Reach.Join != holder.Name || holder.Labels[sandbox.LabelDeadline] != end || holder.Argv[2] != end {
			t.Errorf("the app ends at %s; service %+v below %+v", end, box, holder)
		}
		until = append(until, end)
		s.app.Life += time.Hour
	}
	if until[0] == until[1] {
		t.Errorf("the second app ends with the first: %v", until)
	}
}

// An app that is started again for a call keeps its token, for the call's
// Verifier may run; another call's app has another one.
func TestAppToken(t *testing.T) {
	s := newStage(t, web, `{"event":"ready"}`)
	first, err := s.app.Up(t.Context(), "k", "")
	must(t, err)
	must(t, s.engine.Kill(t.Context(), s.app.box()))
	second, err := s.app.Up(t.Context(), "k", "")
	must(t, err)
	must(t, os.MkdirAll(s.runner.Project.Call("l"), 0o755))
	other, err := s.app.Up(t.Context(), "l", "")
	must(t, err)
	if first.Token != second.Token || other.Token == first.Token {
		t.Errorf("tokens %q, %q, %q", first.Token, second.Token, other.Token)
	}
	var spec helper.BrokerSpec
	data, err := os.ReadFile(filepath.Join(s.runner.Project.Call("l"), "app", "in", "broker.json"))
	if err != nil || json.Unmarshal(data, &spec) != nil || spec.Deadline <= time.Now().Unix() {
		t.Errorf("orders %s, %v", data, err)
	}
}

// An app that stops the broker, or floods the file that it writes to, fails by that.
func TestAppThatSilencesItsBroker(t *testing.T) {
	for name, says := range map[string]string{"stopped": "{\"event\":\"listening\"}\n", "flooded": strings.Repeat("x", 2<<20) + "\n{\"event\":\"ready\"}\n"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, web, says)
			s.app.Silence = 50 * time.Millisecond
			up, err := s.app.Up(t.Context(), "k", "")
			if err != nil || !strings.Contains(up.Failed, "abl saw no result of its start") {
				t.Errorf("got %+v, %v, want a start that failed with \"abl saw no result of its start\"", up, err)
			}
		})
	}
}

func TestAppFails(t *testing.T) {
	s := newStage(t, web, "")
	s.engine.Sync = true
	if _, err := s.app.Up(t.Context(), "k", ""); err == nil || !strings.Contains(err.Error(), "ended with exit code 3 before it reported anything") {
		t.Errorf("an app that ends at once: %v", err)
	}
	s = newStage(t, web, `{"event":"failed","name":"db","detail":"no answer on port 5432"}`)
	if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, ErrService) {
		t.Errorf("a service that fails: %v", err)
	}
	for _, method := range []string{"Create", "Start", "EnsureVolume"} {
		t.Run(method, func(t *testing.T) {
			for _, nth := range []int{1, 2, 3} {
				s := newStage(t, web, `{"event":"ready"}`)
				s.engine.Fail(method, nth, sandbox.ErrUnreachable)
				_, err := s.app.Up(t.Context(), "k", "")
				if method == "EnsureVolume" && nth == 3 {
					continue // there are two
				}
				if !errors.Is(err, sandbox.ErrUnreachable) {
					t.Errorf("%s %d: %v", method, nth, err)
				}
				if up, err := s.app.Up(t.Context(), "k", ""); err != nil || up.URL == "" {
					t.Errorf("after %s %d failed: %v", method, nth, err)
				}
			}
		})
	}
}

// An app's start that is cancelled ends soon, with a reason that counts as one.
func TestAppCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStage(t, web, `{"event":"listening"}`)
	broker := s.engine.Scripts["abl-id-app"]
	s.engine.Scripts["abl-id-app"] = func(b sandbox.Box) sandbox.Exit { cancel(); return broker(b) }
	if _, err := s.app.Up(ctx, "k", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("while it waits: %v", err)
	}
	s = newStage(t, web, `{"event":"ready"}`)
	if _, err := s.app.Up(cancelled(t), "k", ""); !errors.Is(err, context.Canceled) || strings.Contains(s.engine.Journal(), "Create") {
		t.Errorf("before it begins: %v\n%s", err, s.engine.Journal())
	}
}

func TestAppGetsACopy(t *testing.T) {
	s := newStage(t, web, `{"event":"ready"}`)
	write(t, filepath.Join(s.runner.Project.Src, "a"), "a change that no commit has")
	s.app.Copy = "tar"
	_, err := s.app.Up(t.Context(), "k", "")
	must(t, err)
	exported, err := os.ReadFile(s.app.Project.Cache("trees", "t1", "a"))
	if err != nil || string(exported) != "text of the commit" || !strings.Contains(s.engine.Journal(), "CopyIn ") {
		t.Errorf("exported %q, %v, want the text of the commit\n%s", exported, err, s.engine.Journal())
	}
	b, _ := s.engine.Box(s.app.box())
	for _, m := range b.Mounts {
		if m.Source == s.runner.Project.Src {
			t.Error("the app sees the source itself")
		}
	}
	must(t, s.app.Down(t.Context(), "k"))
	broken := errors.New("unreadable")
	s.app.Commits = oneCommit{tree: "t2", err: broken}
	if _, err := s.app.Up(t.Context(), "k", ""); !errors.Is(err, broken) {
		t.Errorf("a commit that cannot be read: got %v, want %v", err, broken)
	}
}

// An app that writes more than it may into its copy of the source, or into what abl keeps of
// it, is ended, and its record has the reason.
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
			s := newStage(t, web, c.says)
			looked := make(chan struct{}, 100)
			s.app.Disk = DiskQuota{Bytes: 60 << 20, Every: time.Millisecond}
			s.engine.Used = func(volume string) int64 {
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
			must(t, err)
			if c.want == "" {
				<-looked
				<-looked // the first look passed
			} else if up.Failed == "" {
				_, err := s.engine.Wait(t.Context(), s.app.box())
				must(t, err)
			}
			must(t, s.app.Down(t.Context(), "k"))
			ends, err := EndsOf(s.app.Project, "k")
			must(t, err)
			if got := strings.Join(append(ends.Broke, up.Failed), "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
