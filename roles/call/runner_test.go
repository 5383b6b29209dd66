package call

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
	"abl/roles/boundary"
)

func TestRun(t *testing.T) {
	r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
		if prompt, err := os.ReadFile(sandboxtest.Host(b, helper.Prompt)); err != nil || !strings.Contains(string(prompt), "\n\ndo it\n[abl call ") {
			return sandbox.Exit{Code: 9}
		}
		rolestest.Prints(b, "do a\nused 7\nend")
		report := sandboxtest.Host(b, helper.Src+"/builder_reports/phase1_v1_x.md")
		if os.MkdirAll(filepath.Dir(report), 0o755) != nil || os.WriteFile(report, []byte("r"), 0o644) != nil {
			return sandbox.Exit{Code: 8}
		}
		return sandbox.Exit{}
	})
	o := r.run()
	if got, want := show(o), "done 0, m-1 7"; got != want || o.Report != "phase1_v1_x.md" || o.Session != "s" || o.Output != int64(len("do a\nused 7\nend")) {
		t.Errorf("got %s, %+v, want %s", got, o, want)
	}
	if got, want := r.Kinds(), "call_start action:a call_end usage"; got != want {
		t.Errorf("events: got %s, want %s", got, want)
	}
	for _, e := range r.Events() {
		if e.Round != 2 || e.Iteration != 1 {
			t.Errorf("event %s: got round %d, iteration %d, want 2, 1", e.Kind, e.Round, e.Iteration)
		}
	}
	if e := r.Events()[3]; e.Model != "m-1" || *e.Tokens != 7 {
		t.Errorf("usage: got model %s, %d tokens, want m-1, 7", e.Model, *e.Tokens)
	}
	r.WantLeft()
	if last, err := os.ReadFile(r.runner.Project.LastLog("builder")); err != nil || !strings.HasPrefix(string(last), "do a") {
		t.Errorf("last log: got %q, error %v, want one that begins with %q", last, err, "do a")
	}
	// The second run only removes the container.
	r.Engine.Forget()
	if again := r.run(); show(again) != show(o) || r.Engine.Journal() != "Remove abl-id-p1-build-1.1\n" || r.prompts != 1 {
		t.Errorf("second run: got %s, journal %q, %d prompts, want %s, one removal, 1 prompt",
			show(again), r.Engine.Journal(), r.prompts, show(o))
	}
}

// A call begins without the stale files of its workspace and writes the project map. A shell
// changes neither.
func TestStaleFilesAndMap(t *testing.T) {
	r := newRig(t, func(sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{} })
	stale, projectMap := filepath.Join(r.job.Role.Workspace(r.runner.Project), "failed_specs.md"), r.runner.Project.Map()
	r.job.Stale = []string{"failed_specs.md"}
	r.job.Prompt = func() (string, string, error) { return "do it", "1 file\n", nil }
	rolestest.Must(t, os.WriteFile(stale, []byte("of an earlier call"), 0o600))
	if _, err := r.runner.Shell(t.Context(), r.job); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); err != nil {
		t.Errorf("after a shell: got %v, want the stale file", err)
	}
	if _, err := os.Stat(projectMap); err == nil {
		t.Error("after a shell: got a project map, want no change")
	}
	r.run()
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a call: got %v, want no stale file", err)
	}
	if got, err := os.ReadFile(projectMap); string(got) != "1 file\n" {
		t.Errorf("project map: got %q, error %v, want %q", got, err, "1 file\n")
	}
}

// A shell must match the rule of its role. Here its workspace is mounted in another way.
func TestShellKeepsTheRule(t *testing.T) {
	r := newRig(t, func(sandbox.ContainerConfig) sandbox.Exit { return sandbox.Exit{} })
	r.job.Role.Sealed = true
	name, err := r.runner.Shell(t.Context(), r.job)
	if !errors.Is(err, sandbox.ErrUnproven) {
		t.Errorf("got container %q, error %v, want %v", name, err, sandbox.ErrUnproven)
	}
	if _, there := r.Engine.Config(boundary.ContainerName(r.runner.ID, r.job.Call.ID)); there {
		t.Error("container of the shell: got one, want none")
	}
}

