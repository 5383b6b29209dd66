package learn

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/call"
)

// spentOn returns a project with these ledger rows, and its budgets.
func spentOn(t *testing.T, caps config.Budget, rows ...ledger.Row) (learner.Home, *money.Account) {
	t.Helper()
	root := t.TempDir()
	conf := &config.Loaded{Config: config.Default()}
	conf.Budget = caps
	list, err := money.Prices(root, conf)
	if err != nil {
		t.Fatal(err)
	}
	in := &cli.Input{Safe: redact.NewSanitizer(nil)}
	w := &work{in: in, conf: conf, prices: list, home: learner.Home{Root: root}}
	w.printer = &printer{out: io.Discard, in: in}
	at := w.home.Project()
	book, account := w.accounts(1)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at.Ledger()), 0o755), book.Append(rows)); err != nil {
		t.Fatal(err)
	}
	return w.home, account
}

func paid(call string, used int64, outcome outcome.Outcome) ledger.Row {
	none := int64(0)
	return ledger.Row{
		Timestamp: ledger.Stamp(time.Now()), Phase: "1", Model: "gemini-2.5-pro", CallID: call, Source: ledger.Gateway, CostUSD: "0.5",
		Count:   usage.Count{Input: &used, Candidates: &none, Total: &used},
		Outcome: string(outcome),
	}
}

// unasked is a Caller that must not be called.
type unasked struct {
	*testing.T
	name string
}

func (u unasked) Ask(context.Context, learner.Call) (learner.Happened, error) {
	u.Errorf("%s: the call was begun", u.name)
	return learner.Happened{}, nil
}

func (u unasked) Try(ctx context.Context, a learner.Call) (learner.Happened, error) {
	return u.Ask(ctx, a)
}

// A reached limit ends the run before anything is started or removed. Sums are like those of phases:
// failed attempts and charges for unknown usage count.
func TestReachedBudgetStartsNothing(t *testing.T) {
	untold := paid("s1-c1-generate.1", 0, outcome.Done)
	untold.Source, untold.CostUSD, untold.Input, untold.Candidates, untold.Total = ledger.Nobody, "", nil, nil, nil
	for name, c := range map[string]struct {
		budget config.Budget
		row    ledger.Row
		want   string
	}{
		"the session's":         {config.Budget{Phase: config.Cap{Tokens: 100}}, paid("s1-c1-generate.1", 100, outcome.Done), "100 of 100 tokens of the phase are used"},
		"the project's dollars": {config.Budget{Project: config.Cap{USD: 0.5}}, paid("s0-c1-generate.1", 1, outcome.Done), "0.50 of 0.5 USD of the project are spent"},
		"a failed attempt":      {config.Budget{Call: config.Cap{Tokens: 9}}, paid("s1-c2-review.1", 9, outcome.Crashed), "9 of 9 tokens of the call are used"},
		"what was charged":      {config.Budget{Phase: config.Cap{Tokens: 50}}, untold, "60 of 50 tokens of the phase are used"},
	} {
		t.Run(name, func(t *testing.T) {
			home, account := spentOn(t, c.budget, c.row)
			rec := roles.Record{Dir: home.Project().Call("s1-c1-generate.1")}
			if err := errors.Join(os.MkdirAll(rec.Dir, 0o755), rec.SaveOutcome(roles.Outcome{Charged: &roles.Charged{Tokens: 60}})); err != nil {
				t.Fatal(err)
			}
			x := &learner.Session{
				Home: home, Calls: unasked{t, name}, Admit: account.Admit, Show: func(string) {},
				Clean: func(s string) string { return s }, Policy: func() call.Policy { return call.Policy{} },
			}
			s := learner.State{Step: learner.Review, Session: 1, Cycle: 2, Cycles: 2, Attempt: 2, Log: make([]learner.Cycle, 2)}
			_, err := x.Play(t.Context(), s)
			if !errors.Is(err, call.ErrBudget) || exit.Code(err) != exit.Budget || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			if hint := exit.Hint(err); !strings.Contains(hint, "or continue with the same command and --budget-") {
				t.Errorf("got hint %q, want the same command with --budget-", hint)
			}
		})
	}
}

// The gateway gets the rest of the limits, raised by the command line.
func TestGatewayGetsRemainingLimits(t *testing.T) {
	caps := config.Budget{Call: config.Cap{Tokens: 30}, Phase: config.Cap{USD: 2}}
	_, account := spentOn(t, caps, paid("s1-c1-review.1", 9, outcome.Crashed))
	left, err := account.Left("s1-c1-review.2")
	if err != nil || len(left.Bounds) != 2 || *left.Requests != config.Default().Limits.Requests {
		t.Fatalf("got %+v, error %v, want two bounds and the default number of requests", left, err)
	}
	call, phase := left.Bounds[0], left.Bounds[1]
	if *call.Tokens != 30 || call.UsedTokens != 9 || phase.Tokens != nil ||
		phase.USD.String() != "2" || phase.UsedUSD.String() != "0.5" {
		t.Errorf("got %+v, want 9 of 30 tokens of the call and 0.5 of 2 USD of the phase", left.Bounds)
	}
}

func TestBudgetFlags(t *testing.T) {
	p := newPerson(t)
	if code, _, stderr := p.call("", "x", "--budget-usd", "+5"); code != 2 || !strings.Contains(stderr, "--budget-usd +5: there is no such limit") {
		t.Errorf("--budget-usd +5: got exit code %d with %s, want 2 and %q", code, stderr, "there is no such limit")
	}
	if code, _, stderr := p.call("", "x", "--budget-usd", "5", "--agent", "gemini", "--model", "gemini-of-nobody"); code != 2 || !strings.Contains(stderr, "the model gemini-of-nobody has no price") {
		t.Errorf("unknown model: got exit code %d with %s, want 2 and %q", code, stderr, "has no price")
	}
	if _, err := os.Stat("solutions"); err == nil {
		t.Error("folder solutions: got one, want none without a valid budget")
	}
	if code, _, stderr := p.call("", "x", "--budget-tokens", "many"); code != 2 || !strings.Contains(stderr, "many") {
		t.Errorf("--budget-tokens many: got exit code %d with %s, want 2 and the value", code, stderr)
	}
}

// A run that the provider stops has its exit code, its message and its hint.
func TestStopsAreSettled(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		hint string
	}{
		{call.Stops(outcome.Fault{Class: outcome.Refused, What: "GEMINI_API_KEY is refused: 401"}), exit.Agent, "put a valid key in .env"},
		{call.Stops(outcome.Fault{Class: outcome.OverBudget, What: "5 of 5"}), exit.Budget, "--budget-usd +5"},
		{call.Stops(outcome.Fault{Class: outcome.TooLarge, What: "long"}), exit.Agent, "see the records in .abl/logs/calls of the project"},
		{call.Unavailable{Class: outcome.Quota, Why: "429", Back: time.Unix(0, 0)}, exit.Away, "run the same command later"},
		{call.Unavailable{Class: outcome.EngineGone}, exit.Environment, ""},
	} {
		err := withRecords(exit.OnEngine(c.err))
		if exit.Code(err) != c.code || !strings.Contains(exit.Hint(err), c.hint) {
			t.Errorf("%v: got exit code %d, hint %q, want %d and %q",
				err, exit.Code(err), exit.Hint(err), c.code, c.hint)
		}
	}
}
