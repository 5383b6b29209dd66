package phase

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles"
	"abl/roles/agent"
)

// plants leaves one of everything that a role can make and nobody needs.
func plants() []agent.Step {
	return []agent.Step{
		write(".gitignore", "*.log\nout/\n"), write("out/made", "built"), write("x.log", "logged"),
		must(0, "cp /bin/true suid && chmod 6755 suid && mkdir -p out/deep && cp suid out/deep/suid && chmod 4755 out/deep/suid"),
		must(0, "mkfifo pipe out/pipe"),
		must(0, `python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"`),
		run("mknod dev c 1 3; setcap cap_net_raw+ep suid; true"),
		must(0, "mkdir -p nested && cd nested && git init -q && git config core.fsmonitor 'touch pwned'"),
		must(0, "mkdir -p .gemini .claude .vscode && echo '{}' > .gemini/settings.json && echo '{}' > .claude/settings.json && echo '{}' > .vscode/tasks.json && echo x > GEMINI.md"),
		must(0, "for i in $(seq 40); do mkdir a$i && echo x > a$i/CLAUDE.md; done; mkdir -p zz/.husky zz/.claude && echo x > zz/.husky/pre-commit && echo x > zz/.claude/run && chmod 755 zz/.claude/run"),
	}
}

// special are the paths below dir that no role needs.
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

// What both roles leave on this machine after a call is disarmed, said, and kept
// with the call; what git does not see is in the record.
func TestHostileTreesAreSwept(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp,
		builds(append(plants(), write("server.mjs", server))...), verifies(plants()...))
	r := p.Must(0, "phase", "1", "--json")
	for key, dir := range map[string]string{"p1-build-1.1": "src", "p1-verify-1.1": ".abl/tests"} {
		if left := special(t, filepath.Join(p.Dir, dir)); len(left) > 0 {
			t.Errorf("%s: %v", dir, left)
		}
		var found state.Found
		if err := json.Unmarshal([]byte(p.Read(".abl/logs/calls/"+key+"/"+roles.FoundFile)), &found); err != nil {
			t.Fatal(err)
		}
		cleared := paths(found.Cleared)
		if cleared != "out/deep/suid suid out/pipe pipe sock" {
			t.Errorf("%s: cleared %s", key, cleared)
		}
		wants(t, "control files of "+key, paths(found.Control), ".claude/settings.json", ".gemini/settings.json", ".vscode/tasks.json", "GEMINI.md", "nested/.git")
		wants(t, "what git does not see of "+key, strings.Join(found.Ignored.Listed, " "), "out/made", "x.log", "out/deep/suid", "nested/.git/config")
		said := ""
		for _, e := range of(events(t, r), state.Note) {
			if e.Call == key {
				said += e.Text + "\n"
			}
		}
		if got := paths(found.Control[:3]); got != "nested/.git zz/.claude/run zz/.husky/pre-commit" {
			t.Errorf("%s names first: %s", key, got)
		}
		wants(t, "what is said of "+key, said, "taken away", `"nested/.git" (a nested repository), "zz/.claude/run" (steers an agent's CLI), "zz/.husky/pre-commit" (steers git)`, " more in swept.json", `"suid" (a setuid or setgid bit, cleared)`, `".gemini/settings.json" (steers an agent's CLI)`)
	}
	noLeftovers(p)
}

func paths(all []state.Thing) string {
	var words []string
	for _, t := range all {
		words = append(words, t.Path)
	}
	return strings.Join(words, " ")
}

// A call that is stopped leaves nothing armed either.
func TestStoppedCallIsSwept(t *testing.T) {
	p := newProject(t, nodeApp, builds(append(plants(), write("server.mjs", server), must(0, "sleep 60"))...), verifies())
	r := watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.HasPrefix(e.Text, "run sleep") {
			_ = abl.Signal(os.Interrupt)
		}
	}, "phase", "1")
	if r.Code != 130 {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	if left := special(t, filepath.Join(p.Dir, "src")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	wants(t, "what is said", r.Stdout, "taken away")
	noLeftovers(p)
}

// Without a sweep a role's user leaves it all on this machine.
func TestHostileTreeUnswept(t *testing.T) {
	p := newProject(t, "", builds(plants()...))
	image := toolsImage(p)
	dir := filepath.Join(p.Dir, "weak")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	docker(t, "run", "--rm", "--label", "abl.project=test-phase", "-u", "10001:10001", "-v", dir+":/w", "-w", "/w", image, "sh", "-c",
		"cp /bin/true suid && chmod 6755 suid && mkfifo pipe")
	if left := special(t, dir); len(left) != 2 {
		t.Errorf("without a sweep there would be %v", left)
	}
}
