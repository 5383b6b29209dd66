package orchestrator

import (
	"os"
	"path/filepath"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/state"
	"abl/roles"
)

func TestFailedSpecsReplaceAnything(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	outside, file := filepath.Join(p.Root, "outside"), filepath.Join(p.Tests, failedspecs.FileName)
	write(t, outside, "kept")
	must(t, os.MkdirAll(p.Tests, 0o755))
	must(t, os.Symlink(outside, file))
	v := (&Loop{Project: p}).turn(roles.Verifier, &state.Phase{})
	f := Finding{Verdict: Fail, ByReplay: true, Entries: []failedspecs.Entry{{Spec: "GET / → 200", Input: "GET /", Observed: "500"}}}
	for range 2 {
		must(t, v.writeFailedSpecs(f))
		if data, err := os.ReadFile(file); err != nil || string(data) != string(failedspecs.Render(f.Entries)) {
			t.Errorf("failed_specs.md: got %q, %v, want %q", data, err, failedspecs.Render(f.Entries))
		}
	}
	must(t, v.writeFailedSpecs(Finding{Verdict: Unknown}))
	if _, err := os.Stat(file); err != nil {
		t.Errorf("failed_specs.md without a verdict: got error %v, want the file to exist", err)
	}
	must(t, v.writeFailedSpecs(Finding{Verdict: Pass}))
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("failed_specs.md after a pass: got error %v, want %v", err, os.ErrNotExist)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "kept" {
		t.Errorf("outside: got %q, %v, want kept", data, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
