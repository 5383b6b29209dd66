package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"abl/internal/testing/lab"
)

// TestDocsGit runs the code blocks of docs/git.md in order.
func TestDocsGit(t *testing.T) {
	lab.Long(t)
	page, err := os.ReadFile("../../docs/git.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "")
	bin := t.TempDir()
	second := verifies(hasSuite(t, "a-test-a-phase.sh"), runsScript(t, "adds-a-test.sh"))
	for name, text := range map[string]string{
		"phase1.md":     "# Phase 1: One\n\n## Contracts\n\n- GET /1 → 200 with the text ok\n",
		"phase2.md":     "# Phase 2: Two\n\n## Contracts\n\n- GET /2 → 200 with the text ok\n",
		"scenario.yaml": string(lab.Scenario(t, builds(run("date >>built.txt")), second)),
		"gh":            "#!/bin/sh\ncat >\"$0.body\"\n",
		"editor":        lab.File(t, "scripts/editor.sh"), // enters the user's text
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The repository before abl.
	if err := os.RemoveAll(filepath.Join(p.Dir, ".abl")); err != nil {
		t.Fatal(err)
	}
	p.Write("package.json", "{}\n")
	p.Write("server.mjs", server)
	p.Git("", "init", "-q", "-b", "main")
	p.Git("", "add", "-A")
	p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", "as it was")
	origin := filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "clone", "-q", "--bare", p.Dir, origin)
	p.Git("", "remote", "add", "origin", origin)

	places := map[string]*lab.Project{"you": p}
	for _, block := range regexp.MustCompile("(?s)```sh (\\w+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		who, commands := block[1], block[2]
		at := places[who]
		if at == nil {
			at = cloneOf(p, origin)
			places[who] = at
		}
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
		cmd.Dir = at.Dir
		cmd.Env = append(at.Cmd().Environ(), "EDITOR="+bin+"/editor",
			"PATH="+bin+":"+filepath.Dir(at.Cmd().Path)+":"+os.Getenv("PATH"),
			"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.com", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("commands of %s: got error %v, want none\n%s\n%s", who, err, commands, out)
		}
	}
	body, err := os.ReadFile(filepath.Join(bin, "gh.body"))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "the pull request", string(body), "P1.C1")
	for who, at := range places {
		r := at.Must(0, "status")
		wants(t, who, r.Stdout, "1      passed", "2      passed")
		if n := len(at.Ledger()); n != 4 {
			t.Errorf("calls of %s: got %d, want 4, 2 per phase", who, n)
		}
		checkNothingLeft(at)
	}
}
