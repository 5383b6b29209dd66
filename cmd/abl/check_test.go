package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/testing/modelserver"
	"abl/roles/model"
)

// abl code-commit is the whole program: it repairs a failed build with a model of each provider.
func TestCodeCommit(t *testing.T) {
	for _, of := range model.Providers() {
		t.Run(of.Model, func(t *testing.T) {
			n := 0
			script := func(string) (modelserver.Script, error) {
				n++
				return modelserver.Script{Final: "^^^a.txt\n" + strings.Repeat("bye\n", n) + "^^^end\n"}, nil
			}
			s := httptest.NewServer(&modelserver.Server{Source: script, Aside: script, Log: io.Discard})
			defer s.Close()
			t.Setenv(of.BaseVar, s.URL)
			t.Setenv(of.KeyVar, "key-of-the-test-1234")
			root := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			plant(t, root, map[string]string{
				".gitignore": "/agent-config\n", "agent-config/query.txt": "Say bye twice.\n", "agent-config/codeRollup.txt": "hi\n", "a.txt": "hi\n",
				"build.sh": "#!/bin/sh\n[ $(grep -c bye a.txt) = 2 ]\n",
			})
			var out, stderr bytes.Buffer
			code := cli.Main(t.Context(), app(), []string{"-C", root, "commit", "--model", of.Model, "--json"}, strings.NewReader(""), &out, &stderr)
			var res struct {
				Outcome  string
				Attempts []struct{ Outcome string }
			}
			if err := json.Unmarshal(out.Bytes(), &res); err != nil || code != 0 || res.Outcome != "passed" || len(res.Attempts) != 2 || res.Attempts[0].Outcome != "red" {
				t.Errorf("got exit %d, %s, want exit 0, passed after a red attempt and a second one\n%s", code, &out, &stderr)
			}
		})
	}
}

// plant creates files below root; those that end in .sh are executable.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at, mode := filepath.Join(root, name), os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// abl check sends the specs and the source, in this order, to a model and stores the answer. The key
// of .env is only in a header.
func TestCheck(t *testing.T) {
	const key, report = "AIza-key-of-the-check-8X", "User Specification Self Consistency\n\nFine.\n"
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Header.Get("X-Goog-Api-Key") + " " + string(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		script := func(string) (modelserver.Script, error) { return modelserver.Script{Final: report}, nil }
		(&modelserver.Server{Source: script, Log: io.Discard}).ServeHTTP(w, r)
	}))
	defer s.Close()
	t.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL)
	t.Setenv("GEMINI_API_KEY", "")
	root := t.TempDir()
	call := func(args ...string) (int, string, string) {
		var out, stderr bytes.Buffer
		code := cli.Main(t.Context(), app(), append([]string{"-C", root}, args...), strings.NewReader(""), &out, &stderr)
		return code, out.String(), stderr.String()
	}
	if code, _, stderr := call("init", "--stack", "none"); code != 0 {
		t.Fatal(stderr)
	}
	plant(t, root, map[string]string{
		".env": "GEMINI_API_KEY=" + key + "\n", "src/main.py": "print('hello')\n", "src/.env": "X=1\n", ".abl/specs/phase1.md": "# Phase 1: Greet\n\n## Contracts\n- GET / → 200\n",
	})
	code, out, stderr := call("check")
	if code != 0 || out != report {
		t.Fatalf("abl check: got exit code %d, output %q and messages %s, want 0 and %q", code, out, stderr, report)
	}
	spec, source := strings.Index(asked, "FILE specs/phase1.md"), strings.Index(asked, "FILE main.py")
	if !strings.HasPrefix(asked, key+" ") || strings.Count(asked, key) != 1 || spec < 0 || source < spec || strings.Contains(asked, "X=1") {
		t.Errorf("request: got %s, want the key once, the spec, then the source without .env", asked)
	}
	data, err := os.ReadFile(filepath.Join(root, ".abl/reports/consistency-report.txt"))
	if err != nil || string(data) != report {
		t.Errorf("report: got %q, error %v, want %q", data, err, report)
	}
	ledger, err := os.ReadFile(filepath.Join(root, ".abl/logs/tokens.csv"))
	if err != nil || !strings.Contains(string(ledger), ",consistency-report,") || strings.Contains(stderr, key) {
		t.Errorf("got ledger %s, error %v and messages %s, want a row of the report and no key", ledger, err, stderr)
	}
}
