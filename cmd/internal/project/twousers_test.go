package project

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/redact"
	"abl/internal/state"
)

// fresh returns a clone of a project's repository on another machine, with the published refs.
func fresh(t *testing.T, s *Project) *Project {
	t.Helper()
	root, err := state.Real(t.TempDir())
	must(t, err)
	runGit(t, root, "clone", "-q", s.Paths.Root, ".")
	runGit(t, root, "fetch", "-q", "origin", "+refs/abl/*:refs/abl/*", "+refs/heads/abl/*:refs/remotes/origin/abl/*")
	must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
	other := &Project{
		In:     quiet(),
		Folder: Folder{Conf: &config.Loaded{}, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")},
	}
	other.Conf.Source.Repo = "."
	_, err = other.Pull(t.Context(), false)
	must(t, err)
	return other
}

// quiet returns a command line whose messages are discarded.
func quiet() *cli.Input {
	in := &cli.Input{Safe: redact.NewSanitizer(nil)}
	in.Bare.Stderr = io.Discard
	return in
}

// push copies the refs that a clone has published to its origin, like git push without force.
func push(t *testing.T, from *Project) {
	t.Helper()
	runGit(t, from.Paths.Root, "push", "-q", "--atomic", "origin", "refs/heads/abl/*:refs/heads/abl/*", "refs/abl/*:refs/abl/*")
}

// continued runs a command that runs phases and returns its error.
func continued(t *testing.T, s *Project) error {
	t.Helper()
	return Continued(func(context.Context, *Project) error { return nil })(t.Context(), s)
}

func refsOf(t *testing.T, s *Project) string {
	t.Helper()
	return runGit(t, s.Paths.Root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/abl", "refs/heads/abl")
}

// A CI job that has nothing to do moves no ref, so the next user can publish and push.
func TestPublishOfNothingNew(t *testing.T) {
	s := passed(t)
	before := refsOf(t, s)
	for _, name := range []string{"the first job", "the second job"} {
		t.Run(name, func(t *testing.T) {
			job := fresh(t, s)
			_, err := job.Publish(t.Context(), 0)
			must(t, err)
			if job.Unpublished() {
				t.Error("got unpublished work, want none")
			}
			push(t, job)
			if got := refsOf(t, s); got != before {
				t.Errorf("refs after a job with nothing to do: got\n%s\nwant\n%s", got, before)
			}
		})
	}
	build(t, s, "2")
	if _, err := s.Publish(t.Context(), 1); err == nil { // the tree differs from the one that passed
		t.Error("got no error, want that another tree than the one that passed is refused")
	}
}

// anotherID publishes the same state with another project id, as abl did before.
func anotherID(t *testing.T, s *Project) {
	t.Helper()
	x, err := s.exchange()
	must(t, err)
	files, err := x.repo.Kept(x.tip)
	must(t, err)
	files[carriedState] = edit(t, files[carriedState], func(f *state.File) { f.Project = "0123456789ab" })
	_, err = x.repo.Keep(t.Context(), stateRef, x.tip, "the same", files)
	must(t, err)
}

// A state that differs only in the project's id is not the work of another user.
func TestAnotherProjectID(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, s *Project) error{
		"publish": func(t *testing.T, s *Project) error { _, err := s.Publish(t.Context(), 0); return err },
		"pull":    func(t *testing.T, s *Project) error { _, err := s.Pull(t.Context(), false); return err },
		"phase":   continued,
	} {
		t.Run(name, func(t *testing.T) {
			s := published(t)
			anotherID(t, s)
			f, err := s.State()
			must(t, err)
			f.Phases["1"].Iteration, f.Phases["1"].Step = 2, 2 // paid work that is not published
			must(t, state.Save(s.Paths.State(), f))
			if err := do(t, s); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if f, err = s.State(); err != nil || f.Phases["1"].Iteration != 2 {
				t.Errorf("the local work after it: got %+v, %v, want iteration 2", f.Phases["1"], err)
			}
		})
	}
}

// The ids of contracts never count as a change, on either side.
func TestIDsAreNoChange(t *testing.T) {
	for name, sides := range map[string][2]string{"published": {"1", ""}, "local": {"", "1"}, "both": {"1", "2"}} {
		t.Run(name, func(t *testing.T) {
			var files [2]map[string][]byte
			for i, ids := range sides {
				files[i] = map[string][]byte{carriedState: []byte("{}")}
				if ids != "" {
					files[i][carriedIDs] = []byte(ids)
				}
			}
			if !sameState(files[0], files[1]) {
				t.Error("got a change, want none")
			}
		})
	}
}

// second publishes and pushes the work of a colleague on phase 2.
func second(t *testing.T, s *Project) {
	t.Helper()
	q := fresh(t, s)
	must(t, os.WriteFile(filepath.Join(q.Paths.Specs(), "contract-ids.txt"), []byte("P1.C1 = GET / → 200\nP2.C1 = GET /2 → 200\n"), 0o644))
	src, err := git.Open(q.Paths.Src, q.SourceOptions())
	must(t, err)
	must(t, src.Switch(t.Context(), Branch(2)))
	tip := build(t, q, "second")
	f, err := q.State()
	must(t, err)
	f.Phases["2"] = &state.Phase{Status: state.Refuted, Round: 1, Iteration: 1, Step: 1, SrcCommit: tip}
	must(t, state.Save(q.Paths.State(), f))
	_, err = ledger.Open(q.Paths.Ledger()).Append([]ledger.Row{{Phase: "2", Model: "m", CallID: "p2-build-1.1"}})
	must(t, err)
	_, err = q.Publish(t.Context(), 0)
	must(t, err)
	push(t, q)
}

// A colleague's phase is pulled although the ids of contracts were committed meanwhile, by pull and
// before a phase that would be paid for again.
func TestColleaguesPhase(t *testing.T) {
	commitIDs := func(t *testing.T, s *Project, text string) {
		must(t, os.WriteFile(filepath.Join(s.Paths.Specs(), "contract-ids.txt"), []byte(text), 0o644))
		runGit(t, s.Paths.Root, "add", ".abl/specs")
		runGit(t, s.Paths.Root, "commit", "-qm", "ids")
	}
	pull := func(t *testing.T, s *Project) error { _, err := s.Pull(t.Context(), false); return err }
	for name, c := range map[string]struct {
		ids string
		do  func(t *testing.T, s *Project) error
	}{
		"pull":                 {"", pull},
		"pull with ids":        {"P1.C1 = GET / → 200\n", pull},
		"pull with newer ids":  {"P1.C1 = GET / → 200\nP2.C1 = GET /2 → 200\n", pull},
		"phase":                {"", continued},
		"phase with ids":       {"P1.C1 = GET / → 200\n", continued},
		"phase with newer ids": {"P1.C1 = GET / → 200\nP2.C1 = GET /2 → 200\n", continued},
	} {
		t.Run(name, func(t *testing.T) {
			s := passed(t)
			second(t, s)
			if c.ids != "" {
				commitIDs(t, s, c.ids)
			}
			if err := c.do(t, s); err != nil {
				t.Fatalf("got %v, want that the phase of the colleague is pulled", err)
			}
			f, err := s.State()
			if err != nil || f.Phase(2).Status != state.Refuted {
				t.Errorf("phase 2: got %+v, %v, want the colleague's", f.Phase(2), err)
			}
			got, _ := os.ReadFile(filepath.Join(s.Paths.Specs(), "contract-ids.txt"))
			if c.ids != "" && string(got) != c.ids {
				t.Errorf("the ids that the user committed: got %q, want %q", got, c.ids)
			}
		})
	}
}

// If both users have new work, no phase is paid for twice, and each documented way out works.
func TestBothWentOn(t *testing.T) {
	both := func(t *testing.T) *Project {
		s := passed(t)
		second(t, s)
		f, err := s.State()
		must(t, err)
		f.Phases["2"] = &state.Phase{Status: state.Built, Round: 1, Iteration: 1, Step: 1}
		must(t, state.Save(s.Paths.State(), f))
		return s
	}
	s := both(t)
	err := continued(t, s)
	if exit.Code(err) != exit.Person || !strings.Contains(err.Error(), "phase 2 refuted") || !strings.Contains(err.Error(), "phase 2 built") {
		t.Fatalf("got %v, want exit %d with both states", err, exit.Person)
	}
	t.Run("theirs", func(t *testing.T) {
		s := both(t)
		_, err := s.Pull(t.Context(), true)
		must(t, err)
		must(t, continued(t, s))
		if got := runGit(t, s.Paths.Root, "status", "--porcelain", "--", ".abl/aside-1"); got != "" {
			t.Errorf("git status shows %q, want nothing of .abl/aside-1", got)
		}
		if _, err := os.Stat(filepath.Join(s.Paths.Root, ".abl/aside-1/state.json")); err != nil {
			t.Error(err)
		}
	})
	t.Run("mine", func(t *testing.T) {
		s := both(t)
		f, err := s.State()
		must(t, err)
		runGit(t, s.Paths.Root, "update-ref", stateRef, f.Published)
		must(t, continued(t, s))
		_, err = s.Publish(t.Context(), 1)
		must(t, err)
	})
}

// acts is one user, or a CI job, that fetches, runs a phase, publishes and pushes as docs/ describes.
// Without a phase it runs nothing.
func acts(t *testing.T, s *Project, phase int, push ...string) {
	t.Helper()
	runGit(t, s.Paths.Root, "fetch", "-q", "origin", "refs/heads/abl/*:refs/remotes/origin/abl/*", "refs/abl/*:refs/abl/*")
	must(t, continued(t, s))
	if phase > 0 {
		plays(t, s, phase, fmt.Sprintf("phase %d", phase))
		must(t, os.WriteFile(filepath.Join(s.Paths.Specs(), "contract-ids.txt"), fmt.Appendf(nil, "P%d.C1 = GET / → 200\n", phase), 0o644))
		runGit(t, s.Paths.Root, "add", "-f", ".abl/specs")
		runGit(t, s.Paths.Root, "commit", "-qm", "ids")
	}
	_, err := s.Publish(t.Context(), 0)
	must(t, err)
	runGit(t, s.Paths.Root, append([]string{"push", "-q", "--atomic", "origin"}, push...)...)
}

// plays builds a phase and refutes it. The file built gets a text.
func plays(t *testing.T, s *Project, phase int, text string) {
	t.Helper()
	src, err := git.Open(s.Paths.Src, s.SourceOptions())
	must(t, err)
	must(t, src.Switch(t.Context(), Branch(phase)))
	tip := build(t, s, text)
	tests, err := git.Open(s.Paths.Tests, git.Options{})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.Paths.Tests, "run.sh"), []byte(text), 0o755))
	snap, err := tests.Snapshot(t.Context(), git.Message{Subject: text})
	must(t, err)
	f, err := s.State()
	must(t, err)
	f.Phases[fmt.Sprint(phase)] = &state.Phase{
		Status: state.Refuted, Round: 1, Iteration: 1, Step: 1, SrcCommit: tip, TestsCommit: snap.Commit.Hash,
	}
	must(t, state.Save(s.Paths.State(), f))
}

