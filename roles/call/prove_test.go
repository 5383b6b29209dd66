package call

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
	"abl/roles/boundary"
)

// A container that differs from the intent is never started, and is removed.
func TestAnotherContainerIsNotStarted(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	r.runner.Engine = rolestest.Changed{Engine: r.Engine, Change: func(b *sandbox.ContainerConfig) {
		b.Mounts = append(b.Mounts, sandbox.Mount{What: sandbox.Workspace, Source: "/", Target: "/host"})
	}}
	_, err := r.runner.Run(t.Context(), r.job)
	if !errors.Is(err, sandbox.ErrUnproven) || !strings.Contains(err.Error(), "call p1-build-1.1: the boundary is not proven: box is ") {
		t.Errorf("error of an altered container: got %v, want %v for p1-build-1.1", err, sandbox.ErrUnproven)
	}
	if strings.Contains(r.Engine.Journal(), "Start") || strings.Contains(r.Kinds(), "call_start") {
		t.Errorf("start of an altered container: got %s, events %s, want none", r.Engine.Journal(), r.Kinds())
	}
	r.WantLeft()
	if b, ok, err := r.rec().Boundary(); err != nil || !ok || b.Failed == "" || b.Made.Err() == nil {
		t.Errorf("record of the boundary: got %+v, found %t, error %v, want a failed one", b, ok, err)
	}
	r.runner.Engine = r.Engine
	if o := r.run(); o.Class != outcome.Done || o.Key != "p1-build-1.1" {
		t.Errorf("next run: got %s, key %s, want %s, key p1-build-1.1", show(o), o.Key, outcome.Done)
	}
	if b, _, _ := r.rec().Boundary(); b.Failed != "" || b.Inside.Err() != nil || b.Made.Err() != nil || b.Unheard {
		t.Errorf("record of the next boundary: got %+v, want a proven one", b)
	}
}

// TestHolderFailsItsProof checks that a holder that differs from the intent fails the boundary, and
// does not count as ended from outside.
func TestHolderFailsItsProof(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	r.job.Place = boundary.PlaceBuilder
	r.runner.Engine = rolestest.Changed{Engine: r.Engine, Change: func(b *sandbox.ContainerConfig) {
		if b.Labels[sandbox.LabelKind] == "holder" {
			b.Limits.Pids = 0
		}
	}}
	_, err := r.runner.Run(t.Context(), r.job)
	if !errors.Is(err, sandbox.ErrUnproven) || errors.Is(err, sandbox.ErrKilled) {
		t.Errorf("got %v, want %v", err, sandbox.ErrUnproven)
	}
	r.WantLeft("abl-id-net-builder")
}

// TestSecretInTheEnvironment checks that a container with a secret is not started, and that the secret
// is not printed.
func TestSecretInTheEnvironment(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	r.runner.Safe = &redact.Sanitizer{}
	r.runner.Safe.Hide("swordfish-swordfish")
	r.job.Env = []string{"SOME=x swordfish-swordfish"}
	_, err := r.runner.Run(t.Context(), r.job)
	if !errors.Is(err, sandbox.ErrUnproven) || !strings.Contains(err.Error(), `secrets in its environment: got SOME, want none`) {
		t.Errorf("error: got %v, want %v with the name SOME", err, sandbox.ErrUnproven)
	}
	data, rerr := os.ReadFile(filepath.Join(r.rec().Dir, "boundary.json"))
	if rerr != nil || strings.Contains(string(data)+err.Error(), "swordfish") {
		t.Errorf("record and error: got %s, %v, read error %v, want no secret", data, err, rerr)
	}
}

