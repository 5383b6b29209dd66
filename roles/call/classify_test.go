package call

import (
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
)

var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClassify(t *testing.T) {
	done := agent.Result{Finished: true}
	says := func(t outcome.Outcome) agent.Result { return agent.Result{Trouble: t, Reason: "it says " + string(t)} }
	passed := func(c outcome.Outcome) roles.Traffic {
		return roles.Traffic{Fault: outcome.Fault{Class: c, What: "log", Back: when}}
	}
	unfinished := func(c outcome.Outcome) roles.Traffic {
		t := passed(c)
		t.Unfinished = true
		return t
	}
	toolless := func(t outcome.Outcome) agent.Result {
		said := says(t)
		said.Toolless = true
		return said
	}
	complete := roles.Traffic{Finish: "STOP"}
	waiting, left := roles.Traffic{Waiting: true}, roles.Traffic{Waiting: true, Left: true}
	own := Job{Agent: agent.Agent{Own: true, Provider: agent.Provider{API: "openai-chat"}}}
	placed := Job{Place: boundary.PlaceBuilder}
	code := func(n int) sandbox.Exit { return sandbox.Exit{Code: n} }
	for _, c := range []struct {
		name string
		e    ending
		want outcome.Outcome
		from roles.Witness
	}{
		{"proper-end", ending{said: done}, outcome.Done, ""},
		{"proper-end-just-before-it-was-stopped", ending{said: done, stopped: roles.Stopped{Class: outcome.Interrupted}}, outcome.Done, ""},
		{"proper-end-just-in-time", ending{said: done, stopped: roles.Stopped{Class: outcome.Timeout}}, outcome.Done, ""},
		{"proper-end-just-before-it-was-taken-for-idle", ending{said: done, stopped: roles.Stopped{Class: outcome.Idle}}, outcome.Done, ""},
		{"proper-end-after-an-aside-in-trouble", ending{said: done, passed: passed(outcome.RateLimited)}, outcome.Done, ""},
		{"proper-end-after-an-aside-that-was-refused", ending{said: done, passed: passed(outcome.Denied)}, outcome.Done, ""},
		{"proper-end-whose-last-answer-the-agent-left", ending{said: done, passed: left}, outcome.Done, ""},
		{"proper-end-while-an-aside-was-under-way", ending{said: done, passed: waiting, stopped: roles.Stopped{Class: outcome.Idle}}, outcome.Done, ""},
		{"proper-end-after-a-flood", ending{said: done, stopped: roles.Stopped{Class: outcome.Flood}}, outcome.Flood, roles.ByAbl},
		{"proper-end-after-it-filled-the-disk", ending{said: done, stopped: roles.Stopped{Class: outcome.Disk, Reason: "r"}}, outcome.Disk, roles.ByAbl},
		{"proper-words-and-gone", ending{said: done, exit: code(-1), stopped: roles.Stopped{Class: outcome.Lost}}, outcome.Lost, roles.ByAbl},
		{"proper-end-with-a-child-out-of-memory", ending{said: done, exit: sandbox.Exit{OOMKilled: true}}, outcome.Done, ""},
		{"proper-end-before-an-aside-over-the-budget", ending{said: done, passed: roles.Traffic{Over: "reached"}}, outcome.Done, ""},

		{"success-after-a-cut-answer", ending{said: done, passed: unfinished(outcome.Cut)}, outcome.Cut, roles.ByGateway},
		{"success-after-an-answer-that-was-declined", ending{said: done, passed: unfinished(outcome.Filtered)}, outcome.Filtered, roles.ByGateway},
		{"success-after-a-failed-answer", ending{said: done, passed: unfinished(outcome.Unavailable)}, outcome.Unavailable, roles.ByGateway},
		{"success-after-a-rate-limit", ending{said: done, passed: unfinished(outcome.RateLimited)}, outcome.RateLimited, roles.ByGateway},
		{"success-after-a-failed-answer-and-a-child-out-of-memory", ending{said: done, exit: sandbox.Exit{OOMKilled: true}, passed: unfinished(outcome.Unavailable)}, outcome.Unavailable, roles.ByGateway},
		{"success-after-a-request-at-fault", ending{said: done, passed: roles.Traffic{Unfinished: true, Fault: outcome.Fault{What: "the provider answers 400"}}}, outcome.Failed, roles.ByGateway},
		{"success-after-a-refusal-of-the-gateway", ending{said: done, passed: unfinished(outcome.Denied)}, outcome.Denied, roles.ByGateway},
		{"success-after-the-gateway-had-no-room", ending{said: done, passed: roles.Traffic{Unfinished: true}}, outcome.Failed, roles.ByGateway},
		{"success-over-the-budget", ending{said: done, passed: roles.Traffic{Unfinished: true, Over: "reached"}}, outcome.OverBudget, roles.ByGateway},
		{"success-as-it-was-stopped-amid-an-answer-for-idleness", ending{said: done, passed: left, stopped: roles.Stopped{Class: outcome.Idle}}, outcome.Unavailable, roles.ByGateway},
		{"success-as-it-was-stopped-amid-an-answer-for-time", ending{said: done, passed: left, stopped: roles.Stopped{Class: outcome.Timeout}}, outcome.Unavailable, roles.ByGateway},
		{"success-as-it-was-stopped-amid-an-answer-by-the-user", ending{said: done, passed: left, stopped: roles.Stopped{Class: outcome.Interrupted}}, outcome.Interrupted, roles.ByAbl},
		{"success-as-it-was-stopped-after-trouble", ending{said: done, passed: unfinished(outcome.Unavailable), stopped: roles.Stopped{Class: outcome.Idle}}, outcome.Unavailable, roles.ByGateway},

		{"own-agent", ending{said: done, passed: complete, job: own}, outcome.Done, ""},
		{"own-agent-that-ran-no-tool", ending{said: done, passed: roles.Traffic{Finish: "tool_calls", Calls: true}, job: own}, outcome.Nothing, roles.ByGateway},
		{"own-agent-without-a-response", ending{said: done, job: own}, outcome.Nothing, roles.ByGateway},
		{"own-agent-without-a-model", ending{said: done, job: Job{Agent: agent.Agent{Own: true}}}, outcome.Done, ""},
		{"own-agent-that-failed", ending{exit: code(1), said: says(""), job: own}, outcome.Failed, roles.ByAgent},
		{"native-agent-that-ran-no-tool", ending{said: done, passed: roles.Traffic{Finish: "tool_use", Calls: true}}, outcome.Done, ""},

		{"idle", ending{exit: code(143), stopped: roles.Stopped{Class: outcome.Idle}}, outcome.Idle, roles.ByAbl},
		{"late", ending{exit: code(143), stopped: roles.Stopped{Class: outcome.Timeout}}, outcome.Timeout, roles.ByAbl},
		{"ended-by-its-own-deadline", ending{exit: code(124), last: helper.RunEnd{Deadline: true, Signal: "SIGTERM"}}, outcome.Timeout, roles.ByAbl},
		{"stopped", ending{exit: code(143), stopped: roles.Stopped{Class: outcome.Interrupted}, last: helper.RunEnd{Signal: "SIGTERM"}}, outcome.Interrupted, roles.ByAbl},
		{"stopped-in-a-rate-limit", ending{exit: code(143), stopped: roles.Stopped{Class: outcome.Interrupted}, passed: passed(outcome.RateLimited)}, outcome.Interrupted, roles.ByAbl},
		{"stopped-out-of-memory", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, stopped: roles.Stopped{Class: outcome.Interrupted}}, outcome.Interrupted, roles.ByAbl},
		{"over-the-budget", ending{exit: code(1), passed: roles.Traffic{Over: "reached"}, said: says(outcome.Refused)}, outcome.OverBudget, roles.ByGateway},

		{"idle-since-the-provider-is-silent", ending{stopped: roles.Stopped{Class: outcome.Idle}, passed: waiting}, outcome.Unavailable, roles.ByGateway},
		{"late-in-a-storm-of-refusals", ending{stopped: roles.Stopped{Class: outcome.Timeout}, passed: passed(outcome.RateLimited)}, outcome.RateLimited, roles.ByGateway},
		{"an-abandoned-request", ending{exit: code(1), passed: waiting, said: says("")}, outcome.Failed, roles.ByAgent},
		{"the-log-before-the-agents-word", ending{exit: code(145), passed: passed(outcome.Quota), said: says(outcome.Refused)}, outcome.Quota, roles.ByGateway},
		{"the-log-before-the-exit-code", ending{exit: code(0), passed: passed(outcome.Unavailable)}, outcome.Unavailable, roles.ByGateway},
		{"the-log-before-a-child-out-of-memory", ending{exit: sandbox.Exit{Code: 1, OOMKilled: true}, passed: passed(outcome.Unavailable)}, outcome.Unavailable, roles.ByGateway},

		{"memory", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, last: helper.RunEnd{Signal: "SIGKILL"}, said: says("")}, outcome.OutOfMemory, roles.ByEngine},
		{"memory-in-a-storm-of-refusals", ending{exit: sandbox.Exit{Code: 137, OOMKilled: true}, passed: passed(outcome.RateLimited), said: says(outcome.Unavailable)}, outcome.OutOfMemory, roles.ByEngine},
		{"killed-without-a-word", ending{exit: code(137), job: placed}, outcome.Crashed, roles.ByExit},
		{"killed-without-a-word-on-no-network", ending{exit: code(137)}, outcome.EngineGone, roles.ByEngine},
		{"137-alone-is-no-memory", ending{exit: code(137), last: helper.RunEnd{Signal: "SIGKILL"}}, outcome.Crashed, roles.ByExit},
		{"the-engine-went-down", ending{exit: code(137), lost: loss{outcome.EngineGone, "x"}, last: helper.RunEnd{Signal: "SIGKILL"}}, outcome.EngineGone, roles.ByEngine},
		{"the-app-went-down", ending{exit: code(1), lost: loss{outcome.AppGone, "x"}, said: says("")}, outcome.AppGone, roles.ByEngine},

		{"not-started", ending{exit: code(127), last: helper.RunEnd{Error: "x"}}, outcome.Failed, roles.ByExit},
		{"its-own-words", ending{exit: code(1), said: says("")}, outcome.Failed, roles.ByAgent},
		{"away", ending{exit: code(1), said: says(outcome.Unavailable)}, outcome.Unavailable, roles.ByAgent},
		{"rate", ending{exit: code(1), said: says(outcome.RateLimited)}, outcome.RateLimited, roles.ByAgent},
		{"quota", ending{exit: code(1), said: says(outcome.Quota)}, outcome.Quota, roles.ByAgent},
		{"network", ending{exit: code(1), said: says(outcome.Network)}, outcome.Network, roles.ByAgent},
		{"too-large", ending{exit: code(1), said: says(outcome.TooLarge)}, outcome.TooLarge, roles.ByAgent},
		{"did-nothing", ending{said: says(outcome.Nothing)}, outcome.Nothing, roles.ByAgent},
		{"no-tool-after-a-complete-answer", ending{said: toolless(""), passed: complete}, outcome.Nothing, roles.ByGateway},
		{"no-tool-after-a-complete-answer-that-it-calls-an-error", ending{exit: code(1), said: toolless(outcome.Unavailable), passed: complete}, outcome.Nothing, roles.ByGateway},
		{"no-tool-and-killed", ending{exit: code(137), said: toolless(""), passed: complete, last: helper.RunEnd{Signal: "SIGKILL"}}, outcome.Crashed, roles.ByExit},
		{"the-key-is-refused", ending{exit: code(1), said: says(outcome.Refused), job: Job{Agent: agent.Agent{Provider: agent.Provider{KeyVar: "A_KEY"}}}}, outcome.Refused, roles.ByAgent},
		{"its-last-request-was-at-fault", ending{exit: code(1), said: says(""), passed: roles.Traffic{Fault: outcome.Fault{What: "the provider answers 404"}}}, outcome.Failed, roles.ByGateway},
		{"nothing-at-all", ending{}, outcome.Failed, roles.ByExit},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why, evidence := c.e.classify()
			if got != c.want || evidence.From != c.from || (why == "") != (got == outcome.Done) || (evidence.What == "") != (got == outcome.Done) {
				t.Errorf("got %s (%s), %s, want %s by %s", got, why, evidence, c.want, c.from)
			}
			if got == outcome.Refused && !strings.HasPrefix(why, "A_KEY is refused: ") {
				t.Errorf("reason of a refusal: got %q, want it to begin with %q", why, "A_KEY is refused: ")
			}
			if got != "" && c.e.passed.Fault.Class == got && evidence.Back != when {
				t.Errorf("got back at %s, want %s", evidence.Back, when)
			}
		})
	}
}

// TestTransient checks which classes are transient.
func TestTransient(t *testing.T) {
	for _, c := range []outcome.Outcome{outcome.RateLimited, outcome.Quota, outcome.Unavailable, outcome.Network, outcome.EngineGone} {
		if !c.Transient() {
			t.Errorf("got %s not transient, want transient", c)
		}
	}
	for _, c := range []outcome.Outcome{"", outcome.Done, outcome.Failed, outcome.Nothing, outcome.Crashed, outcome.OutOfMemory, outcome.Timeout, outcome.Flood, outcome.Disk, outcome.Idle, outcome.Interrupted, outcome.TooLarge, outcome.Refused, outcome.Cut, outcome.Filtered, outcome.NoModel, outcome.Denied, outcome.AppGone, outcome.Lost, outcome.OverBudget} {
		if c.Transient() {
			t.Errorf("got %s transient, want not transient", c)
		}
	}
}
