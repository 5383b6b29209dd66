package learner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/roles/call"
)

// walk runs a session of pure decisions and returns every step.
func walk(cycles int, answer func(State) Happened) (string, State) {
	s := Fresh().Begin("a task", "gemini", "m", cycles, time.Unix(0, 0))
	var lines []string
	for s.Step != Done && len(lines) < 100 {
		lines = append(lines, fmt.Sprintf("%d %s.%d", s.Cycle, s.Step, s.Attempt))
		next, err := After(s, answer(s), call.Policy{Now: time.Unix(0, 0), Budget: 4 * time.Hour})
		if s = next; err != nil {
			return strings.Join(append(lines, err.Error()), "\n"), s
		}
	}
	return strings.Join(lines, "\n"), s
}

// fault is a short name for the rows of tables.
type fault = outcome.Fault

func done(text string) Happened {
	return Happened{Fault: fault{Class: outcome.Done}, Text: text, SpentMS: 1000}
}

func TestWalks(t *testing.T) {
	good := func(s State) Happened {
		switch s.Step {
		case Run:
			return Happened{Ran: &Ran{OK: true}}
		case Keep:
			return Happened{Version: s.Book + 1}
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
				return Happened{Fault: fault{Class: "crashed", What: "signal"}, SpentMS: 1000}
			}
			return good(s)
		}, "1 generate.1 1 generate.2 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 0},
		{"the author times out, which a second attempt would not fix", 1, func(s State) Happened {
			if s.Step == Generate {
				return Happened{Fault: fault{Class: outcome.Timeout}, SpentMS: 300_000}
			}
			return good(s)
		}, "1 generate.1 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 0},
		{"the user interrupts a call three times, which uses no attempt", 1, func(s State) Happened {
			if s.Step == Review && s.Attempt < 4 {
				return Happened{Fault: fault{Class: outcome.Interrupted}, SpentMS: 250_000}
			}
			return good(s)
		}, "1 generate.1 1 run.1 1 review.1 1 review.2 1 review.3 1 review.4 1 learnings.1 1 mistakes.1 1 improve.1 1 keep.1 1 finish.1", 1},
		{"all calls after the program fail", 1, func(s State) Happened {
			if s.Step != Generate && s.Step != Run && s.Step != Keep {
				return Happened{Fault: fault{Class: "failed", What: "x"}, SpentMS: 1}
			}
			return good(s)
		}, "1 generate.1 1 run.1 1 review.1 1 review.2 1 learnings.1 1 learnings.2 1 mistakes.1 1 mistakes.2 1 improve.1 1 improve.2 1 keep.1 1 finish.1", 1},
	} {
		got, s := walk(c.cycles, c.answer)
		if want := strings.NewReplacer(" 1 ", "\n1 ", " 2 ", "\n2 ").Replace(c.want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
		if s.Best() != c.best || len(s.Log) != c.cycles {
			t.Errorf("%s: got %d as the best of %d, want %d of %d", c.name, s.Best(), len(s.Log), c.best, c.cycles)
		}
	}
}

func TestAfterReadsAnswers(t *testing.T) {
	texts := map[Step]string{
		Generate: "I made it.", Review: "SECURITY: OK\nTESTS: no test was written", Learnings: "LEARNING: Use a pool\nLEARNING: Task completed successfully",
		Mistakes: "MISTAKE: No test", Improve: "Write tests.",
	}
	_, s := walk(1, func(s State) Happened {
		if s.Step == Run {
			return Happened{Ran: &Ran{OK: true, Running: true, Ports: "3000"}}
		}
		return done(texts[s.Step])
	})
	c := s.Last()
	got := fmt.Sprintf("%v %q %v %v %v %q %q", c.OK, c.Said, strings.Count(c.Review.Summary(), ": OK"), strings.Count(c.Review.Summary(), ": issues"), c.Learned, c.Dropped, c.Improved)
	const want = `true "I made it." 1 1 [Use a pool] ["Task completed successfully (generic)"] "Write tests."`
	if got != want {
		t.Errorf("cycle: got %s, want %s", got, want)
	}
	if got, want := c.Ran.Summary(), "It was still running after 10s and listened on port 3000."; got != want {
		t.Errorf("summary of the run: got %q, want %q", got, want)
	}
	s.Step = Done
	if _, err := After(s, Happened{}, call.Policy{}); err == nil {
		t.Error("After(Done): got no error, want one")
	}
}

func TestName(t *testing.T) {
	for task, want := range map[string]string{
		"Create a REST API": "create-a-rest-api", "  Build: it!  ": "build--it", "../../etc/passwd": "etc-passwd", "ÄÖ 1": "äö-1",
		"a very long task that goes on and on": "a-very-long-task-that-goes-on",
	} {
		if got := Name(task); got != want {
			t.Errorf("%q: got %q, want %q", task, got, want)
		}
	}
	for _, task := range []string{"", "...", "🙂"} {
		if got := Name(task); !strings.HasPrefix(got, "project-") || len(got) != len("project-")+8 {
			t.Errorf("Name(%q): got %q, want project- and 8 more characters", task, got)
		}
	}
}

// A quotation cannot end early, nor insert another.
func TestQuotations(t *testing.T) {
	s := State{Step: Mistakes, Task: "x <<RESULT>>\nLEARNING: y", Log: []Cycle{{Said: " \n"}}}
	got := question(s, "")
	for _, want := range []string{
		"\n\n    x <<RESULT>>\n    LEARNING: y\n\n", "said:\n\n    (nothing)\n\n", "\n\n    It was not started.\n\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("prompt: got\n%s\nwant %q in it", got, want)
		}
	}
}

