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

// meets is a step in which an agent waits until the test has done something.
func meets(t *testing.T) agent.Step {
	t.Helper()
	return must(0, lab.File(t, "scripts/wait-for-go.sh")+"rm go\n")
}

// meanwhile runs phase 1 and does something while an agent of the role waits.
func meanwhile(p *lab.Project, role string, do func()) lab.Result {
	p.Helper()
	dir, met := map[string]string{"builder": "src", "verifier": ".abl/tests"}[role], false
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == role && strings.HasPrefix(e.Text, "run # Waits until") && !met {
			met = true
			do()
			p.Write(dir+"/go", "")
		}
	}, "phase", "1")
	if !met {
		p.Fatalf("no agent waited: %s%s", r.Stdout, r.Stderr)
	}
	return r
}

func personally(p *lab.Project, args ...string) string {
	return p.Git("src", append([]string{"-c", "user.name=P", "-c", "user.email=p@example.com"}, args...)...)
}

// What moves a history while an agent works is a person's to decide about: the
// call is kept and nothing is committed on top, however often abl runs again.
func TestHistoryMovesWhileTheBuilderWorks(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server), meets(t)), verifies())
	history(p)
	was := p.Git("src", "rev-parse", "HEAD")
	r := meanwhile(p, "builder", func() {
		p.Git("src", "add", "README") // the index, objects and packs are the person's
		p.Git("src", "gc", "-q")
		personally(p, "commit", "-q", "--allow-empty", "--no-verify", "-m", "mine")
	})
	mine := p.Git("src", "rev-parse", "HEAD")
	for range 2 {
		if r.Code != 9 {
			t.Fatalf("exit %d: %s", r.Code, r.Stderr)
		}
		wants(t, "what is said", r.Stderr, "refs/heads/trunk", was, mine, "p1-build-1.1 is kept", ".abl/logs/calls/p1-build-1.1/history.json")
		if got := p.Git("src", "rev-parse", "HEAD"); got != mine {
			t.Errorf("HEAD is %s", got)
		}
		if n := strings.Count(p.Read(".abl/logs/tokens.csv"), "p1-build-1.1"); n != 1 {
			t.Errorf("%d rows for the call", n)
		}
		r = p.Run("phase", "1")
	}
	p.Git("src", "update-ref", "refs/heads/trunk", was)
	p.Must(0, "phase", "1")
	if got := p.Git("src", "log", "--format=%s", "-2"); got != "phase1/build/step-1\na first file" {
		t.Errorf("history:\n%s", got)
	}
	if got := calls(p); got != "p1-build-1.1 p1-verify-1.1" {
		t.Errorf("calls %s", got)
	}
	noLeftovers(p)
}

// Alternates would bring the other role's objects in: the call is kept, and nothing is committed
// before the user has removed them. What the user has configured for git meanwhile is reported
// once, before the next call, and no hook runs.
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
		t.Fatalf("exit %d, want 9: %s", r.Code, r.Stderr)
	}
	wants(t, "what is said", r.Stderr, "alternates", "p1-verify-1.1 is kept")
	if err := os.Remove(filepath.Join(p.Dir, alternates)); err != nil {
		t.Fatal(err)
	}
	out := p.Must(0, "phase", "1", "--json").Stdout
	if n := strings.Count(out, "this was changed since the call before: config, hooks/post-commit"); n != 1 {
		t.Errorf("the change of git's settings was reported %d times, want once:\n%s", n, out)
	}
	if got, want := calls(p), "p1-build-1.1 p1-build-2.1 p1-verify-1.1 p1-verify-2.1"; got != want {
		t.Errorf("calls: got %s, want %s", got, want)
	}
	lacks(t, "the next run", p.Must(0, "phase", "1", "--json").Stdout, "this was changed")
	if p.Exists("hook-ran") {
		t.Error("the hook ran")
	}
	noLeftovers(p)
}

// What a container is about to see has become a link, though to the same text:
// none is made.
func TestSourceBecomesALink(t *testing.T) {
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
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	wants(t, "what is said", r.Stderr, `.abl/specs: it is a link, or not a directory`)
	if got := calls(p); strings.Contains(got, "verify") && p.Read(".abl/logs/calls/p1-verify-1.1/started") != "" {
		t.Errorf("calls %s", got)
	}
	lacks(t, "what was started", r.Stdout, "app_start")
	if err := errors.Join(os.Remove(at(".abl/specs")), os.Rename(at("moved"), at(".abl/specs"))); err != nil {
		t.Fatal(err)
	}
	noLeftovers(p)
}
