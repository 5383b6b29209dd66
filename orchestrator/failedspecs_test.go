package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/state"
	"abl/roles"
)

func TestTakeFailedSpecs(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	file := filepath.Join(p.Tests, FailedSpecs)
	take := func(key string) string {
		t.Helper()
		must(t, os.MkdirAll(p.Call(key), 0o755))
		data, err := takeFailedSpecs(p, key, nil)
		must(t, err)
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
		return string(data)
	}
	write(t, file, "before")
	if got := take("k1"); got != "before" {
		t.Errorf("taken: %q", got)
	}
	if got := take("k1"); got != "before" { // by an abl that was killed right afterwards
		t.Errorf("taken twice: %q", got)
	}
	if got := take("k2"); got != "" {
		t.Errorf("of another call: %q", got)
	}
	write(t, file, strings.Repeat("far too long to be read", maxFailedSpecs/20))
	if got := take("k3"); got != "" {
		t.Errorf("too long: %q", got)
	}
	outside := filepath.Join(p.Root, "outside")
	write(t, outside, "kept")
	must(t, os.Symlink(outside, file))
	if got := take("k4"); got != "" {
		t.Errorf("through a link: %q", got)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "kept" {
		t.Errorf("outside: %q, %v", data, err)
	}
	write(t, filepath.Join(file, "in a folder"), "x")
	if got := take("k5"); got != "" {
		t.Errorf("a folder: %q", got)
	}
}

func TestFailedSpecsReplaceWhateverIsThere(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	outside, file := filepath.Join(p.Root, "outside"), filepath.Join(p.Tests, FailedSpecs)
	write(t, outside, "kept")
	must(t, os.MkdirAll(p.Tests, 0o755))
	must(t, os.Symlink(outside, file))
	v := (&Loop{Project: p}).turn(roles.Verifier, &state.Phase{})
	f := Finding{Verdict: Fail, ByReplay: true, Entries: []failedspecs.Entry{{Spec: "GET / → 200", Input: "GET /", Observed: "500"}}}
	for range 2 {
		must(t, v.settle(f))
		if data, err := os.ReadFile(file); err != nil || string(data) != string(failedspecs.Render(f.Entries)) {
			t.Errorf("%q, %v", data, err)
		}
	}
	must(t, v.settle(Finding{Verdict: Unknown}))
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what lacks a verdict is left: %v", err)
	}
	must(t, v.settle(Finding{Verdict: Pass}))
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("after a pass: %v", err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "kept" {
		t.Errorf("outside: %q, %v", data, err)
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