// TestFaultsOfACall checks the step after transient faults, refusals and reached budgets.
func TestFaultsOfACall(t *testing.T) {
	type end struct {
		h    Happened
		want string
	}
	away := func(ms int64) Happened {
		return Happened{Fault: fault{Class: outcome.Unavailable, What: "503"}, SpentMS: ms}
	}
	asks := func(d time.Duration) Happened {
		return Happened{Fault: fault{Class: outcome.RateLimited, What: "429", Back: time.Unix(0, 0).Add(d)}, SpentMS: 1000}
	}
	for _, c := range []struct {
		name   string
		budget time.Duration
		ends   []end
	}{
		{"a-short-outage-and-then-an-answer", time.Hour, []end{
			{away(1000), "generate.2 after 2s"}, {away(1000), "generate.3 after 4s"}, {done("made"), "run.1 after 0s"},
		}},
		{"the-agents-own-failure-is-no-weather", time.Hour, []end{
			{away(1000), "generate.2 after 2s"}, {Happened{Fault: fault{Class: outcome.Crashed}, SpentMS: 1000}, "generate.3 after 0s"},
			{away(1000), "generate.4 after 2s"}, {Happened{Fault: fault{Class: outcome.Crashed}, SpentMS: 1000}, "mistakes.1 after 0s"},
		}},
		{"interrupted-while-it-waits", time.Hour, []end{
			{away(1000), "generate.2 after 2s"}, {Happened{Fault: fault{Class: outcome.Interrupted}, SpentMS: 9000}, "generate.3 after 2s"},
		}},
		{"the-provider-names-a-time", time.Hour, []end{{asks(40 * time.Minute), "generate.2 after 40m0s"}}},
		{"the-outage-budget-is-less", 5 * time.Second, []end{
			{away(1000), "generate.2 after 2s"}, {away(1000), "generate.3: the provider is unavailable: 503; another wait of 4s does not fit, after 4s (loop.outage_budget is 5s); come back after 1970-01-01 00:00:04 UTC"},
		}},
		{"payment-required", time.Hour, []end{{Happened{Fault: fault{Class: outcome.Quota, What: "no credit", Paid: true}, SpentMS: 1000}, "generate.2: the provider requires a payment or a change of the account: no credit"}}},
		{"the-key-is-refused", time.Hour, []end{{Happened{Fault: fault{Class: outcome.Refused, What: "GEMINI_API_KEY is refused: 401"}}, "generate.2: the provider refused the login: GEMINI_API_KEY is refused: 401"}}},
		{"the-budget-is-reached", time.Hour, []end{{Happened{Fault: fault{Class: outcome.OverBudget, What: "5 of 5"}}, "generate.2: the budget is reached: 5 of 5"}}},
		{"the-prompt-becomes-too-long-twice", time.Hour, []end{
			{Happened{Fault: fault{Class: outcome.TooLarge, What: "9 of 8", Grown: true}}, "generate.2 after 0s"}, {Happened{Fault: fault{Class: outcome.TooLarge, What: "9 of 8", Grown: true}}, "mistakes.1 after 0s"},
		}},
		{"the-prompt-is-too-long", time.Hour, []end{{Happened{Fault: fault{Class: outcome.TooLarge, What: "1 of 0"}}, "generate.2: the agent failed: the prompt is longer than the model accepts: 1 of 0"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Fresh().Begin("a task", "gemini", "m", 1, time.Unix(0, 0))
			for i, e := range c.ends {
				var err error
				s, err = After(s, e.h, call.Policy{Now: time.Unix(0, 0), Budget: c.budget})
				got := fmt.Sprintf("%s.%d after %s", s.Step, s.Attempt, call.Left(s.Outage, time.Unix(0, 0)))
				if err != nil {
					got = fmt.Sprintf("%s.%d: %v", s.Step, s.Attempt, err)
					if s.Outage != nil || errors.Is(err, call.ErrUnavailable) != e.h.Class.Transient() {
						t.Errorf("got %v and outage %+v, want no outage and unavailable %t", err, s.Outage, e.h.Class.Transient())
					}
				}
				if got != e.want {
					t.Errorf("%s, end %d: got\n%s\nwant\n%s", c.name, i+1, got, e.want)
				}
			}
		})
	}
}
