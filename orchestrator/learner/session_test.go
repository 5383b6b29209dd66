package learner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/roles/call"
)

// world is an agent and a program with scripted behaviour.
type world struct {
	asked   []string // keys
	last    map[Step]string
	write   map[string]string // files of the program, by cycle/name
	say     func(Call) Happened
	ran     Ran
	printed []string
	slept   []time.Duration
}

func (w *world) Ask(_ context.Context, a Call) (Happened, error) {
	w.asked = append(w.asked, a.Key())
	if w.last == nil {
		w.last = map[Step]string{}
	}
	w.last[a.Step] = a.Prompt
	if a.Step == Generate {
		for name, text := range w.write {
			path := filepath.Join(a.Dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
				return Happened{}, err
			}
		}
	}
	return w.say(a), nil
}

func (w *world) Try(_ context.Context, a Call) (Happened, error) {
	w.asked = append(w.asked, a.Key())
	ran := w.ran
	return Happened{Ran: &ran}, nil
}

func (w *world) show(text string) { w.printed = append(w.printed, text) }

func (w *world) session(h Home) *Session {
	return &Session{
		Home: h, Calls: w, Show: w.show, Clean: func(s string) string { return s },
		Admit: func(string) error { return nil }, Policy: func() call.Policy {
			return call.Policy{Now: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC), Budget: time.Hour}
		}, Sleep: func(_ context.Context, d time.Duration, _ time.Time) error {
			w.slept = append(w.slept, d)
			return nil
		},
	}
}

func scripted(a Call) Happened {
	return Happened{Fault: outcome.Fault{Class: outcome.Done}, SpentMS: 10, Text: map[Step]string{
		Generate: "Made.", Review: "TESTS: OK", Learnings: fmt.Sprintf("LEARNING: lesson of cycle %d\nLEARNING: Use a pool", a.Cycle),
		Mistakes: "MISTAKE: No test", Improve: fmt.Sprintf("Prompt %d.\n# Past Prompts", a.Cycle),
	}[a.Step]}
}

func newWorld(t *testing.T) (*world, Home) {
	t.Helper()
	return &world{
		say: scripted, ran: Ran{OK: true},
		write: map[string]string{"run.sh": "echo hi\n", "lib/deep/a.txt": "a", "output.txt": "mine", "lib/.git/config": "x"},
	}, Home{Root: filepath.Join(t.TempDir(), "solutions", "p")}
}

