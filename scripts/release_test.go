package scripts_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// NOTICE names each module that is linked into a program, on both systems.
func TestNoticeNamesEveryModule(t *testing.T) {
	notice, err := os.ReadFile("../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/...")
		list.Dir, list.Env, list.Stderr = "..", append(os.Environ(), "GOOS="+system), os.Stderr
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, module := range strings.Fields(string(out)) {
			linked[module] = true
		}
	}
	named := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^  (\S+)  +(\S.*)$`).FindAllStringSubmatch(string(notice), -1) {
		named[row[1]] = true
		if !linked[row[1]] {
			t.Errorf("NOTICE: got %s, want only modules of a program", row[1])
		}
	}
	for module := range linked {
		if !named[module] {
			t.Errorf("NOTICE: got no %s, want it with its licence", module)
		}
	}
}

// Two clones in different folders produce the same bytes, and the archive has everything that a
// user needs.
func TestReleaseIsReproducible(t *testing.T) {
	if os.Getenv("ABL_SOAK") == "" {
		t.Skip("ABL_SOAK is not set: it builds a release twice, which takes minutes")
	}
	first, second := release(t, "a"), release(t, "a folder elsewhere")
	sums, again := read(t, first, "SHA256SUMS"), read(t, second, "SHA256SUMS")
	if sums != again || strings.Count(sums, "\n") != 5 {
		t.Errorf("SHA256SUMS: got\n%s\nand of the second clone\n%s\nwant the same five files", sums, again)
	}
	var bill struct{ Components []struct{ Name string } }
	name := regexp.MustCompile(`abl-[^ ]*\.cdx\.json`).FindString(sums)
	if err := json.Unmarshal([]byte(read(t, first, name)), &bill); err != nil || len(bill.Components) < 50 {
		t.Errorf("components of %s: got %d, error %v, want 50 or more", name, len(bill.Components), err)
	}
	for _, kind := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		t.Run(kind, func(t *testing.T) {
			name := regexp.MustCompile(`abl-[^ ]*-` + kind + `\.tar\.gz`).FindString(sums)
			checkArchive(t, filepath.Join(first, name), kind)
		})
	}
}

// release runs the script in a clone of this repository's commit and returns its dist/.
func release(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), folder)
	for _, args := range [][]string{
		{"git", "clone", "--quiet", "..", dir},
		{filepath.Join(dir, "scripts/release.sh"), "--without-images"},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(dir, "dist")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkArchive unpacks the archive of one system, checks its content, and runs its programs if
// this machine can.
func checkArchive(t *testing.T, path, kind string) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", path, "--strip-components=1", "-C",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	file := func(name string) string {
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(dir, "bin", name)).CombinedOutput()
		if err != nil {
			t.Errorf("go version -m %s: got error %v, want none\n%s", name, err, out)
		}
		return string(out)
	}
	system, arch, _ := strings.Cut(kind, "-")
	programs := map[string][2]string{"abl": {system, arch}, "agent-learner": {system, arch}, "code-commit": {system, arch}}
	for _, helper := range []string{"abl-cmd", "abl-gateway"} {
		for _, arch := range []string{"amd64", "arm64"} {
			programs[helper+"-linux-"+arch] = [2]string{"linux", arch}
		}
	}
	for name, of := range programs {
		text := file(name)
		for _, want := range []string{"GOOS=" + of[0], "GOARCH=" + of[1], "CGO_ENABLED=0", "-trimpath=true"} {
			if !strings.Contains(text, want) {
				t.Errorf("bin/%s: got no %s, want it in\n%s", name, want, text)
			}
		}
	}
	for name, want := range map[string]string{
		"LICENSE": "Apache License", "NOTICE": "github.com/docker/docker", "THIRD_PARTY_NOTICES": "github.com/docker/docker ",
		"sbom.cdx.json": `"CycloneDX"`, "docs/install.md": "# Install", "CHANGELOG.md": "# Changes", "share/man/man1/abl.1": ".TH ABL 1 \"20",
		"share/bash-completion/completions/abl": "complete ", "share/zsh/site-functions/_abl": "#compdef", "share/fish/vendor_completions.d/abl.fish": "complete ",
	} {
		if !strings.Contains(read(t, dir, name), want) {
			t.Errorf("%s: got no %q, want one", name, want)
		}
	}
	if kind != runtime.GOOS+"-"+runtime.GOARCH {
		return
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/abl"), "version", "--json").Output()
	if want := regexp.MustCompile(`^\{"version":"[^"]+","commit":"[0-9a-f]{40}","built":"20[^"]+Z",`); err != nil || !want.Match(out) {
		t.Errorf("abl version --json: got %q, error %v, want version, commit and time", out, err)
	}
}
