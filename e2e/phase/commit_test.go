package phase

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/orchestrator/codecommit"
	"abl/roles"
)

// commitProject returns a project of code-commit whose model always responds with one file.
func commitProject(t *testing.T, build string) *lab.Project {
	t.Helper()
	turn(t)
	answer := func(string) (modelserver.Script, error) {
		return modelserver.Script{Final: "^^^a.txt\nbye\n^^^end\n^^^new/b.txt\nbye\n^^^end\n"}, nil
	}
	model := httptest.NewServer(&modelserver.Server{Source: answer, Log: io.Discard}) // abl itself asks it
	t.Cleanup(model.Close)
	p := lab.From(t, fstest.MapFS{
		".abl/specs/phase1.md":        {Data: []byte(oneSpec)},
		".gitignore":                  {Data: []byte("/agent-config\n/logs\n.env\n")},
		"agent-config/query.txt":      {Data: []byte("Say bye.\n")},
		"agent-config/codeRollup.txt": {Data: []byte("hi\n")},
		"a.txt":                       {Data: []byte("hi\n")},
		"build.sh":                    {Data: []byte("#!/bin/sh\n" + build), Mode: 0o755},
	})
	if err := os.Chmod(filepath.Join(p.Dir, "build.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.Git("", "init", "-q")
	p.Env = []string{"GEMINI_API_KEY=a-key-of-nobody-4711", "GOOGLE_GEMINI_BASE_URL=" + model.URL}
	return p
}

// A build in a container reaches the hosts of network.allow and no other. abl reports each
// refused host, with the line to add. The container is proven from both sides, like that of a
// Builder.
func TestCommitBuildReachesAllowedHosts(t *testing.T) {
	lab.Long(t)
	p := commitProject(t, "")
	r := openRegistry(t, p, documentation)
	p.Write("build.sh", strings.Replace(lab.File(t, "steps/builds-by-the-registry.sh"), "ADDRESS/", r.ip+"/", 1))
	p.Write(".npmrc", "registry=https://registry.example/\nfetch-retries=0\n")
	p.Write(".abl/ca.pem", string(r.cert))
	p.Write(".abl/config.yaml", fmt.Sprintf("version: 1\nlimits: {memory: 1g}\n"+
		"network: {allow: [registry.example], egress: %s, ca_cert: .abl/ca.pem}\n",
		r.network))

	run := p.Must(0, "code-commit", "--build-on", "container", "--json")
	wants(t, "the output", run.Stderr,
		"it reaches registry.example:443 and nothing else", "build | tiny indeed", "build | refused", "build | 0\n",
		"the gateway refused other.example:443, 2 times", "add to .abl/config.yaml: network: {allow: [other.example:443]}")
	wants(t, "the document", run.Stdout, `"notes":["the gateway refused other.example:443, 2 times"`)
	wants(t, "the registry's log", r.asked(), "GET registry.example/tiny\n")
	lacks(t, "the registry's log", r.asked(), "nowhere", "direct")
	logs, err := filepath.Glob(filepath.Join(p.Dir, "logs/2*/1-boundary.json"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("proofs: got %q, %v, want one", logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	var proof roles.Boundary
	if err := json.Unmarshal(data, &proof); err != nil {
		t.Fatal(err)
	}
	if proof.Failed != "" || proof.Made.Err() != nil || proof.Inside.Err() != nil || proof.Unheard {
		t.Errorf("the proof: got %+v, want every check to hold", proof)
	}
	for _, name := range []string{"the host by tcp", "resolver inside", "what must be absent"} {
		if _, there := proof.Inside.Get(name); !there {
			t.Errorf("the checks from inside: got %s, want %q among them", names(proof.Inside), name)
		}
	}
	if !p.Exists("logs") || p.Exists("agent-config/.build") {
		t.Error("the project: got agent-config/.build, or no logs, want only logs")
	}
	mine := codecommit.Project{Root: p.Dir}.EngineID()
	if left := docker(t, "ps", "-aq", "--filter", "label=abl.project="+mine); left != "" {
		t.Errorf("left on the engine: got %s, want nothing", left)
	}
}

// abl clean removes the remains of a killed code-commit: half of the changed files, and the files
// of its build.
func TestCleanAfterKilledCommit(t *testing.T) {
	p := commitProject(t, "sleep 1000\n")
	key := p.Env
	p.Env = append(key[:len(key):len(key)], "ABL_FAILPOINTS=treeedit.step=1*off->kill")
	if r := p.Run("code-commit"); r.Code != -1 || p.Read("a.txt") != "bye\n" || p.Exists("new/b.txt") {
		t.Fatalf("got exit %d, want a kill between the two files: %s", r.Code, r.Stderr)
	}
	p.Env = key
	r := p.Must(0, "clean")
	wants(t, "the output of abl clean", r.Stderr, "an earlier run was killed while it changed files; restored: a.txt")
	wants(t, "the output of abl clean", r.Stdout, "nothing to remove")
	if p.Read("a.txt") != "hi\n" || p.Exists("new") || p.Exists("agent-config/.apply") {
		t.Errorf("a.txt: got %q, want hi, and no other file of the change", p.Read("a.txt"))
	}
	p.Env = append(key[:len(key):len(key)], "ABL_FAILPOINTS=build.started=kill")
	if r := p.Run("code-commit", "--build-on", "container"); r.Code != -1 || !p.Exists("agent-config/.build") {
		t.Fatalf("got exit %d, want a kill while the build has its files: %s", r.Code, r.Stderr)
	}
	p.Env = key
	wants(t, "the output of abl clean", p.Must(0, "clean").Stdout, "removed abl-cc", "-build-1\n")
	if p.Exists("agent-config/.build") || p.Read("a.txt") != "bye\n" {
		t.Errorf("a.txt after abl clean: got %q, want bye, and no agent-config/.build", p.Read("a.txt"))
	}
	wants(t, "the output of abl clean", p.Must(0, "clean").Stdout, "nothing to remove")
}
