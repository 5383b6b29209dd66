package phase

import (
	"os"
	"os/exec"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// A person changes the source between two iterations: abl stops before an agent
// works on it, touches nothing, and takes it as theirs when told to.
func TestTakeMine(t *testing.T) {
	fails := call("verifier", 1, write("run.sh", suite, "0755"), refute("500"), report())
	first := call("builder", 1, write("server.mjs", "// not yet\n"+server), report())
	second := call("builder", 2, must(0, "grep -q by-hand notes.txt"), write("server.mjs", server), report())
	p := newProject(t, nodeApp+"verify: {evidence: off}\n", []agent.ScriptCall{first, second, fails, verifies()}...)
	p.Env = append(p.Env, "ABL_FAILPOINTS=state.after=5*off->kill") // as it begins the second iteration
	if r := p.Run("phase", "1"); r.Code != -1 {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	p.Env = nil
	p.Write("src/notes.txt", "by-hand\n")
	r := p.Must(9, "phase", "1")
	wants(t, "the error", r.Stderr, "the source was changed by hand", `"notes.txt"`, "--take-mine")
	if got := p.Read("src/notes.txt"); got != "by-hand\n" {
		t.Errorf("the file is %q", got)
	}
	// Killed before the next call begins, it takes what is changed by then as well.
	p.Env = []string{"ABL_FAILPOINTS=call.before=kill"}
	if r := p.Run("phase", "1", "--take-mine"); r.Code != -1 {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	p.Env = nil
	p.Write("src/more.txt", "by-hand\n")
	one, two := p.Git("src", "rev-parse", "--short=7", "HEAD~1"), p.Git("src", "rev-parse", "--short=7", "HEAD")
	p.Must(0, "phase", "1", "--take-mine")
	if got, want := p.Git("src", "log", "--reverse", "--format=%s"), "phase1/build/step-1\nphase1/person/step-2 on "+one+"\nphase1/person/step-2 on "+two+"\nphase1/build/step-2"; got != want {
		t.Errorf("commits\n%s\nwant\n%s", got, want)
	}
	if got := p.Git("src", "show", "--name-only", "--format=", "HEAD~1"); got != "more.txt" {
		t.Errorf("the person's commit holds %s", got)
	}

	// A merge that is not finished is theirs, too.
	p.Git("src", "config", "user.email", "a@b.example")
	p.Git("src", "config", "user.name", "a")
	p.Git("src", "checkout", "-q", "-b", "side", "HEAD~1")
	p.Write("src/server.mjs", "// mine\n")
	p.Git("src", "commit", "-qam", "mine")
	p.Git("src", "checkout", "-q", "-")
	p.Must(0, "phase", "1") // passed: there is nothing to do, whatever the tree is like
	p.Write(".abl/specs/phase1.md", oneSpec+"\nMore is said.\n")
	gitMayFail(p, "merge", "side")
	r = p.Must(9, "phase", "1")
	wants(t, "the error", r.Stderr, "a merge is not finished")
}

// gitMayFail runs the person's git in src whatever becomes of it: a conflict is an error.
func gitMayFail(p *lab.Project, args ...string) {
	p.Helper()
	cmd := exec.Command("git", append([]string{"-C", p.Dir + "/src"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	_ = cmd.Run()
}
