package view

import (
	"time"

	"abl/internal/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// aPhase returns the events of a phase, with hostile texts of agents.
func aPhase() []state.Event {
	tokens := func(n int64) *int64 { return &n }
	exit := func(n int) *int { return &n }
	at := 0
	next := func(seconds int, e state.Event) state.Event {
		at += seconds
		e.Time, e.Phase, e.Round = noon.Add(time.Duration(at)*time.Second), 1, 1
		return e
	}
	b := state.Event{Role: "builder", Call: "p1-build-1.1", Iteration: 1, Step: 1, Agent: "gemini", Model: "gemini-2.5-pro"}
	v := state.Event{Role: "verifier", Call: "p1-verify-1.1", Iteration: 1, Step: 1, Agent: "scripted"}
	of := func(e state.Event, kind state.Kind) state.Event { e.Kind = kind; return e }
	with := func(e state.Event, change func(*state.Event)) state.Event { change(&e); return e }
	return []state.Event{
		next(0, state.Event{Kind: state.PhaseStart, Text: "Notes that stay"}),
		next(0, state.Event{Kind: state.Note, Text: "key of gemini: from .env"}),
		next(1, of(b, state.CallStart)),
		next(2, with(of(b, state.Action), func(e *state.Event) { e.Text = "writes src/server.js" })),
		next(1, with(of(b, state.Action), func(e *state.Event) { e.Text = "runs npm test" })),
		next(9, with(of(b, state.Action), func(e *state.Event) {
			e.Text = "\x1b]0;owned\x07\x1b[2J\r\nabl: passed\u202e ärger 漢字 \U0001F600"
		})),
		next(30, with(of(b, state.CallEnd), func(e *state.Event) { e.Class, e.MS, e.Exit = "done", 42_300, exit(0) })),
		next(0, with(of(b, state.Usage), func(e *state.Event) { e.Tokens = tokens(1_234_567) })),
		next(0, with(of(b, state.Usage), func(e *state.Event) { e.Model = "gemini-2.5-flash" })),
		next(1, with(of(b, state.Commit), func(e *state.Event) {
			e.Hash, e.Subject, e.Text = "0123456789abcdef0123456789abcdef01234567", "phase1/build/step-1", "5 files changed"
		})),
		next(0, state.Event{Kind: state.AppStart, Call: "p1-verify-1.1"}),
		next(1, state.Event{Kind: state.AppReady, Call: "p1-verify-1.1", MS: 850}),
		next(0, of(v, state.CallResume)),
		next(3, with(of(v, state.Action), func(e *state.Event) { e.Text = "GET /notes" })),
		next(60, with(of(v, state.CallEnd), func(e *state.Event) { e.Class, e.MS, e.Text = "oom", 63_000, "out of memory (limits.memory)" })),
		next(0, state.Event{Kind: state.AppFailed, Text: "listens on 127.0.0.1 only"}),
		next(0, state.Event{Kind: state.Verdict, Iteration: 1, Verdict: "fail", Text: "2 contracts"}),
		next(3600, state.Event{Kind: state.Verdict, Iteration: 5, Verdict: "unverified", Text: "the report is missing"}),
		next(1, state.Event{Kind: state.Outcome, Iteration: 5, Verdict: "unverified", Exit: exit(4)}),
	}
}
