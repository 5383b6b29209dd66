package phase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// meets returns a step in which an agent waits until the test has done something.
func meets(t *testing.T) agent.Step {
	t.Helper()
	return must(0, lab.File(t, "scripts/wait-for-go.sh")+"rm go\n")
}

// meanwhile runs phase 1 and calls do while an agent of the role waits.
func meanwhile(p *lab.Project, role string, do func()) lab.Result {
	p.Helper()
	dir, met := map[string]string{"builder": "src", "verifier": ".abl/tests"}[role], false
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == role && strings.HasPrefix(e.Text, "run # Waits") && !met {
			met = true
			do()
			p.Write(dir+"/go", "")
		}
	}, "phase", "1")
	if !met {
		p.Fatalf("gate of the %s: got no agent that reached it, want one: %s%s", role, r.Stdout, r.Stderr)
	}
	return r
}

func asUser(p *lab.Project, args ...string) string {
	return p.Git("src", append([]string{"-c", "user.name=P", "-c", "user.email=p@example.com"}, args...)...)
}

// If a history changes while an agent works, the user has to decide. abl keeps the call, and
// commits nothing on top in any later run.
func TestHistoryMovesWhileTheBuilderWorks(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server), meets(t)), verifies())
	history(p)
	was := p.Git("src", "rev-parse", "HEAD")
	r := meanwhile(p, "builder", func() {
		p.Git("src", "add", "README") // the index, objects and packs are the user's
		p.Git("src", "gc", "-q")
		asUser(p, "commit", "-q", "--allow-empty", "--no-verify", "-m", "mine")
	})
	mine := p.Git("src", "rev-parse", "HEAD")
	for range 2 {
		if r.Code != 9 {
			t.Fatalf("got exit %d, want 9: %s", r.Code, r.Stderr)
		}
		wants(t, "the output", r.Stderr, "refs/heads/trunk", was, mine, "p1-build-1.1 is saved",
			".abl/logs/calls/p1-build-1.1/history.json")
		if got := p.Git("src", "rev-parse", "HEAD"); got != mine {
			t.Errorf("HEAD of src: got %s, want %s", got, mine)
		}
		if n := strings.Count(p.Read(".abl/logs/tokens.csv"), "p1-build-1.1"); n != 1 {
			t.Errorf("got %d rows for call p1-build-1.1, want 1", n)
		}
		r = p.Run("phase", "1")
	}
	p.Git("src", "update-ref", "refs/heads/trunk", was)
	p.Must(0, "phase", "1")
	if got := p.Git("src", "log", "--format=%s", "-2"); got != "phase1/build/step-1\na first file" {
		t.Errorf("last commits of src: got\n%s\nwant phase1/build/step-1 and a first file", got)
	}
	if got := calls(p); got != "p1-build-1.1 p1-verify-1.1" {
		t.Errorf("got calls %s, want %q", got, "p1-build-1.1 p1-verify-1.1")
	}
	checkNothingLeft(p)
}

// Alternates would include the other role's objects. abl keeps the call and commits nothing until
// the user has removed them. abl reports a change of git's settings once, before the next call,
// and runs no hook.
func TestGitChangesWhileTheVerifierWorks(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server)),
		call("verifier", 1, append(verifies().Steps, refute("no"), meets(t))...), verifies())
	const alternates = ".abl/tests/.git/objects/info/alternates"
	r := meanwhile(p, "verifier", func() {
		p.Write(alternates, "../../src/.git/objects\n")
		p.Git("src", "config", "alias.x", "!touch x")
		p.Write("src/.git/hooks/post-commit", "#!/bin/sh\ntouch "+filepath.Join(p.Dir, "hook-ran")+"\n")
	})
	if r.Code != 9 {
		t.Fatalf("got exit %d, want 9: %s", r.Code, r.Stderr)
	}
	wants(t, "the output", r.Stderr, "alternates", "p1-verify-1.1 is saved")
	if err := os.Remove(filepath.Join(p.Dir, alternates)); err != nil {
		t.Fatal(err)
	}
	out := p.Must(0, "phase", "1", "--json").Stdout
	if n := strings.Count(out, "these changed since the call before: config, hooks/post-commit"); n != 1 {
		t.Errorf("reports of the change of git's settings: got %d, want 1:\n%s", n, out)
	}
	if got, want := calls(p), "p1-build-1.1 p1-build-2.1 p1-verify-1.1 p1-verify-2.1"; got != want {
		t.Errorf("calls: got %s, want %s", got, want)
	}
	lacks(t, "the next run", p.Must(0, "phase", "1", "--json").Stdout, "these changed")
	if p.Exists("hook-ran") {
		t.Error("hook-ran: got a file of the hook, want none")
	}
	checkNothingLeft(p)
}

// A folder for a container has become a link, though to the same content. abl creates no
// container.
func TestSourceReplacedWithALink(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server), meets(t)), verifies())
	at := func(name string) string { return filepath.Join(p.Dir, name) }
	r := meanwhile(p, "builder", func() {
		if err := os.Rename(at(".abl/specs"), at("moved")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at("moved"), at(".abl/specs")); err != nil {
			t.Fatal(err)
		}
	})
	if r.Code != 9 {
		t.Fatalf("got exit %d, want 9: %s", r.Code, r.Stderr)
	}
	wants(t, "the output", r.Stderr, `.abl/specs: it is a link, or not a directory`)
	if got := calls(p); strings.Contains(got, "verify") && p.Read(".abl/logs/calls/p1-verify-1.1/started") != "" {
		t.Errorf("got calls %s, want none of the Verifier", got)
	}
	lacks(t, "the containers", r.Stdout, "app_start")
	if err := errors.Join(os.Remove(at(".abl/specs")), os.Rename(at("moved"), at(".abl/specs"))); err != nil {
		t.Fatal(err)
	}
	checkNothingLeft(p)
}
