package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// Group C: the histories. A role can read its own history but not change it.
func TestHistoryHolds(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	s.playAttacks(t, historyAttacks())
	s.runUserGit(t)
}

// historyAttacks are attacks on .git itself.
func historyAttacks() []attack {
	return []attack{
		{id: "C01", by: "both", what: "hooks"},
		{id: "C01-config", by: "both", what: "settings that make git run programs"},
		{id: "C02", by: "both", what: "another .git instead of the role's"},
		{id: "C02-file", by: "both", what: "a .git file that points elsewhere"},
		{id: "C04", by: "both", what: "objects of another history"},
		{id: "C05", by: "both", what: "links and FIFOs in place of git's files"},
		{id: "C06", by: "both", what: "git's locks, so that abl waits for ever"},
		{id: "C06-commit", by: "both", what: "the role's own commits, branches and tags"},
		{
			id:   "C15",
			by:   "both",
			what: "the user's git settings",
			after: func(t *testing.T, s *scene, _ lab.Result) {
				if _, err := os.Lstat(filepath.Join(s.home, ".gitconfig")); err == nil {
					t.Error(".gitconfig in the user's home: got a file, want none")
				}
			},
		},
	}
}

// runUserGit runs the git commands with which the user reads a history. None of them may run a
// program of a role.
func (s *scene) runUserGit(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"src", ".abl/tests"} {
		for _, args := range [][]string{
			{"status", "--porcelain"},
			{"diff"},
			{"log", "-p"},
			{"stash", "list"},
			{"branch", "-a"},
			{"diff", "--stat", "HEAD"},
		} {
			s.git(dir, args...)
		}
		if _, err := os.Lstat(filepath.Join(s.Dir, dir, evidence)); err == nil {
			t.Errorf("programs that %s names for git: got a run of one, want none", dir)
		}
	}
}

// evidence is the file that a program creates if it runs. The attack scripts name it, too.
const evidence = "it-ran"

// Group C: trees that git cannot handle. abl commits the call anyway and reports the files that
// it leaves out.
func TestHostileTrees(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	r := s.playAttacks(t, treeAttacks())
	s.runUserGit(t)
	lacks(t, "the map", s.Read(".abl/project_map.txt"), "\x1b", "\x07")
	if strings.Contains(r.Stdout, `"class":"failed"`) {
		t.Errorf("got a failed call, want none:\n%s", r.Stdout)
	}
	s.recovers()
}

// committed returns a path's entry in the last commit of both histories.
func committed(s *scene, path string) string {
	return s.git("src", "ls-tree", "-r", "HEAD", "--", path) + s.git(".abl/tests", "ls-tree", "-r", "HEAD", "--", path)
}

func wantCommitted(paths ...string) func(*testing.T, *scene, lab.Result) {
	return func(t *testing.T, s *scene, _ lab.Result) {
		for _, path := range paths {
			if strings.Count(committed(s, path), "blob")+strings.Count(committed(s, path), "tree") < 2 {
				t.Errorf("%q in the histories: got %q, want it in both", path, committed(s, path))
			}
		}
	}
}

// wantLeftOut checks that abl reports the path and does not commit it.
func wantLeftOut(paths ...string) func(*testing.T, *scene, lab.Result) {
	return func(t *testing.T, s *scene, r lab.Result) {
		for _, path := range paths {
			if got := committed(s, path); got != "" {
				t.Errorf("%q in the histories: got %s, want nothing", path, got)
			}
			if strings.Count(r.Stdout, "not committed: "+path) < 2 {
				t.Errorf("events about %q: got %d, want 2 or more", path, strings.Count(r.Stdout, "not committed: "+path))
			}
		}
	}
}

// wantRemoved checks that abl removes a harmful file and reports it.
func wantRemoved(paths ...string) func(*testing.T, *scene, lab.Result) {
	return func(t *testing.T, s *scene, r lab.Result) {
		said := texts(of(events(t, r), state.Note))
		for _, path := range paths {
			for _, dir := range []string{"src", ".abl/tests"} {
				if info, err := os.Lstat(filepath.Join(s.Dir, dir, path)); err == nil {
					t.Errorf("%s/%s: got mode %v, want no file", dir, path, info.Mode())
				}
			}
			if strings.Count(said, path) < 2 {
				t.Errorf("notes about %q: got %d, want 2 or more:\n%s", path, strings.Count(said, path), said)
			}
		}
	}
}

func all(checks ...func(*testing.T, *scene, lab.Result)) func(*testing.T, *scene, lab.Result) {
	return func(t *testing.T, s *scene, r lab.Result) {
		for _, check := range checks {
			check(t, s, r)
		}
	}
}