// Two users built the same phase. The user whose push was refused can use either result.
func TestSamePhaseTwice(t *testing.T) {
	for name, way := range map[string]func(t *testing.T, s *Project, hint string){
		"theirs": func(t *testing.T, s *Project, _ string) {
			_, err := s.Pull(t.Context(), true)
			must(t, err)
		},
		"mine": func(t *testing.T, s *Project, hint string) {
			_, undo, _ := strings.Cut(hint, "published one; ")
			undo, _, _ = strings.Cut(undo, " ignores")
			for command := range strings.SplitSeq(undo, " && ") {
				runGit(t, s.Paths.Root, strings.Fields(command)[1:]...)
			}
			_, err := s.Publish(t.Context(), 0)
			must(t, err)
			runGit(t, s.Paths.Root, "push", "-q", "--force", "--atomic", "origin", "refs/heads/abl/*", "refs/abl/*")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := passed(t)
			runGit(t, s.Paths.Root, "switch", "-q", "--detach") // so that its branches can be pushed to
			mine, theirs := fresh(t, s), fresh(t, s)
			plays(t, theirs, 2, "theirs")
			_, err := theirs.Publish(t.Context(), 0)
			must(t, err)
			push(t, theirs)
			plays(t, mine, 2, "mine")
			if !mine.Unpublished() {
				t.Error("unpublished work after a phase: got none, want some")
			}
			plays(t, mine, 3, "mine as well")
			_, err = mine.Publish(t.Context(), 0)
			must(t, err)
			runGit(t, mine.Paths.Root, "fetch", "-q", "origin", "+refs/heads/abl/*:refs/remotes/origin/abl/*", "+refs/abl/*:refs/abl/*")
			err = continued(t, mine)
			if exit.Code(err) != exit.Person {
				t.Fatalf("a phase: got %v, want exit %d", err, exit.Person)
			}
			way(t, mine, exit.Hint(err))
			must(t, continued(t, mine))
			want := map[string]string{"theirs": "theirs", "mine": "mine as well"}[name]
			if got := read(t, filepath.Join(mine.Paths.Src, "built")); got != want {
				t.Errorf("the source: got %q, want %q", got, want)
			}
			acts(t, mine, 3, "HEAD:refs/heads/you", "refs/heads/abl/*", "refs/abl/*")
		})
	}
}