// TestFirstLine checks that only the first line of a container's output decides.
func TestFirstLine(t *testing.T) {
	line := func(p helper.Probed) string {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	good := func(b sandbox.ContainerConfig) helper.Probed { return helper.Probed{Proof: sandboxtest.Answer(b)} }
	for _, c := range []struct {
		name string
		says func(sandbox.ContainerConfig) string
		exit sandbox.Exit
		want string // the outcome, or a part of the error
	}{
		{"holds", func(b sandbox.ContainerConfig) string { return line(good(b)) }, sandbox.Exit{}, "done 0"},
		{"holds, and lies follow", func(b sandbox.ContainerConfig) string {
			return line(good(b)) + line(helper.Probed{Error: "no"})
		}, sandbox.Exit{}, "done 0"},
		{"fails", func(b sandbox.ContainerConfig) string {
			p := good(b)
			p.Proof[3] = sandbox.Check{Name: p.Proof[3].Name, Want: "a", Got: "b"}
			return line(p)
		}, sandbox.Exit{Code: 125}, ""},
		{"fails, and lies follow", func(b sandbox.ContainerConfig) string {
			return line(helper.Probed{Proof: sandbox.Proof{{Name: "x"}}}) + line(good(b))
		}, sandbox.Exit{}, `x: `},
		{"fails where it may", func(b sandbox.ContainerConfig) string {
			p := good(b)
			p.Proof[3].OK, p.Proof[3].Weak = false, true
			return line(p)
		}, sandbox.Exit{}, "done 0"},
		{"leaves something out", func(b sandbox.ContainerConfig) string {
			p := good(b)
			p.Proof = p.Proof[:len(p.Proof)-1]
			return line(p)
		}, sandbox.Exit{}, "the probe inside left out 1 checks: "},
		{"could not look", func(sandbox.ContainerConfig) string { return line(helper.Probed{Error: "no file"}) }, sandbox.Exit{Code: 125}, "no file"},
		{"found nothing", func(sandbox.ContainerConfig) string { return line(helper.Probed{Proof: sandbox.Proof{}}) }, sandbox.Exit{}, "nothing was checked"},
		{"another program", func(sandbox.ContainerConfig) string { return "hello\n" }, sandbox.Exit{}, `no probe ran inside; the first output was "hello\n"`},
		{"last words alone", func(sandbox.ContainerConfig) string { return `{"exit":0}` + "\n" }, sandbox.Exit{}, "no probe ran inside"},
		{"half a line", func(b sandbox.ContainerConfig) string { return strings.TrimSpace(line(good(b))) }, sandbox.Exit{}, "no probe ran inside"},
		{"nothing", func(sandbox.ContainerConfig) string { return "" }, sandbox.Exit{Code: 127}, "no probe ran inside"},
		{"out of memory before a word", func(sandbox.ContainerConfig) string { return "" }, sandbox.Exit{Code: 1, OOMKilled: true}, "oom 1 out of memory (limits.memory)"},
		{"stopped before it has looked", func(sandbox.ContainerConfig) string { return `{"exit":143,"signal":"SIGTERM","stopped":true}` + "\n" }, sandbox.Exit{Code: 143},
			"crashed 143 ended by signal SIGTERM"},
		{"stopped before a word", func(sandbox.ContainerConfig) string { return "" }, sandbox.Exit{Code: 2}, "failed 2 ended with exit code 2 and no result"},
		{"killed before a word", func(sandbox.ContainerConfig) string { return "" }, sandbox.Exit{Code: 137}, "engine 137 its container was killed from outside: the engine or the container was stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
				if strings.HasPrefix(c.want, "done") {
					rolestest.Prints(b, "end")
				}
				return c.exit
			})
			r.Engine.Opening = c.says
			o, err := r.runner.Run(t.Context(), r.job)
			refused := o.Class == outcome.Unproven
			if err != nil || !refused && show(o) != c.want || refused && !strings.Contains(o.Reason, c.want) {
				t.Errorf("got %s, %v, want %s", show(o), err, c.want)
			}
			r.WantLeft()
			b, ok, berr := r.rec().Boundary()
			if berr != nil || !ok || (b.Failed != "") != refused {
				t.Errorf("record of the boundary: got %+v, found %t, error %v, want one with failed %t",
					b, ok, berr, refused)
			}
			if !r.rec().Started() {
				t.Error("call: got one that never started, want a started one")
			}
		})
	}
}

// TestProofOfAnAdoptedCall checks a call that an earlier abl started and probed. If that abl was
// killed before it read the proof, this one reads it and records that the listener was not asked.
func TestProofOfAnAdoptedCall(t *testing.T) {
	for _, read := range []bool{true, false} {
		r := newRig(t, rolestest.Says("end", 0))
		r.Engine.Sync = true
		r.begin()
		if !read {
			rolestest.Must(t, os.Remove(filepath.Join(r.rec().Dir, "boundary.json")))
		}
		r.Engine.Forget()
		if o := r.run(); o.Class != outcome.Done {
			t.Errorf("read %t: got %s, want %s", read, show(o), outcome.Done)
		}
		b, _, err := r.rec().Boundary()
		if err != nil || b.Inside.Err() != nil || b.Unheard == read || strings.Contains(r.Engine.Journal(), "Head") == read {
			t.Errorf("read %t: got record %+v, error %v, journal %s, want unheard %t",
				read, b, err, r.Engine.Journal(), !read)
		}
	}
	r := newRig(t, rolestest.Says("end", 0))
	r.Engine.Sync, r.Engine.Opening = true, func(sandbox.ContainerConfig) string { return "" }
	if o := r.run(); o.Class != outcome.Unproven {
		t.Errorf("call without a first line: got %s, want %s", show(o), outcome.Unproven)
	}
	r.WantLeft()
}

// TestNetworkOfACall checks the probe's request about the network, and the record if a check fails.
func TestNetworkOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		weak, inodes bool
		arrived      int
		wantClass    outcome.Outcome
		wantWeak     string
	}{
		"proven":               {wantClass: outcome.Done},
		"same kernel":          {inodes: true, wantClass: outcome.Done},
		"datagram arrived":     {arrived: 1, wantClass: outcome.Unproven},
		"weak network":         {weak: true, arrived: 1, wantClass: outcome.Done, wantWeak: "datagrams that arrived"},
		"weak allowed in vain": {weak: true, wantClass: outcome.Done},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rolestest.Says("end", 0))
			r.Engine.Arrived = c.arrived
			r.runner.Weak, r.runner.Inodes, r.job.Place = c.weak, c.inodes, boundary.PlaceBuilder
			if o := r.run(); o.Class != c.wantClass {
				t.Errorf("got %s, want %s", show(o), c.wantClass)
			}
			spec, asked, err := roles.Read[helper.ProbeSpec](r.rec(), "probe.json")
			if !asked && err == nil { // it stays there if a check fails
				spec, asked, err = roles.Read[helper.ProbeSpec](roles.Record{Dir: r.rec().In()}, "probe.json")
			}
			if err != nil || !asked {
				t.Fatal(err)
			}
			if spec.Net.Weak != c.weak || spec.Net.Word != "word" || spec.Net.Port != "1001" || (spec.Mounts[0].Inode != 0) != c.inodes {
				t.Errorf("got probe %+v, want weak %t, inodes %t", spec, c.weak, c.inodes)
			}
			if b, _, _ := r.rec().Boundary(); b.Weak != c.wantWeak || (b.Failed != "") != (c.wantClass != outcome.Done) {
				t.Errorf("got record %+v, want weak network %q", b, c.wantWeak)
			}
		})
	}
}