func TestEnds(t *testing.T) {
	words := func(end string, exit sandbox.Exit) func(*rig) sandboxtest.Script {
		return func(r *rig) sandboxtest.Script {
			return func(b sandbox.ContainerConfig) sandbox.Exit {
				r.Engine.Print(b.Name, "noise\n"+end+"\n")
				return exit
			}
		}
	}
	output := func(text string, exit sandbox.Exit) func(*rig) sandboxtest.Script {
		return func(*rig) sandboxtest.Script {
			return func(b sandbox.ContainerConfig) sandbox.Exit { rolestest.Prints(b, text); return exit }
		}
	}
	for _, c := range []struct {
		name   string
		script func(*rig) sandboxtest.Script
		want   string
	}{
		{"silent", output("do a\n", sandbox.Exit{Code: 3}), "failed 3 ended with exit code 3 and no result"},
		{"silent and 0", output("used 2\n", sandbox.Exit{}), "failed 0 ended with exit code 0 and no result, m-1 2"},
		{"memory", output("", sandbox.Exit{Code: 137, OOMKilled: true}), "oom 137 out of memory (limits.memory)"},
		{"memory of a child", output("end", sandbox.Exit{OOMKilled: true}), "done 0"},
		{"signal", words(`{"exit":137,"signal":"SIGKILL"}`, sandbox.Exit{Code: 137}), "crashed 137 ended by signal SIGKILL"},
		{"deadline", words(`{"exit":124,"deadline":true}`, sandbox.Exit{Code: 124}), "timeout 124 stopped after 1h0m0s (loop.call_timeout)"},
		{"deadline that the engine could not keep", func(r *rig) sandboxtest.Script {
			return words(`{"exit":124,"deadline":true}`, sandbox.Exit{Code: 137, Forced: "no exit event"})(r)
		}, "timeout 137 stopped after 1h0m0s (loop.call_timeout); " +
			"the engine could not stop the container (no exit event), so abl killed its processes"},
		{"no program", words(`{"exit":127,"error":"no such file"}`, sandbox.Exit{Code: 127}), "failed 127 could not be started: no such file"},
		{"removed", func(r *rig) sandboxtest.Script {
			return func(b sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Prints(b, "used 4\nend\n")
				r.Engine.Remove(r.Context(), b.Name)
				return sandbox.Exit{}
			}
		}, "lost -1 something other than abl removed its container, m-1 4"},
		{"flood", func(r *rig) sandboxtest.Script {
			r.runner.Output = 10
			return func(b sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Prints(b, "used 4\nend\n")
				<-r.Context().Done()
				return sandbox.Exit{}
			}
		}, "flood 143 stopped: it printed more than 10 bytes (limits.output), m-1 4"},
		{"flood that was quicker", func(r *rig) sandboxtest.Script {
			r.runner.Output = 10
			return output("used 4\nend\n", sandbox.Exit{})(r)
		}, "flood 0 stopped: it printed more than 10 bytes (limits.output), m-1 4"},
		{"idle", func(r *rig) sandboxtest.Script {
			r.runner.Idle = time.Nanosecond
			return func(b sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Prints(b, "used 4\n")
				<-r.Context().Done()
				return sandbox.Exit{}
			}
		}, "idle 143 stopped: it printed nothing and was almost idle for 1ns (loop.idle_timeout), m-1 4"},
		{"late", func(r *rig) sandboxtest.Script {
			r.runner.Timeout = time.Nanosecond
			return func(sandbox.ContainerConfig) sandbox.Exit { <-r.Context().Done(); return sandbox.Exit{} }
		}, "timeout 143 stopped after 1ns (loop.call_timeout)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Engine.Scripts = map[string]sandboxtest.Script{"role": c.script(r)}
			o := r.run()
			if got := show(o); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if kept, ok, err := r.rec().Outcome(); err != nil || !ok || show(kept) != show(o) {
				t.Errorf("outcome on disk: got %s, found %t, error %v, want %s", show(kept), ok, err, show(o))
			}
			r.WantLeft()
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "used 3\n")
		cancel()
		<-t.Context().Done()
		return sandbox.Exit{}
	})
	o, err := r.runner.Run(ctx, r.job)
	if err != nil || show(o) != "interrupted 143 stopped on request, m-1 3" {
		t.Errorf("cancelled call: got %s, error %v, want an interrupted one that used 3", show(o), err)
	}
	r.WantLeft()
}

