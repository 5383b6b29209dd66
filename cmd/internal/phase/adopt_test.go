package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
)

// heard collects the notes of a run.
type heard struct{ notes []string }

func (h *heard) Emit(e state.Event) { h.notes = append(h.notes, e.Text) }

// resumed opens the source as the next abl phase 1 does, and returns its notes.
func resumed(t *testing.T, s *project.Project) (*git.Repo, string, error) {
	t.Helper()
	return opened(t, s, git.Options{Begun: true})
}

// opened opens the source for phase 1, and returns the notes of the run.
func opened(t *testing.T, s *project.Project, o git.Options) (*git.Repo, string, error) {
	t.Helper()
	f, err := s.State()
	must(t, err)
	notes := &heard{}
	r := &Run{Project: s, phase: 1, file: f, out: notes, goesOn: true}
	repo, err := r.openSource(t.Context(), o, "")
	must(t, state.Save(s.Paths.State(), f))
	return repo, strings.Join(notes.notes, "\n"), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@localhost"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// unopened returns a project on a user's repository, whose source is not cloned yet.
func unopened(t *testing.T) *project.Project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to make a repository with")
	}
	root, err := state.Real(t.TempDir())
	must(t, err)
	runGit(t, root, "init", "-q", "-b", "main")
	must(t, os.WriteFile(filepath.Join(root, "a"), []byte("1"), 0o644))
	runGit(t, root, "add", "a")
	runGit(t, root, "commit", "-qm", "one")
	s := &project.Project{
		In:     &cli.Input{Safe: redact.NewSanitizer(nil)},
		Folder: project.Folder{Conf: &config.Loaded{}, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")},
	}
	s.Conf.Source.Repo = "."
	for _, dir := range []string{s.Paths.Specs(), s.Paths.Src, s.Paths.Tests} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	return s
}

// adopted returns a project whose source is a clone with one commit of the Builder, which is published.
func adopted(t *testing.T) *project.Project {
	t.Helper()
	s := unopened(t)
	f := state.New(s.Paths.Root)
	f.Phases["1"] = &state.Phase{Status: state.Refuted, Round: 1, Iteration: 1, Step: 1}
	must(t, state.Save(s.Paths.State(), f))
	repo, _, err := opened(t, s, git.Options{})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.Paths.Src, "built"), []byte("1"), 0o644))
	_, err = repo.Snapshot(t.Context(), git.Message{Subject: "1"})
	must(t, err)
	_, err = s.Publish(t.Context(), 0)
	must(t, err)
	return s
}

// userCommits commits files on the branch of the user.
func userCommits(t *testing.T, s *project.Project, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(s.Paths.Root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
		runGit(t, s.Paths.Root, "add", "-f", name)
	}
	runGit(t, s.Paths.Root, "commit", "-qm", "the user's")
	return runGit(t, s.Paths.Root, "rev-parse", "main")
}

// rests sets phase 1 to a call of the Builder that no abl runs.
func rests(t *testing.T, s *project.Project, attempt int) string {
	t.Helper()
	f, err := s.State()
	must(t, err)
	key := roles.Key(1, roles.Builder, 2, attempt)
	f.Branch = "main"
	f.Phases["1"] = &state.Phase{Status: state.Building, Round: 1, Iteration: 2, Step: 2, Attempt: attempt, Call: key}
	must(t, state.Save(s.Paths.State(), f))
	return key
}

// The user's commits during an interrupted call are merged before the next attempt, over the call's
// changes in the source. Commits during a running call are reported.
func TestCommitsDuringACall(t *testing.T) {
	for name, c := range map[string]struct {
		begun  bool
		left   map[string]string // what an interrupted call left in the source
		edited bool              // by the user, and not by a call
		note   string
		merged bool
	}{
		"interrupted":                     {note: "main has new commits; merged into abl/phase1", merged: true},
		"interrupted, with files":         {left: map[string]string{"begun.js": "1", "built": "half"}, note: "merged into", merged: true},
		"interrupted, with the same file": {left: map[string]string{"theirs": "mine"}, note: "main has new commits, which abl merges later"},
		"edited by the user":              {left: map[string]string{"begun.js": "1"}, edited: true},
		"begun":                           {begun: true, note: "main has new commits; a call has begun without them"},
	} {
		t.Run(name, func(t *testing.T) {
			s := adopted(t)
			key := rests(t, s, 2)
			if c.begun {
				must(t, os.MkdirAll(s.Paths.Call(key), 0o755))
				must(t, roles.Record{Dir: s.Paths.Call(key)}.Write("intent.json", roles.Intent{}))
			}
			for path, text := range c.left {
				must(t, os.WriteFile(filepath.Join(s.Paths.Src, path), []byte(text), 0o644))
			}
			repo, err := git.Open(s.Paths.Src, s.SourceOptions())
			must(t, err)
			if len(c.left) > 0 && !c.edited {
				must(t, os.MkdirAll(s.Paths.Logs(), 0o755))
				must(t, orchestrator.KeepLeft(t.Context(), s.Paths, repo))
			}
			tip := userCommits(t, s, map[string]string{"theirs": "t"})
			repo, notes, err := resumed(t, s)
			must(t, err)
			if !strings.Contains(notes, c.note) || (c.note == "") != (notes == "") {
				t.Errorf("notes: got %q, want %q", notes, c.note)
			}
			at, _, err := repo.Head()
			must(t, err)
			if has, err := repo.Contains(at.Hash, tip); err != nil && c.merged || has != c.merged {
				t.Errorf("the user's commit is in the branch: got %t, %v, want %t", has, err, c.merged)
			}
			for path, text := range c.left {
				if got, _ := os.ReadFile(filepath.Join(s.Paths.Src, path)); string(got) != text {
					t.Errorf("%s holds %q, want %q", path, got, text)
				}
			}
			if is, err := orchestrator.IsLeft(t.Context(), s.Paths, repo); len(c.left) > 0 && (err != nil || is == c.edited) {
				t.Errorf("the files count as the call's: got %t, %v, want %t", is, err, !c.edited)
			}
			f, err := s.State()
			must(t, err)
			if got := f.Phases["1"].SrcCommit; !c.begun && got != at.Hash {
				t.Errorf("state.json: got commit %q, want %q", got, at.Hash)
			}
		})
	}
}