// Two users and CI follow docs/ one after the other, in every order, and again.
func TestEveryOrder(t *testing.T) {
	orders := []string{
		"you colleague ci", "ci colleague you", "you ci colleague", "colleague you ci", "colleague ci you", "ci you colleague",
	}
	if testing.Short() {
		orders = orders[:2]
	}
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			s := passed(t)
			runGit(t, s.Paths.Root, "switch", "-q", "--detach") // so that its branches can be pushed to
			users := map[string]*Project{"you": fresh(t, s), "colleague": fresh(t, s)}
			phase := 1
			for range 2 {
				for _, who := range strings.Fields(order) {
					if who == "ci" {
						acts(t, fresh(t, s), 0, "refs/heads/abl/*", "refs/abl/*")
						continue
					}
					phase++
					acts(t, users[who], phase, "HEAD:refs/heads/"+who, Branch(phase), "refs/abl/*")
				}
			}
			job := fresh(t, s)
			acts(t, job, phase, "refs/heads/abl/*", "refs/abl/*") // continues after the last one
			for _, who := range []string{"you", "colleague"} {
				acts(t, users[who], 0, "refs/heads/abl/*", "refs/abl/*")
				f, err := users[who].State()
				must(t, err)
				if n := len(f.Begun()); n != phase {
					t.Errorf("%s: got %d phases, want %d", who, n, phase)
				}
			}
		})
	}
}

