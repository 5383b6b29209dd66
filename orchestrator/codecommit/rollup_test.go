package codecommit_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/orchestrator/codecommit"

	"github.com/google/go-cmp/cmp"
)

// The script that init writes takes the project's code, and nothing that looks like
// a secret, in whatever folder and case.
func TestRollup(t *testing.T) {
	files := map[string]string{
		"b.go": "package b", "a/c.go": "package a\n", "empty": "", "-odd name": "x", "a/environment.md": "x", "keys.md": "PRIVATE KEY",
		"bin": "\x00\x01", "latin1.txt": "caf\xe9\n", "utf8.txt": "café\n", "rsa.txt": "x\n-----BEGIN RSA PRIVATE KEY-----\n", "a/x.log": "no", ".gitignore": "*.log\n/agent-config\n",
	}
	withheld := []string{
		".env", ".env.local", "x.pem", "x.key", "x.p12", "x.pfx", "x.keystore", "x.jks", "id_rsa", "id_ed25519.pub", "id_ecdsa", "gemini-key.txt",
		".npmrc", ".netrc", ".pypirc", "credentials.json", "secrets.yaml", "go.sum", "Cargo.lock", "package-lock.json", "npm-shrinkwrap.json",
		"pnpm-lock.yaml", "packages.lock.json", "gradle.lockfile",
	}
	for _, name := range withheld {
		files[name], files["deep/er/"+name], files["upper/"+strings.ToUpper(name)] = "no", "no", "no"
	}
	root := plant(t, files)
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	p := codecommit.ProfileOf(codecommit.V2)
	project := codecommit.Project{Root: root, Profile: p}
	for _, f := range p.FirstFiles() {
		at := filepath.Join(root, f[0])
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(f[1]), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	var warned strings.Builder
	roll := func() int {
		cmd := exec.Command("./codeRollup.sh")
		cmd.Dir, cmd.Stderr = root, &warned
		cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	const noRepository = 128 // git's own
	if code := roll(); code != noRepository {
		t.Errorf("exit code without a repository: got %d, want %d", code, noRepository)
	}
	if out, err := exec.Command("git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code := roll(); code != 0 {
		t.Errorf("exit code in a repository: got %d, want 0", code)
	}
	in, err := project.ReadInputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.SplitSeq(in.Codebase, "\n") {
		if name, ok := strings.CutPrefix(line, "--- FILE "); ok {
			got = append(got, strings.TrimSuffix(name, " ---"))
		}
	}
	want := []string{"-odd name", ".gitignore", "a/c.go", "a/environment.md", "b.go", "build.sh", "codeRollup.sh", "empty", "keys.md", "utf8.txt"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const left = "latin1.txt: it is not UTF-8 text ---\n"
	if !strings.Contains(in.Codebase, "--- NOT SHOWN "+left) || !strings.Contains(warned.String(), "not UTF-8 text: latin1.txt\n") {
		t.Errorf("a file that is not UTF-8: got %q in the rollup and %q on stderr, want it named in both", in.Codebase, &warned)
	}
	if err := os.WriteFile(filepath.Join(root, p.Codebase), []byte(" \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := project.ReadInputs(nil); err == nil || !strings.Contains(err.Error(), "codeRollup.txt, the code rollup, is empty") {
		t.Errorf("error for an empty codebase: got %v, want one that names codeRollup.txt", err)
	}
}