func treeAttacks() []attack {
	return []attack{
		{
			id:    "C07",
			by:    "both",
			what:  "FIFOs in place of content, ignore rules and reports",
			after: wantRemoved("fifos/f", "fifos/.gitignore", ".git-fifo", ".gitattributes"),
		},
		{id: "C08", by: "both", what: "files that are too large to read", after: wantLeftOut("big", "bigger")},
		{
			id:    "C08-links",
			by:    "both",
			what:  "links to themselves, to the root and to endless files",
			after: wantCommitted("loop", "loop2", "root", "proc", "zero", "env", "environ", "up"),
		},
		{
			id:   "C11",
			by:   "both",
			what: "an absolute link, stored as it is",
			after: func(t *testing.T, s *scene, _ lab.Result) {
				if got := s.git("src", "cat-file", "blob", "HEAD:shadow"); got != "/etc/shadow" {
					t.Errorf("the link in the commit: got %q, want /etc/shadow", got)
				}
			},
		},
		{
			id:    "C10-dir",
			by:    "both",
			what:  "a directory replaced with an outside link, and a file with a directory",
			after: wantCommitted("was"),
		},
		{
			id:   "C09",
			by:   "both",
			what: "a program in an ignored place",
			after: func(t *testing.T, s *scene, _ lab.Result) {
				lacks(t, "git status", s.git("src", "status", "--porcelain"), "backdoor") // the reason for the check
				for _, key := range []string{"p1-build-1.1", "p1-verify-1.1"} {
					wants(t, "the record of "+key, s.Read(".abl/logs/calls/"+key+"/swept.json"), "hid/backdoor.py")
				}
			},
		},
		{
			id:   "F11",
			by:   "both",
			what: "files that steer other agents, editors and services later",
			after: func(t *testing.T, s *scene, r lab.Result) {
				said := texts(of(events(t, r), state.Note))
				for _, name := range []string{
					".mcp.json", ".claude/settings.json", ".cursor/mcp.json", ".vscode/tasks.json",
					".codex/config.toml", "AGENTS.md", "GEMINI.md", "CLAUDE.md", ".github/workflows/x.yml",
				} {
					if strings.Count(said, name) < 2 {
						t.Errorf("notes about %s: got %d, want 2 or more:\n%s", name, strings.Count(said, name), said)
					}
				}
			},
		},
		{
			id:    "C12",
			by:    "both",
			what:  "nested repositories that run programs",
			after: all(wantLeftOut("nested/.git", "deep/er/.git"), wantCommitted("nested/kept", "deep/er/kept")),
		},
		{
			id:    "C12-bare",
			by:    "both",
			what:  "a bare history, and a gitfile",
			after: all(wantLeftOut("gitfile/.git"), wantCommitted("gitfile/kept")),
		},
		{id: "C12-module", by: "both", what: "a submodule whose name is an option", after: wantLeftOut(".gitmodules")},
		{id: "C13", by: "both", what: "attributes that name programs", after: wantCommitted("attr/evil")},
		{
			id:    "A23",
			by:    "both",
			what:  "names that other systems treat as .git or as devices",
			after: wantCommitted("odd/aux.c", "odd/COM1", "odd/...", "odd/-rf"),
		},
		{
			id:   "A24",
			by:   "both",
			what: "names with text for a model, a shell and a terminal",
			after: func(t *testing.T, s *scene, _ lab.Result) {
				prompt := s.Read(".abl/logs/calls/p1-verify-1.1/in/prompt.md")
				if at := oddAt(prompt); at >= 0 {
					t.Errorf("the prompt: got %q, want only graphic characters", prompt[max(0, at-40):at+20])
				}
			},
		},
		{id: "C14", by: "both", what: "names that are equal on other systems", after: wantCommitted("same/File", "same/file")},
		{
			id:   "C18",
			by:   "both",
			what: "many small files",
			after: func(t *testing.T, s *scene, _ lab.Result) {
				loose, _ := filepath.Glob(filepath.Join(s.Dir, "src/.git/objects/??/*"))
				if len(loose) > 2000 {
					t.Errorf("loose objects: got %d, want 2000 or fewer", len(loose))
				}
			},
		},
		{id: "C18-deep", by: "both", what: "deeply nested folders", after: wantCommitted("d")},
		{id: "C18-times", by: "both", what: "times out of range", after: wantCommitted("old", "new", "zero-time")},
		{
			id:    "C18-sparse",
			by:    "both",
			what:  "a sparse file",
			after: wantCommitted("one", "two", "noise", "tail"),
		},
	}
}

// Group C: content that changes without a change of size and time is committed.
func TestSameSizeSameTime(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	stamp := run("touch -d '2020-01-01' quiet")
	first, again := builds(run("printf aaaa > quiet"), stamp), builds(run("printf bbbb > quiet"), stamp)
	first.Iteration = 1
	fails := verifies(write("failed_specs.md", "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n"))
	fails.Iteration = 1
	s.script(first, fails, again, verifies())
	s.play(0)
	t.Run("C10", func(t *testing.T) {
		if got := s.git("src", "show", "HEAD:quiet"); got != "bbbb" {
			t.Errorf("quiet in the commit: got %q, want bbbb", got)
		}
	})
}