// A pull restores a phase whose branch was deleted, and publishing leaves it deleted. Without a published
// source, the error prints the commands that publish it.
func TestBranchIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ merged, earlier, refused bool }{
		"merged":                                {merged: true},
		"squashed":                              {},
		"merged, by an earlier version":         {merged: true, earlier: true},
		"squashed, published before the source": {earlier: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := passed(t)
			if c.merged {
				runGit(t, s.Paths.Root, "merge", "-q", "--no-ff", "-m", "merge", Branch(1))
			}
			runGit(t, s.Paths.Root, "branch", "-D", Branch(1))
			if c.earlier {
				runGit(t, s.Paths.Root, "update-ref", "-d", sourceRef)
			}
			before := refsOf(t, s)
			root, err := state.Real(t.TempDir())
			must(t, err)
			runGit(t, root, "clone", "-q", "file://"+s.Paths.Root, ".")
			runGit(t, root, "fetch", "-q", "origin", "+refs/abl/*:refs/abl/*")
			must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
			other := &Project{In: quiet(), Folder: Folder{Conf: s.Conf, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")}}
			_, err = other.Pull(t.Context(), false)
			if c.refused {
				const want = "abl publish && git push --atomic origin 'refs/abl/*'"
				if hint := exit.Hint(err); exit.Code(err) != exit.Person || !strings.Contains(hint, want) || !strings.Contains(hint, "git fetch origin ") {
					t.Errorf("got %v with the hint %q, want %q", err, hint, want)
				}
				return
			}
			must(t, err)
			if c.earlier {
				return
			}
			_, err = other.Publish(t.Context(), 0)
			must(t, err)
			push(t, other)
			if got := refsOf(t, s); got != before {
				t.Errorf("refs after a job with nothing to do: got\n%s\nwant\n%s", got, before)
			}
			_, err = other.Publish(t.Context(), 1)
			must(t, err)
			if got := runGit(t, root, "rev-parse", Branch(1)); got != runGit(t, root, "rev-parse", sourceRef) {
				t.Errorf("the branch that was published by its number: got %s, want %s", got, sourceRef)
			}
		})
	}
}