func read(t *testing.T, h Home, name string) string {
	t.Helper()
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestPlay(t *testing.T) {
	w, h := newWorld(t)
	s, resumed, err := Open(h, "a task", "gemini", "m", 2, time.Now())
	if err != nil || resumed {
		t.Fatal(resumed, err)
	}
	if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Step != Done {
		t.Fatal(s.Step, err)
	}
	const keys = "s1-c1-generate.1 s1-c1-run.1 s1-c1-review.1 s1-c1-learnings.1 s1-c1-mistakes.1 s1-c1-improve.1 s1-c2-generate.1 s1-c2-run.1 s1-c2-review.1 s1-c2-learnings.1 s1-c2-mistakes.1 s1-c2-improve.1"
	if got := strings.Join(w.asked, " "); got != keys {
		t.Errorf("calls: got %s, want %s", got, keys)
	}
	for name, want := range map[string]string{
		"memory.txt": "- lesson of cycle 1\n- Use a pool\n- lesson of cycle 2\n", "mistakes.txt": "- No test\n",
		"cycle-1/output.txt": "Made.", "cycle-2/improved_prompt.txt": "Prompt 2.\n# Past Prompts", "cycle-1/review.txt": "TESTS: OK", "code/lib/deep/a.txt": "a",
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, h, name); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := tree(t, h.Code()); got != "lib/deep/a.txt run.sh" {
		t.Errorf("files of code/: got %s, want lib/deep/a.txt run.sh", got)
	}
	if got, want := tree(t, h.Cycle(2)), "improved_prompt.txt learnings.txt lib/.git/config lib/deep/a.txt "+
		"mistakes.txt output.txt prompt.txt review.txt run.sh"; got != want {
		t.Errorf("files of cycle-2/: got %s, want %s", got, want)
	}
	b, err := h.Prompts()
	if err != nil || b.Current != "Prompt 2.\n# Past Prompts" || len(b.Past) != 2 || b.Past[1].Text != "Prompt 1.\n# Past Prompts" || b.Past[1].Title != "2 - 2026-11-22 03:04:05" {
		t.Errorf("prompts: got %+v, %v, want Prompt 2 and 2 versions, the last Prompt 1", b, err)
	}
	second := read(t, h, "cycle-2/prompt.txt")
	for _, want := range []string{"Prompt 1.", "- lesson of cycle 1\n", "- No test\n", "## Your task\n\na task\n"} {
		if !strings.Contains(second, want) {
			t.Errorf("second prompt: got\n%s\nwant %q in it", second, want)
		}
	}
	printed := strings.Join(w.printed, "\n")
	for _, want := range []string{"LEARNING CYCLE 1/2 [Agent: gemini | Model: m]", "  learned   2, new in memory.txt: 2\n", "LEARNING CYCLE 2/2", "  learned   2, new in memory.txt: 1\n", "  mistakes  1, new in mistakes.txt: 0\n", "is version 2 in prompts.md", "solutions/p/code lacks \"lib/.git\": git would execute its settings"} {
		if !strings.Contains(printed, want) {
			t.Errorf("printed text: got\n%s\nwant %q in it", printed, want)
		}
	}
}

// A session that is stopped anywhere resumes there and keeps its lessons.
func TestResume(t *testing.T) {
	for _, at := range []string{"s1-c1-generate.1", "s1-c1-review.1", "s1-c2-improve.1"} {
		t.Run(at, func(t *testing.T) {
			w, h := newWorld(t)
			ctx, cancel := context.WithCancel(t.Context())
			w.say = func(a Call) Happened {
				if a.Key() == at {
					cancel()
					return Happened{Fault: outcome.Fault{Class: outcome.Interrupted}}
				}
				return scripted(a)
			}
			s, _, err := Open(h, "a task", "gemini", "m", 2, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, err = w.session(h).Play(ctx, s); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			s, resumed, err := Open(h, "a task", "gemini", "m", 2, time.Now())
			if err != nil || !resumed || s.Key() != strings.TrimSuffix(at, "1")+"2" {
				t.Fatalf("Open: got resumed %t at %s, %v, want true at %s",
					resumed, s.Key(), err, strings.TrimSuffix(at, "1")+"2")
			}
			if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Step != Done || len(w.asked) != 13 {
				t.Errorf("got step %s after %d calls, %v, want %s after 13", s.Step, len(w.asked), err, Done)
			}
			if b, err := h.Prompts(); err != nil || b.Number() != 2 {
				t.Errorf("got version %d, %v, want 2", b.Number(), err)
			}
		})
	}
}

// If the user resumes with another agent, the calls from then on use that agent's model.
func TestResumeWithAnotherAgent(t *testing.T) {
	w, h := newWorld(t)
	s, _, err := Open(h, "a task", "claude", "sonnet", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.say = func(Call) Happened { cancel(); return Happened{Fault: outcome.Fault{Class: outcome.Interrupted}} }
	if _, err := w.session(h).Play(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s, _, err = Open(h, "a task", "gemini", "flash", 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if c := s.Last(); c.Agent != "gemini" || c.Model != "flash" {
		t.Errorf("agent of the cycle: got %s (%s), want gemini (flash)", c.Agent, c.Model)
	}
	w.say = scripted
	if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Last().Agent != "gemini" {
		t.Errorf("last cycle: got %+v, %v, want the agent gemini", s.Last(), err)
	}
}

// After a kill between the files of Keep and the state, no file is written twice.
func TestKeepTwice(t *testing.T) {
	_, h := newWorld(t)
	s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.Step, s.Log[0].Learned, s.Log[0].Improved = Keep, []string{"Use a pool"}, "Better."
	for range 2 {
		if _, err := h.saveLessons(s, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	b, err := h.Prompts()
	if err != nil || b.Number() != 1 || b.Current != "Better." || read(t, h, MemoryFile) != "- Use a pool\n" {
		t.Errorf("prompts and memory.txt: got %+v, %v, %q, want Better. with number 1, and Use a pool once",
			b, err, read(t, h, MemoryFile))
	}
}

// abl creates files again that the user removed during a session.
func TestFilesTakenAway(t *testing.T) {
	w, h := newWorld(t)
	w.say = func(a Call) Happened {
		if a.Key() == "s1-c1-review.1" {
			for _, name := range []string{MemoryFile, MistakesFile, PromptsFile} {
				if err := os.Remove(h.path(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return scripted(a)
	}
	s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Step != Done || read(t, h, MistakesFile) != "- No test\n" {
		t.Errorf("session: got step %s, %v, want %s and the mistake No test", s.Step, err, Done)
	}
}

func TestFailedCycle(t *testing.T) {
	w, h := newWorld(t)
	w.write = map[string]string{"main.py": "x"}
	s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Last().OK || s.Last().Failure != "the program failed: there is no run.sh" {
		t.Fatalf("last cycle: got %+v, %v, want a failure because there is no run.sh", s.Last(), err)
	}
	if _, err := os.Stat(h.Code()); err == nil {
		t.Error("code/ after a failed cycle: got a folder, want none")
	}
	if !strings.Contains(w.last[Mistakes], "There is no review, because the program failed: there is no run.sh") {
		t.Errorf("prompt for mistakes: got\n%s\nwant why there is no review in it", w.last[Mistakes])
	}
	if b, err := h.Prompts(); err != nil || b.Number() != 1 || read(t, h, MistakesFile) != "- No test\n" {
		t.Errorf("prompts after a failed cycle: got %+v, %v, want number 1 and the mistake No test", b, err)
	}
}

// A new session keeps the lessons and moves the earlier cycles away.
func TestSecondSession(t *testing.T) {
	w, h := newWorld(t)
	for n := 1; n <= 2; n++ {
		s, resumed, err := Open(h, "a task", "gemini", "m", 1, time.Now())
		if err != nil || resumed || s.Session != n || s.Book != n-1 {
			t.Fatal(s.Session, s.Book, resumed, err)
		}
		if _, err := w.session(h).Play(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, h, ".abl/sessions/1/cycle-1/output.txt"); got != "Made." {
		t.Errorf("output.txt of session 1: got %q, want %q", got, "Made.")
	}
	if b, err := h.Prompts(); err != nil || b.Number() != 2 {
		t.Errorf("prompts: got %+v, %v, want number 2", b, err)
	}
}

// abl waits for a failing provider before it repeats the call. After a restart it waits for the rest
// of the time.
func TestWaitsForTheProvider(t *testing.T) {
	w, h := newWorld(t)
	w.say = func(a Call) Happened {
		if a.Step == Review && a.Attempt < 3 {
			return Happened{Fault: outcome.Fault{Class: outcome.Unavailable, What: "503"}, SpentMS: 1000}
		}
		return scripted(a)
	}
	s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	x := w.session(h)
	x.Sleep = func(context.Context, time.Duration, time.Time) error { return context.Canceled }
	if s, err = x.Play(t.Context(), s); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s, _, err = Open(h, "a task", "gemini", "m", 1, time.Now()); err != nil || s.Key() != "s1-c1-review.2" {
		t.Fatal(s.Key(), err)
	}
	if s, err = w.session(h).Play(t.Context(), s); err != nil || s.Step != Done || s.Last().Review == nil {
		t.Fatalf("session: got %+v, %v, want step %s with a review", s, err, Done)
	}
	if fmt.Sprint(w.slept) != "[2s 4s]" {
		t.Errorf("waits: got %v, want [2s 4s]", w.slept)
	}
	if printed := strings.Join(w.printed, "\n"); !strings.Contains(printed, "waits until 03:04:09 UTC: the provider is failing: 503 (call 2 in a row, 8s of 1h0m0s)") {
		t.Errorf("printed text: got\n%s\nwant the wait until 03:04:09 UTC and its reason in it", printed)
	}
}

func TestStopped(t *testing.T) {
	for class, want := range map[outcome.Outcome]error{outcome.Refused: call.ErrLogin, outcome.OverBudget: call.ErrBudget, outcome.Quota: call.ErrUnavailable, outcome.TooLarge: call.ErrAgent} {
		w, h := newWorld(t)
		w.say = func(Call) Happened {
			return Happened{Fault: outcome.Fault{Class: class, What: "why", Paid: class == outcome.Quota}}
		}
		s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s, err = w.session(h).Play(t.Context(), s)
		if !errors.Is(err, want) || s.Key() != "s1-c1-generate.2" || len(w.slept) > 0 {
			t.Errorf("%s: got %v at %s after waits %v, want %v at s1-c1-generate.2 after none",
				class, err, s.Key(), w.slept, want)
		}
		if s, err = Load(h); err != nil || s.Key() != "s1-c1-generate.2" {
			t.Errorf("state on disk after %s: got %s, %v, want s1-c1-generate.2", class, s.Key(), err)
		}
	}
}

// abl handles files that an agent left at its own paths, and keeps unsafe files out of code/.
func TestHostileCycle(t *testing.T) {
	w, h := newWorld(t)
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain := w.say
	w.say = func(a Call) Happened {
		if a.Step == Generate {
			for _, err := range []error{
				os.Remove(filepath.Join(a.Dir, "output.txt")), os.Symlink(outside, filepath.Join(a.Dir, "output.txt")), os.MkdirAll(filepath.Join(a.Dir, "prompt.txt", "x"), 0o755),
				os.Symlink("/etc/passwd", filepath.Join(a.Dir, "lib", "abs")), os.Symlink("../../../..", filepath.Join(a.Dir, "lib", "up")), os.Symlink("deep/a.txt", filepath.Join(a.Dir, "lib", "in")),
				os.MkdirAll(filepath.Join(a.Dir, "lib", "no \xff text", "below"), 0o755), os.WriteFile(filepath.Join(a.Dir, "a \xff file"), []byte("x"), 0o644),
				os.Chmod(a.Dir, 0o555),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		return plain(a)
	}
	s, _, err := Open(h, "a task", "gemini", "m", 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.session(h).Play(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(outside); string(data) != "mine" {
		t.Errorf("file outside: got %q, want mine", data)
	}
	if got := tree(t, h.Code()); got != "lib/deep/a.txt lib/in run.sh" {
		t.Errorf("files of code/: got %q, want lib/deep/a.txt lib/in run.sh", got)
	}
	if printed := strings.Join(w.printed, "\n"); !strings.Contains(printed, `"lib/no \xff text": it cannot be read`) || !strings.Contains(printed, `"a \xff file": it cannot be read`) {
		t.Errorf("printed text: got\n%s\nwant both unreadable names in it", printed)
	}
	if read(t, h, "cycle-1/output.txt") != "Made." || !strings.Contains(read(t, h, "cycle-1/prompt.txt"), "a task") {
		t.Errorf("output.txt and prompt.txt: got %q and %q, want Made. and a prompt with a task",
			read(t, h, "cycle-1/output.txt"), read(t, h, "cycle-1/prompt.txt"))
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	for _, text := range []string{"{", `{"version":99,"id":"learn-aaaaaaaaaa"}`, `{"version":1,"id":"learn-a/../b"}`, `{"version":1,"id":"x","session":1,"step":"sleep","cycle":1,"cycles":1,"log":[{}]}`, `{"version":1,"id":"x","session":1,"step":"run","cycle":2,"cycles":1,"log":[]}`, `{}`} {
		h := Home{Root: filepath.Join(t.TempDir(), "solutions", "p")}
		if err := errors.Join(os.MkdirAll(h.Private(), 0o755), os.WriteFile(h.path(stateFile), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(h, "t", "a", "m", 1, time.Now()); err == nil || !strings.Contains(err.Error(), "solutions/p/.abl/learn.json") {
			t.Errorf("error for the state %s: got %v, want one that names learn.json", text, err)
		}
	}
}

func TestBookByHand(t *testing.T) {
	_, h := newWorld(t)
	if err := errors.Join(os.MkdirAll(h.Root, 0o755), os.WriteFile(h.path(PromptsFile), []byte("My own prompt.\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(h, "t", "a", "m", 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if b, err := h.Prompts(); err != nil || b.Current != "My own prompt." {
		t.Errorf("prompts: got %+v, %v, want the prompt %q", b, err, "My own prompt.")
	}
}