func TestCancelledBeforeItBegins(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	if _, err := r.runner.Run(rolestest.Cancelled(t), r.job); !errors.Is(err, context.Canceled) {
		t.Errorf("error of a cancelled call: got %v, want %v", err, context.Canceled)
	}
	if r.prompts != 0 || strings.Contains(r.Engine.Journal(), "Create") {
		t.Errorf("cancelled call: got %d prompts, journal %s, want 0 and no container", r.prompts, r.Engine.Journal())
	}
}

func TestAdoption(t *testing.T) {
	printed := make(chan bool, 1)
	block := func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "do a\nused 5\nend\n")
		printed <- true
		<-t.Context().Done()
		return sandbox.Exit{}
	}
	container := "abl-id-p1-build-1.1"
	for _, c := range []struct {
		name    string
		before  func(*rig) // actions of an earlier abl and others
		want    string
		events  string
		prompts int
	}{
		{"running", func(r *rig) {
			r.Engine.Scripts["role"] = block
			r.begin()
			<-printed
			go r.Engine.Finish(container, sandbox.Exit{})
		}, "done 0, m-1 5", "call_start call_resume action:a call_end usage", 1},
		{"running, and killed before it stopped it", func(r *rig) {
			r.Engine.Scripts["role"] = block
			r.begin()
			<-printed
			rolestest.Must(r.T, r.rec().Stop(roles.Stopped{Class: outcome.Flood}))
			unstopped := time.AfterFunc(10*time.Second, func() { r.Engine.Finish(container, sandbox.Exit{Code: 99}) })
			r.Cleanup(func() { unstopped.Stop() })
		}, "flood 143 stopped: it printed more than 0 bytes (limits.output), m-1 5", "call_start call_resume action:a call_end usage", 1},
		{"ended, and long ago", func(r *rig) {
			r.Engine.Sync = true
			r.begin()
			intent, _, _ := r.rec().Intent()
			intent.Begun = intent.Begun.Add(-48 * time.Hour)
			if err := r.rec().Write("intent.json", intent); err != nil {
				r.Fatal(err)
			}
		}, "done 0, m-1 5", "call_start call_resume action:a call_end usage", 1},
		{"failed, and long ago", func(r *rig) {
			r.Engine.Sync, r.Engine.Scripts["role"] = true, rolestest.Says("do a\nused 5\n", 3)
			r.begin()
			r.runner.Timeout = time.Nanosecond
		}, "failed 3 ended with exit code 3 and no result, m-1 5", "call_start call_resume action:a call_end usage", 1},
		{"made and never started", func(r *rig) {
			_, made, err := r.runner.prepare(r.Context(), r.job, r.rec())
			rolestest.Must(r.T, err)
			_, err = r.Engine.Create(r.Context(), made)
			rolestest.Must(r.T, err)
		}, "done 0, m-1 5", "call_start action:a call_end usage", 2},
		{"intended and never made", func(r *rig) {
			_, _, err := r.runner.prepare(r.Context(), r.job, r.rec())
			rolestest.Must(r.T, err)
		}, "done 0, m-1 5", "call_start action:a call_end usage", 2},
		{"start refused", func(r *rig) {
			r.Engine.Fail("Start", 1, errors.New("no network"))
			if _, err := r.runner.Run(r.Context(), r.job); err == nil || !strings.Contains(err.Error(), "cannot start the builder: no network") {
				r.Fatal(err)
			}
			rolestest.Must(r.T, r.Engine.Remove(r.Context(), container))
		}, "done 0, m-1 5", "call_start call_start action:a call_end usage", 2},
		{"gone", func(r *rig) {
			r.Engine.Sync = true
			r.begin()
			rolestest.Must(r.T, r.Engine.Remove(r.Context(), container))
		}, "lost -1 something other than abl removed its container, m-1 5", "call_start action:a call_end usage", 1},
		{"gone on request", func(r *rig) {
			r.Engine.Sync = true
			r.begin()
			rolestest.Must(r.T, r.rec().Stop(roles.Stopped{Class: outcome.Interrupted}))
			rolestest.Must(r.T, r.Engine.Remove(r.Context(), container))
		}, "interrupted -1 stopped on request, m-1 5", "call_start action:a call_end usage", 1},
		{"stopped at its time limit, without a signal", func(r *rig) {
			r.Engine.Scripts["role"] = block
			r.begin()
			<-printed
			rolestest.Must(r.T, r.rec().Stop(roles.Stopped{Class: outcome.Timeout}))
			rolestest.Must(r.T, r.rec().Stop(roles.Stopped{Class: outcome.Interrupted})) // the first reason stays
			rolestest.Must(r.T, r.Engine.Stop(r.Context(), container, 0))
		}, "timeout 143 stopped after 1h0m0s (loop.call_timeout), m-1 5", "call_start call_resume action:a call_end usage", 1},
		{"stop was requested, and it ended properly", func(r *rig) {
			r.Engine.Sync = true
			r.begin()
			rolestest.Must(r.T, r.rec().Stop(roles.Stopped{Class: outcome.Interrupted}))
		}, "done 0, m-1 5", "call_start call_resume action:a call_end usage", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rolestest.Says("do a\nused 5\nend\n", 0))
			c.before(r)
			o := r.run()
			if got := show(o); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := r.Kinds(); got != c.events || r.prompts != c.prompts {
				t.Errorf("call: got %d prompts, events %s\nwant %d, %s", r.prompts, got, c.prompts, c.events)
			}
			r.WantLeft()
		})
	}
}