// A partial clone pulls, or the error prints the command that fetches what it lacks.
func TestPullInAPartialClone(t *testing.T) {
	for _, filter := range []string{"blob:none", "tree:0"} {
		t.Run(filter, func(t *testing.T) {
			s := passed(t)
			runGit(t, s.Paths.Root, "config", "uploadpack.allowFilter", "true")
			root, err := state.Real(t.TempDir())
			must(t, err)
			runGit(t, root, "clone", "-q", "--filter="+filter, "file://"+s.Paths.Root, ".")
			runGit(t, root, "fetch", "-q", "origin", "refs/abl/*:refs/abl/*")
			must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
			job := &Project{In: quiet(), Folder: Folder{Conf: s.Conf, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")}}
			_, err = job.Pull(t.Context(), false)
			_, command, _ := strings.Cut(fmt.Sprint(err), "clone: git ")
			command, _, named := strings.Cut(command, " fetches all")
			if !named || exit.Code(err) != exit.Person {
				t.Fatalf("got %v, want exit %d with git's command", err, exit.Person)
			}
			runGit(t, root, strings.Fields(strings.ReplaceAll(command, "'", ""))...)
			_, err = job.Pull(t.Context(), false)
			must(t, err)
		})
	}
}

// A clone that has only branches is not a project that never ran.
func TestStateWasNotFetched(t *testing.T) {
	for name, ref := range map[string]string{
		"none": "", "a fetched branch": "refs/remotes/origin/abl/phase1", "a local branch": "refs/heads/abl/phase1",
		"another remote": "refs/remotes/fork/abl/phase12", "another branch": "refs/heads/abl/other",
	} {
		t.Run(name, func(t *testing.T) {
			s := published(t)
			must(t, os.Remove(s.Paths.State()))
			runGit(t, s.Paths.Root, "update-ref", "-d", stateRef)
			runGit(t, s.Paths.Root, "branch", "-D", "abl/phase1")
			if ref != "" {
				runGit(t, s.Paths.Root, "update-ref", ref, "main")
			}
			refused := strings.Contains(ref, "abl/phase")
			err := continued(t, s)
			if refused != (exit.Code(err) == exit.Person) {
				t.Errorf("a phase: got %v, want that it is refused: %t", err, refused)
			}
			if refused && !strings.Contains(err.Error(), "abl/phase1") {
				t.Errorf("a phase: got %v, want the name of the branch", err)
			}
		})
	}
}
