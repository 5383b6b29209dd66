package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"abl/internal/testing/lab"
)

// TestDocsGit runs the blocks of docs/git.md, one after the other, as the page says.
func TestDocsGit(t *testing.T) {
	lab.Long(t)
	page, err := os.ReadFile("../../docs/git.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "")
	bin := t.TempDir()
	tests := "#!/bin/sh\nn=1\necho 1..$n\nfor i in $(seq $n); do curl -sf \"$ABL_APP_URL/$i\" | grep -qx ok && echo \"ok $i - P$i.C1\" || echo \"not ok $i - P$i.C1\"; done\n"
	for name, text := range map[string]string{
		"phase1.md":     "# Phase 1: One\n\n## Contracts\n\n- GET /1 → 200 with the text ok\n",
		"phase2.md":     "# Phase 2: Two\n\n## Contracts\n\n- GET /2 → 200 with the text ok\n",
		"scenario.yaml": string(lab.Scenario(t, builds(run("date >>built.txt")), verifies(write("run.sh", tests, "0755"), run("test ! -e /workspace/specs/phase2.md || sed -i s/n=1/n=2/ run.sh")))),
		"gh":            "#!/bin/sh\ncat >\"$0.body\"\n",
		// What the person types.
		"editor": "#!/bin/sh\nfor f; do case $f in\n*phase?.md) cp " + bin + "/${f##*/} $f;;\n*config.yaml) cp " + bin + "/scenario.yaml .abl\n" +
			"sed -i -e 's/^agent: gemini/agent: scripted\\nagents: {scripted: {scenario: .abl\\/scenario.yaml}}/' -e 's/npm start/node server.mjs/; s/path: .health/path: \\//' $f;;\nesac; done\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The repository as it was before abl.
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
			at = elsewhere(p, origin)
			places[who] = at
		}
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
		cmd.Dir = at.Dir
		cmd.Env = append(at.Cmd().Environ(), "EDITOR="+bin+"/editor", "PATH="+bin+":"+filepath.Dir(at.Cmd().Path)+":"+os.Getenv("PATH"),
			"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.com", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", who, err, commands, out)
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
			t.Errorf("%s has %d calls, want the 2 of each phase", who, n)
		}
		noLeftovers(at)
	}
}