// A branch abl leaves no room for abl/phase1. A run warns of that, unless the settings name another prefix.
func TestNoRoomForTheBranch(t *testing.T) {
	for name, c := range map[string]struct {
		prefix string
		want   bool
	}{"the default prefix": {"", true}, "another prefix": {"work/", false}} {
		t.Run(name, func(t *testing.T) {
			s := unopened(t)
			s.Conf.Publish.Prefix = c.prefix
			runGit(t, s.Paths.Root, "branch", "abl")
			f := state.New(s.Paths.Root)
			f.Phases["1"] = &state.Phase{Status: state.Ready}
			must(t, state.Save(s.Paths.State(), f))
			_, notes, err := opened(t, s, git.Options{})
			must(t, err)
			if got := strings.Contains(notes, "your repository: "+git.NoRoom); got != c.want {
				t.Errorf("notes: got %q, want a warning: %t", notes, c.want)
			}
		})
	}
}

// The hint for a conflict is a command line that leaves the user's specs as they are.
func TestConflictByHand(t *testing.T) {
	s := adopted(t)
	runGit(t, s.Paths.Root, "config", "user.name", "Pat O'Neill") // for this repository only
	runGit(t, s.Paths.Root, "config", "user.email", "p@example.com")
	rests(t, s, 1)
	tip := userCommits(t, s, map[string]string{"built": "theirs", ".abl/specs/phase2.md": "# Phase 2: New\n", ".abl/specs/phase1.md": "# Phase 1: Old\n"})
	_, _, err := resumed(t, s)
	hint := exit.Hint(err)
	if exit.Code(err) != exit.Person || !strings.Contains(hint, "git -C .abl/work/src ") {
		t.Fatalf("got %v (%s), want exit %d with git's commands", err, hint, exit.Person)
	}
	hint = strings.Replace(hint, "resolve the conflicts;", "echo both > .abl/work/src/built; find .abl/work/src -type f -exec touch -d @1 {} +;", 1)
	hint = strings.Replace(hint, "commit -a; then run the same command again", "commit -qam merged", 1)
	cmd := exec.Command("sh", "-c", hint)
	cmd.Dir = s.Paths.Root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("commands of the hint %s: got error %v, want none; output:\n%s", hint, err, out)
	}
	if got := runGit(t, s.Paths.Src, "log", "-1", "--format=%an <%ae>"); got != "Pat O'Neill <p@example.com>" {
		t.Errorf("the author of the merge: got %q, want the user", got)
	}
	repo, _, err := resumed(t, s)
	must(t, err)
	if at, _, err := repo.Head(); err != nil || !contains(t, repo, at.Hash, tip) {
		t.Errorf("branch: got the commit %s, error %v, want one that contains %s", at.Hash, err, tip)
	}
	_, err = s.Publish(t.Context(), 0)
	must(t, err)
	if got := runGit(t, s.Paths.Root, "diff", "--name-only", "main", project.Branch(1)); got != "built" {
		t.Errorf("the published branch differs from main in %q, want built", got)
	}
}

func contains(t *testing.T, repo *git.Repo, commit, ancestor string) bool {
	t.Helper()
	has, err := repo.Contains(commit, ancestor)
	must(t, err)
	return has
}

// The commits of the source have the author of the settings, and name the user.
func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		author  string
		signoff bool
		user    bool
		want    string
		refused bool
	}{
		"by default":           {user: true, want: "abl <abl@localhost>|Co-authored-by: U <u@example.com>"},
		"nobody is known":      {want: "abl <abl@localhost>|"},
		"an author":            {author: "Bot <b@example.com>", user: true, want: "Bot <b@example.com>|"},
		"a sign-off":           {signoff: true, user: true, want: "abl <abl@localhost>|Co-authored-by: U <u@example.com>,Signed-off-by: U <u@example.com>"},
		"both":                 {author: "Bot <b@example.com>", signoff: true, user: true, want: "Bot <b@example.com>|Signed-off-by: U <u@example.com>"},
		"a sign-off of nobody": {signoff: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			s := adopted(t)
			rests(t, s, 2)
			if c.user {
				runGit(t, s.Paths.Root, "config", "user.name", "U")
				runGit(t, s.Paths.Root, "config", "user.email", "u@example.com")
			}
			s.Conf.Publish.Author, s.Conf.Publish.Signoff = c.author, c.signoff
			repo, _, err := resumed(t, s)
			if c.refused {
				if exit.Code(err) != exit.Usage || !strings.Contains(exit.Hint(err), "user.email") {
					t.Errorf("got %v, want exit %d with user.email", err, exit.Usage)
				}
				return
			}
			must(t, err)
			must(t, os.WriteFile(filepath.Join(s.Paths.Src, "more"), nil, 0o644))
			_, err = repo.Snapshot(t.Context(), git.Message{Subject: "built", Call: "p1-build-2.2"})
			must(t, err)
			got := runGit(t, s.Paths.Src, "log", "-1", "--format=%an <%ae>|%(trailers:separator=%x2c)")
			if got = strings.TrimSpace(strings.ReplaceAll(strings.Replace(got, "Abl-Call: p1-build-2.2", "", 1), "|,", "|")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
