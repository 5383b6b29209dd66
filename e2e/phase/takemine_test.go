package phase

import (
	"os"
	"os/exec"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// The user changes the source between two iterations. abl stops before an agent works on it and
// changes nothing. With --take-mine it commits the changes as the user's.
func TestTakeMineCommitsUserChanges(t *testing.T) {
	fails := call("verifier", 1, write("run.sh", suite, "0755"), refute("500"), report())
	first := call("builder", 1, write("server.mjs", "// not yet\n"+server), report())
	second := call("builder", 2, must(0, "grep -q by-hand notes.txt"), write("server.mjs", server), report())
	p := newProject(t, nodeApp+"verify: {evidence: off}\n", []agent.ScriptCall{first, second, fails, verifies()}...)
	p.Env = append(p.Env, "ABL_FAILPOINTS=state.after=5*off->kill") // at the start of the second iteration
	if r := p.Run("phase", "1"); r.Code != -1 {
		t.Fatalf("got exit %d, want -1: %s", r.Code, r.Stderr)
	}
	p.Env = nil
	p.Write("src/notes.txt", "by-hand\n")
	r := p.Must(9, "phase", "1")
	wants(t, "the error", r.Stderr, "the source was changed by hand", `"notes.txt"`, "--take-mine")
	if got := p.Read("src/notes.txt"); got != "by-hand\n" {
		t.Errorf("got file %q, want %q", got, "by-hand\n")
	}
	// Killed before the next call, abl also takes the changes made until then.
	p.Env = []string{"ABL_FAILPOINTS=call.before=kill"}
	if r := p.Run("phase", "1", "--take-mine"); r.Code != -1 {
		t.Fatalf("got exit %d, want -1: %s", r.Code, r.Stderr)
	}
	p.Env = nil
	p.Write("src/more.txt", "by-hand\n")
	one, two := p.Git("src", "rev-parse", "--short=7", "HEAD~1"), p.Git("src", "rev-parse", "--short=7", "HEAD")
	p.Must(0, "phase", "1", "--take-mine")
	if got, want := p.Git("src", "log", "--reverse",
		"--format=%s"), "phase1/build/step-1\nphase1/person/step-2 on "+one+"\nphase1/person/step-2 on "+two+"\nphase1/build/step-2"; got != want {
		t.Errorf("got commits\n%s\nwant\n%s", got, want)
	}
	if got := p.Git("src", "show", "--name-only", "--format=", "HEAD~1"); got != "more.txt" {
		t.Errorf("got the user's commit with %s, want %q", got, "more.txt")
	}

	// An unfinished merge is a user's change, too.
	p.Git("src", "config", "user.email", "a@b.example")
	p.Git("src", "config", "user.name", "a")
	p.Git("src", "checkout", "-q", "-b", "side", "HEAD~1")
	p.Write("src/server.mjs", "// mine\n")
	p.Git("src", "commit", "-qam", "mine")
	p.Git("src", "checkout", "-q", "-")
	p.Must(0, "phase", "1") // the phase has passed: abl does nothing, whatever the work tree contains
	p.Write(".abl/specs/phase1.md", oneSpec+"\nMore is said.\n")
	gitMayFail(p, "merge", "side")
	r = p.Must(9, "phase", "1")
	wants(t, "the error", r.Stderr, "a merge is unfinished")
}

// gitMayFail runs the user's git in src and ignores its result, because a conflict is an error.
func gitMayFail(p *lab.Project, args ...string) {
	p.Helper()
	cmd := exec.Command("git", append([]string{"-C", p.Dir + "/src"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	_ = cmd.Run()
}
