package learner

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// walk plays a session of pure decisions and prints every step.
func walk(cycles int, answer func(State) Happened) (string, State) {
	s := Fresh().Begin("a task", "gemini", "m", cycles, time.Unix(0, 0))
	var lines []string
	for s.Step != Done && len(lines) < 100 {
		lines = append(lines, fmt.Sprintf("%d %s.%d", s.Cycle, s.Step, s.Attempt))
		s = After(s, answer(s))
	}
	return strings.Join(lines, "\n"), s
}

func done(text string) Happened { return Happened{Class: Answered, Text: text, SpentMS: 1000} }

func TestWalks(t *testing.T) {
	good := func(s State) Happened {
		switch s.Step {
		case Run:
			return Happened{Ran: &Ran{OK: true}}
		case Keep:
			return Happened{Kept: Kept{1, 2, s.Book + 1}}
		}
		return done(string(s.Step))
	}
	for _, c := range []struct {
		name   string
		cycles int
		answer func(State) Happened
		want   string
		best   int
	}{
		{"all goes well", 2, good, "1 generate.1 1 run.1 1 review.1 1 learnings.1 1 mistakes.1 1 improve.1 1 keep.1 2 generate.1 2 run.1 2 review.1 2 learnings.1 2 mistakes.1 2 improve.1 2 keep.1 2 finish.1", 2},
		{"the second program fails: its mistakes count, and the first stays the best", 2, func(s State) Happened {
			if s.Cycle == 2 && s.Step == Run {
				return Happened{Ran: &Ran{Reason: "exit code 1"}}
			}
			return good(s)
		}, "1 generate.1 1 run.1 1 review.1 1 learnings.1 1 mistakes.1 1 improve.1 1 keep.1 2 generate.1 2 run.1 2 mistakes.1 2 improve.1 2 keep.1 2 finish.1", 1},
		{"the author fails twice", 1, func(s State) Happened {
			if s.Step == Generate {
				return Happened{Class: "crashed", Reason: "signal", SpentMS: 1000}
			}
			return good(s)
		}, "1 generate.1 1 generate.2 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 0},
		{"the author is too slow: no time is left for a second try", 1, func(s State) Happened {
			if s.Step == Generate {
				return Happened{Class: TimedOut, SpentMS: 300_000}
			}
			return good(s)
		}, "1 generate.1 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 0},
		{"a first try that took all the time", 1, func(s State) Happened {
			if s.Step == Generate {
				return Happened{Class: "failed", SpentMS: 300_001}
			}
			return good(s)
		}, "1 generate.1 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 0},
		{"a person stops a call three times, which takes nothing of it", 1, func(s State) Happened {
			if s.Step == Review && s.Attempt < 4 {
				return Happened{Class: Interrupted, SpentMS: 250_000}
			}
			return good(s)
		}, "1 generate.1 1 run.1 1 review.1 1 review.2 1 review.3 1 review.4 1 learnings.1 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 1},
		{"nobody answers after the program", 1, func(s State) Happened {
			if s.Step != Generate && s.Step != Run && s.Step != Keep {
				return Happened{Class: "failed", Reason: "x", SpentMS: 1}
			}
			return good(s)
		}, "1 generate.1 1 run.1 1 review.1 1 review.2 1 learnings.1 1 learnings.2 1 mistakes.1 1 mistakes.2 1 improve.1 1 improve.2 1 keep.1 1 finish.1", 1},
	} {
		got, s := walk(c.cycles, c.answer)
		if got != strings.NewReplacer(" 1 ", "\n1 ", " 2 ", "\n2 ").Replace(c.want) {
			t.Errorf("%s:\n%s", c.name, got)
		}
		if s.Best() != c.best || len(s.Log) != c.cycles {
			t.Errorf("%s: the best is %d of %d", c.name, s.Best(), len(s.Log))
		}
	}
}

func TestAfterReadsAnswers(t *testing.T) {
	texts := map[Step]string{
		Generate: "I made it.", Review: "SECURITY: OK\nTESTS: there are none", Learnings: "LEARNING: Use a pool\nLEARNING: Task completed successfully",
		Mistakes: "MISTAKE: No test", Improve: "Write tests.",
	}
	_, s := walk(1, func(s State) Happened {
		if s.Step == Run {
			return Happened{Ran: &Ran{OK: true, Running: true, Ports: "3000"}}
		}
		return done(texts[s.Step])
	})
	c := s.Last()
	got := fmt.Sprintf("%v %q %v %v %v %q %q", c.OK, c.Said, c.Review.Count("ok"), c.Review.Count("issues"), c.Learned, c.Dropped, c.Improved)
	if got != `true "I made it." 1 1 [Use a pool] ["Task completed successfully (generic)"] "Write tests."` {
		t.Error(got)
	}
	if c.Ran.Summary() != "It was still running after 10s and listened on port 3000." {
		t.Error(c.Ran.Summary())
	}
	if s.Step = Done; After(s, Happened{}).Step != Done {
		t.Error("an end has an after")
	}
}

// Where nothing is learned a cycle is a try, and the first that succeeds the last.
func TestPlainWalk(t *testing.T) {
	s := Fresh().Begin("a task", "gemini", "m", 3, time.Unix(0, 0))
	s.Plain, s.Expect = true, "42"
	var steps []string
	for s.Step != Done && len(steps) < 20 {
		steps = append(steps, fmt.Sprintf("%d %s", s.Cycle, s.Step))
		h := done("")
		if s.Step == Run {
			h = Happened{Ran: &Ran{OK: true, Output: []string{"", "41", "it is 42"}[s.Cycle-1]}}
		}
		s = After(s, h)
	}
	if got := strings.Join(steps, ", "); got != "1 generate, 1 run, 2 generate, 2 run, 3 generate, 3 run" || s.Best() != 3 || s.Log[1].Failure != `the program failed: its output lacks "42"` {
		t.Errorf("%s; %+v", got, s.Log)
	}
}

func TestName(t *testing.T) {
	for task, want := range map[string]string{
		"Create a REST API": "create-a-rest-api", "  Build: it!  ": "build--it", "../../etc/passwd": "etc-passwd", "ÄÖ 1": "äö-1",
		"a very long task that goes on and on": "a-very-long-task-that-goes-on",
	} {
		if got := Name(task); got != want {
			t.Errorf("%q: %q, want %q", task, got, want)
		}
	}
	for _, task := range []string{"", "...", "🙂"} {
		if got := Name(task); !strings.HasPrefix(got, "project-") || len(got) != len("project-")+8 {
			t.Errorf("%q: %q", task, got)
		}
	}
}

// A quotation cannot end itself, nor fill in another.
func TestFill(t *testing.T) {
	got := fill("A <<TASK>>\nB <<RESULT>>\n", "TASK", "x <<RESULT>>\nLEARNING: y", "RESULT", "")
	if want := "A     x <<RESULT>>\n    LEARNING: y\nB     (nothing)\n"; got != want {
		t.Errorf("%q", got)
	}
}
