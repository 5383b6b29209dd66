package phase

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/roles"
)

// special returns the paths below dir that no role needs.
func special(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			all = append(all, path+" "+info.Mode().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func paths(all []state.Thing) string {
	var words []string
	for _, t := range all {
		words = append(words, t.Path)
	}
	return strings.Join(words, " ")
}

// Dangerous files that a role leaves on this machine are disarmed, reported and recorded with the
// call, even if the call was stopped. Files that git ignores are in the record. e2e/hostile has
// the same checks for both roles after a normal end (TestHostileTrees, TestSetuidBitsAreCleared).
func TestStoppedCallIsSwept(t *testing.T) {
	p := newProject(t, nodeApp,
		builds(runsScript(t, "plant-hostile-files.sh"), write("server.mjs", server), must(0, "sleep 60")), verifies())
	r := watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.HasPrefix(e.Text, "run sleep") {
			_ = abl.Signal(os.Interrupt)
		}
	}, "phase", "1")
	if r.Code != 130 {
		t.Fatalf("got exit %d, want 130: %s", r.Code, r.Stderr)
	}
	if left := special(t, filepath.Join(p.Dir, "src")); len(left) > 0 {
		t.Errorf("got remains %v, want none", left)
	}
	var found state.Found
	if err := json.Unmarshal([]byte(p.Read(".abl/logs/calls/p1-build-1.1/"+roles.FoundFile)), &found); err != nil {
		t.Fatal(err)
	}
	if got, want := paths(found.Cleared), "out/deep/suid suid out/pipe pipe sock"; got != want {
		t.Errorf("cleared: got %s, want %s", got, want)
	}
	if got, want := paths(found.Control[:3]), "nested/.git zz/.claude/run zz/.husky/pre-commit"; got != want {
		t.Errorf("the first control files: got %s, want %s", got, want)
	}
	wants(t, "the control files", paths(found.Control), ".claude/settings.json", ".gemini/settings.json",
		".vscode/tasks.json", "GEMINI.md")
	wants(t, "the ignored files", strings.Join(found.Ignored.Listed, " "), "out/made", "x.log",
		"out/deep/suid", "nested/.git/config")
	notes := ""
	for _, e := range of(events(t, r), state.Note) {
		if e.Call == "p1-build-1.1" {
			notes += e.Text + "\n"
		}
	}
	wants(t, "the notes of the call", notes, "removed",
		`"nested/.git" (a nested repository), "zz/.claude/run" (steers an agent's CLI), "zz/.husky/pre-commit" (steers git)`,
		" more in swept.json", `"suid" (a setuid or setgid bit, cleared)`, `".gemini/settings.json" (steers an agent's CLI)`)
	checkNothingLeft(p)
}
