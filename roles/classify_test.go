package roles

import (
	"strings"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/orchestrator/dirs"
	"abl/roles/agent"
)

var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClassify(t *testing.T) {
	done := agent.Result{Finished: true}
	says := func(t agent.Trouble) agent.Result { return agent.Result{Trouble: t, Reason: "it says " + string(t)} }
	passed := func(c Class) Traffic { return Traffic{Fault: Fault{Class: c, What: "log", Back: when}} }
	waiting := Traffic{Fault: Fault{Waiting: true}}
	code := func(n int) sandbox.Exit { return sandbox.Exit{Code: n} }
	for _, c := range []struct {
		name string
		e    ending
		want Class
		from Witness
	}{
		{"proper end", ending{said: done}, Done, ""},
		{"proper end just before it was stopped", ending{said: done, stopped: stopped{Class: Interrupted}}, Done, ""},
		{"proper end just in time", ending{said: done, stopped: stopped{Class: Timeout}}, Done, ""},
		{"proper end just before it was taken for idle", ending{said: done, stopped: stopped{Class: Idle}}, Done, ""},
		{"proper end after trouble", ending{said: done, passed: passed(Limited)}, Done, ""},
		{"proper end after a flood", ending{said: done, stopped: stopped{Class: Flood}}, Flood, ByAbl},
		{"proper end after it filled the disk", ending{said: done, stopped: stopped{Class: Disk, Reason: "r"}}, Disk, ByAbl},
		{"proper words, and gone", ending{said: done, exit: code(-1), stopped: stopped{Class: Lost}}, Lost, ByAbl},
		{"proper end with a child out of memory", ending{said: done, exit: sandbox.Exit{OOMKilled: true}}, Done, ""},
		{"proper end over the budget", ending{said: done, passed: Traffic{Over: "reached"}}, Done, ""},

		{"proper end whose last answer was cut", ending{said: done, passed: passed(Cut)}, Cut, ByGateway},
		{"proper end whose last answer was declined", ending{said: done, passed: passed(Filtered)}, Filtered, ByGateway},

		{"idle", ending{exit: code(143), stopped: stopped{Class: Idle}}, Idle, ByAbl},
		{"late", ending{exit: code(143), stopped: stopped{Class: Timeout}}, Timeout, ByAbl},
		{"ended by its own deadline", ending{exit: code(124), last: dirs.RunEnd{Deadline: true, Signal: "SIGTERM"}}, Timeout, ByAbl},
		{"stopped", ending{exit: code(143), stopped: stopped{Class: Interrupted}, last: dirs.RunEnd{Signal: "SIGTERM"}}, Interrupted, ByAbl},
		{"stopped in a rate limit", ending{exit: code(143), stopped: stopped{Class: Interrupted}, passed: passed(Limited)}, Interrupted, ByAbl},
		{"stopped out of memory", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, stopped: stopped{Class: Interrupted}}, Interrupted, ByAbl},
		{"over the budget", ending{exit: code(1), passed: Traffic{Over: "reached"}, said: says(agent.Login)}, OverBudget, ByGateway},

		{"idle since the provider is silent", ending{stopped: stopped{Class: Idle}, passed: waiting}, Away, ByGateway},
		{"late in a storm of refusals", ending{stopped: stopped{Class: Timeout}, passed: passed(Limited)}, Limited, ByGateway},
		{"a request that nobody waited for", ending{exit: code(1), passed: waiting, said: says("")}, Failed, ByAgent},
		{"the log before the agent's word", ending{exit: code(145), passed: passed(Quota), said: says(agent.Login)}, Quota, ByGateway},
		{"the log before the exit code", ending{exit: code(0), passed: passed(Away)}, Away, ByGateway},
		{"the log before a child out of memory", ending{exit: sandbox.Exit{Code: 1, OOMKilled: true}, passed: passed(Away)}, Away, ByGateway},

		{"memory", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, last: dirs.RunEnd{Signal: "SIGKILL"}, said: says("")}, OutOfMemory, ByEngine},
		{"memory in a storm of refusals", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, passed: passed(Limited), said: says(agent.Away)}, OutOfMemory, ByEngine},
		{"137 alone is no memory", ending{exit: code(137), last: dirs.RunEnd{Signal: "SIGKILL"}}, Crashed, ByExit},
		{"the engine went down", ending{exit: code(137), fallen: fallen{EngineGone, "x"}, last: dirs.RunEnd{Signal: "SIGKILL"}}, EngineGone, ByEngine},
		{"the app went down", ending{exit: code(1), fallen: fallen{AppGone, "x"}, said: says("")}, AppGone, ByEngine},

		{"not started", ending{exit: code(127), last: dirs.RunEnd{Error: "x"}}, Failed, ByExit},
		{"its own words", ending{exit: code(1), said: says("")}, Failed, ByAgent},
		{"away", ending{exit: code(1), said: says(agent.Away)}, Away, ByAgent},
		{"rate", ending{exit: code(1), said: says(agent.Rate)}, Limited, ByAgent},
		{"quota", ending{exit: code(1), said: says(agent.Quota)}, Quota, ByAgent},
		{"network", ending{exit: code(1), said: says(agent.Network)}, Network, ByAgent},
		{"too large", ending{exit: code(1), said: says(agent.TooLarge)}, TooLarge, ByAgent},
		{"did nothing", ending{said: says(agent.Nothing)}, Nothing, ByAgent},
		{"the key is refused", ending{exit: code(1), said: says(agent.Login), keyVar: "A_KEY"}, Refused, ByAgent},
		{"its last request was at fault", ending{exit: code(1), said: says(""), passed: Traffic{Fault: Fault{What: "the provider answers 404"}}}, Failed, ByGateway},
		{"nothing at all", ending{}, Failed, ByExit},
	} {
		got, why, evidence := c.e.classify()
		if got != c.want || evidence.From != c.from || (why == "") != (got == Done) || (evidence.What == "") != (got == Done) {
			t.Errorf("%s: %s (%s), %s, want %s by %s", c.name, got, why, evidence, c.want, c.from)
		}
		if got == Refused && !strings.HasPrefix(why, "A_KEY is refused: ") {
			t.Errorf("%s: %s", c.name, why)
		}
		if c.e.passed.Fault.Class == got && evidence.Back != when {
			t.Errorf("%s: back at %s", c.name, evidence.Back)
		}
	}
}

// What is weather is not the agent's fault, and nothing else is.
func TestWeather(t *testing.T) {
	for _, c := range []Class{Limited, Quota, Away, Network, EngineGone} {
		if !c.Weather() {
			t.Errorf("%s is no weather", c)
		}
	}
	for _, c := range []Class{"", Done, Failed, Nothing, Crashed, OutOfMemory, Timeout, Flood, Disk, Idle, Interrupted, TooLarge, Refused, Cut, Filtered, NoModel, Denied, AppGone, Lost, OverBudget} {
		if c.Weather() {
			t.Errorf("%s is weather", c)
		}
	}
}