// If the engine does not respond, abl starts nothing.
func TestEngineAway(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	away := fmt.Errorf("down: %w", sandbox.ErrUnreachable)
	r.Engine.Fail("Status", 1, away)
	if _, err := r.runner.Run(t.Context(), r.job); !errors.Is(err, sandbox.ErrUnreachable) {
		t.Errorf("error without a status: got %v, want %v", err, sandbox.ErrUnreachable)
	}
	r.WantLeft()
	// If the engine stops responding while the call runs, no outcome is written.
	r.Engine.Fail("Wait", 1, away)
	if _, err := r.runner.Run(t.Context(), r.job); !errors.Is(err, sandbox.ErrUnreachable) {
		t.Errorf("error of a lost engine: got %v, want %v", err, sandbox.ErrUnreachable)
	}
	if _, ended, _ := r.rec().Outcome(); ended {
		t.Error("outcome on disk: got one, want none")
	}
	if o := r.run(); o.Class != outcome.Done {
		t.Errorf("next run: got %s, want %s", show(o), outcome.Done)
	}
}

func TestContainerIsAsPromised(t *testing.T) {
	r := newRig(t, nil)
	r.job.Env, r.job.Place = []string{"KEY=secret"}, boundary.PlaceBuilder
	r.runner.Limits = sandbox.Limits{Memory: 1, Pids: 2}
	_, b, err := r.runner.prepare(t.Context(), r.job, r.rec())
	rolestest.Must(t, err)
	var mounts []string
	for _, m := range b.Mounts {
		mounts = append(mounts, fmt.Sprintf("%s %s %t", m.What, m.Target, m.ReadOnly))
	}
	want := "workspace /workspace/src false|git /workspace/src/.git true|specs /workspace/specs true|call-in /abl/in true|call-out /abl/out/stdout false|call-out /abl/out/stderr false"
	if got := strings.Join(mounts, "|"); got != want {
		t.Errorf("mounts: got\n%s, want\n%s", got, want)
	}
	if b.User != "1000:1000" || b.Reach.Join != "abl-id-holder-builder" || b.Limits.Pids != 2 || b.Labels[sandbox.LabelCall] != "p1-build-1.1" || b.Labels[sandbox.LabelKind] != "role" {
		t.Errorf("container: got %+v, want user 1000:1000, 2 pids, and the network and labels of the call", b)
	}
	for name, want := range map[string]string{"prompt.md": "\ndo it\n", "run.json": `"stdin":"/abl/in/prompt.md"`, "more": "x"} {
		if got, err := os.ReadFile(filepath.Join(r.rec().In(), name)); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("file %s: got %q, error %v, want it to contain %q", name, got, err, want)
		}
	}
	for _, name := range []string{"intent.json", "in/run.json", "in/commands.json"} {
		if got, err := os.ReadFile(filepath.Join(r.rec().Dir, name)); err != nil || strings.Contains(string(got), "secret") {
			t.Errorf("file %s: got %q, error %v, want no secret", name, got, err)
		}
	}
}
