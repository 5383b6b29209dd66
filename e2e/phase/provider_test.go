package phase

import (
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/roles/agent"
)

// asksTheModel requests the model once, and fails if that fails.
//
//go:embed testdata/steps/asks-the-model.sh
var asksTheModel string

// asks returns a step in which the scripted agent sends one request to its model.
func asks() agent.Step { return must(0, asksTheModel) }

// providerKey is the key for a provider with troubles.
const providerKey = "a-key-of-nobody-4715"

// troubledProject returns a provider with troubles, and a project whose scripted agent requests its
// model once per call, before it writes anything.
func troubledProject(t *testing.T, settings string, plan func(n int64, model string) modelserver.Trouble) (*lab.Project, *modelserver.Troubled) {
	t.Helper()
	v := verifies()
	v.Steps = append([]agent.Step{asks()}, v.Steps...)
	p := newProject(t, "", builds(write("half.txt", "begun\n"), asks(), write("server.mjs", server)), v)
	sections := nodeApp + "verify: {evidence: off}\n" +
		"agents: {scripted: {scenario: .abl/scenario.yaml, provider: gemini}}\n" + settings
	config := scripted
	for section := range strings.Lines(sections) {
		config = replacing(config, section)
	}
	p.Write(".abl/config.yaml", config)
	well := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}`)
	}
	model := &modelserver.Troubled{Plan: plan, Then: http.HandlerFunc(well)}
	s := lab.NewServer(model)
	t.Cleanup(s.Close)
	p.Env = append(p.Env, "GEMINI_API_KEY="+providerKey, "GOOGLE_GEMINI_BASE_URL="+s.URL)
	return p, model
}

// inOrder plays a trouble for each request. Requests after the last trouble succeed.
func inOrder(all ...modelserver.Trouble) func(int64, string) modelserver.Trouble {
	return func(n int64, _ string) modelserver.Trouble {
		if n > int64(len(all)) {
			return ""
		}
		return all[n-1]
	}
}

// trouble is a trouble of the provider, with the end of the call that meets it, and the text that
// abl prints about it.
type trouble struct {
	is    modelserver.Trouble
	class string
	says  string
}

// troubledRun is a run of abl whose calls meet these troubles. abl waits after each trouble, but
// the last one ends a run whose exit code is not 0.
type troubledRun struct {
	long     bool     // similar to another run
	env      []string // settings of this run only
	exit     int
	troubles []trouble
}

// troubledRuns lists the runs of TestProviderTroubles. abl waits longer after each consecutive
// trouble, so each run has few of them.
var troubledRuns = []troubledRun{
	{exit: 5, troubles: []trouble{
		{modelserver.Reset, "network", " not respond: "},
		{"401", "refused", "GEMINI_API_KEY is refused"},
	}},
	{exit: 75, env: []string{"ABL_LOOP_OUTAGE_BUDGET=0s"}, troubles: []trouble{
		{"503", "away", "the provider responds 503"},
	}},
	{long: true, exit: 75, troubles: []trouble{
		{"429 1", "rate", "the provider responds 429"},
		{modelserver.Daily, "quota", "come back after"},
	}},
	{long: true, exit: 75, troubles: []trouble{
		{"429", "rate", "the provider responds 429"},
		{"429 90000", "quota", "come back after"},
	}},
	{long: true, exit: 75, troubles: []trouble{
		{"500", "away", "the provider responds 500"},
		{
			modelserver.Broke,
			"quota",
			"requires a payment or a change of the account: the provider responds 403: nobody has paid",
		},
	}},
	{long: true, exit: 5, troubles: []trouble{
		{modelserver.Half, "away", "is incomplete"},
		{modelserver.Forged, "refused", "GEMINI_API_KEY is refused"},
	}},
	{long: true, exit: 5, troubles: []trouble{
		{modelserver.Garbled, "away", "something other than a response of a model"},
		{modelserver.TooLong, "large", "the prompt is longer than the model accepts"},
	}},
	{
		long: true,
		exit: 75,
		env:  []string{"ABL_LOOP_IDLE_TIMEOUT=3s", "ABL_LOOP_OUTAGE_BUDGET=0s"},
		troubles: []trouble{
			{modelserver.Silence, "away", "did not respond to its last request (stopped as idle)"},
		},
	},
	{
		long: true,
		exit: 75,
		env: []string{
			"ABL_LOOP_CALL_TIMEOUT=15s", "ABL_LOOP_OUTAGE_BUDGET=0s",
		},
		troubles: []trouble{ // only the timeout ends this call
			{modelserver.Slow, "away", "did not respond to its last request"},
		},
	},
}

// The gateway reports every trouble of the provider, and abl gives the call the matching class.
// If the trouble is temporary, abl waits, without using an iteration. Otherwise it ends the run
// with the matching exit code. The next run continues, and the files of the calls stay.
func TestProviderTroubles(t *testing.T) {
	var plan []modelserver.Trouble
	var runs []troubledRun
	for _, r := range troubledRuns {
		if r.long && testing.Short() {
			continue
		}
		runs = append(runs, r)
		for _, one := range r.troubles {
			plan = append(plan, one.is)
		}
	}
	p, _ := troubledProject(t, "loop: {call_timeout: 60s, outage_budget: 2m}\n", inOrder(plan...))
	env, made := p.Env, 0
	for _, run := range runs {
		p.Env = append(slices.Clone(env), run.env...)
		r := p.Must(run.exit, "phase", "1", "--json")
		lacks(t, "the output of abl", r.Stdout+r.Stderr, providerKey)
		run.check(t, p, r, made)
		made += len(run.troubles)
		checkNothingLeft(p)
	}
	wants(t, "the history", p.Git("src", "ls-tree", "-r", "--name-only", "HEAD"), "half.txt")
	p.Env = env
	p.Must(0, "phase", "1")
	if got := verdictsOf(p); got != "1 pass" {
		t.Errorf("iteration and verdict: got %q, want %q", got, "1 pass")
	}
	rows := ledgerRows(p)
	if got, want := len(rows), len(plan)+2; got != want {
		t.Errorf("rows of the ledger: got %d, want %d, one per call", got, want)
	}
	checkNothingLeft(p)
}

// check checks the calls of a run. made is the number of calls before it.
func (run troubledRun) check(t *testing.T, p *lab.Project, r lab.Result, made int) {
	all := events(t, r)
	ends, waits := of(all, state.CallEnd), of(all, state.Wait)
	last := len(run.troubles) - 1
	if len(ends) != last+1 || len(waits) != last {
		t.Fatalf("got %d calls and %d waits, want %d and %d: %+v", len(ends), len(waits), last+1, last, ends)
	}
	for i, want := range run.troubles {
		t.Run(strings.ReplaceAll(string(want.is), " ", "-for-"), func(t *testing.T) {
			end, key := ends[i], fmt.Sprintf("p1-build-1.%d", made+i+1)
			if end.Call != key || end.Class != want.class {
				t.Errorf("got the end %q of call %q, want %q of %q: %s", end.Class, end.Call, want.class, key, end.Text)
			}
			if !strings.HasPrefix(end.Evidence, "gateway: ") && want.class != "quota" {
				t.Errorf("got the evidence %q, want the gateway's", end.Evidence)
			}
			wants(t, "the record", p.Read(".abl/logs/calls/"+key+"/outcome.json"), `"class": "`+want.class+`"`, `"evidence": {`)
			if row := ledgerRows(p)[made+i]; row["outcome"] != want.class {
				t.Errorf("the ledger: got %v, want the outcome %q", row, want.class)
			}
			if i == last {
				wants(t, "the error", r.Stderr, want.says, "abl: hint: ")
				return
			}
			wants(t, "the end", end.Text, want.says)
			if waits[i].MS <= 0 || waits[i].Class != want.class {
				t.Errorf("got the wait %+v, want one of class %q", waits[i], want.class)
			}
			next := fmt.Sprintf(".abl/logs/calls/p1-build-1.%d/in/prompt.md", made+i+2)
			wants(t, "the prompt of the next call", p.Read(next), "that call was ended early: "+want.class)
		})
	}
}

// verdictsOf returns the iteration and the status of a project's first phase.
func verdictsOf(p *lab.Project) string {
	var status struct {
		Phases []struct {
			Iteration int    `json:"iteration"`
			Status    string `json:"status"`
		} `json:"phases"`
	}
	p.JSON(&status, "status", "--json")
	return fmt.Sprintf("%d %s", status.Phases[0].Iteration, strings.TrimSuffix(status.Phases[0].Status, "ed"))
}

// If a model is overloaded or its quota is used up, abl uses the next model of the chain, and the
// ledger names the model that did the work.
func TestModelsFallBack(t *testing.T) {
	lab.Long(t)
	p, model := troubledProject(t, "models: {builder: [big, small], verifier: big}\n",
		func(n int64, model string) modelserver.Trouble {
			if n == 1 {
				return modelserver.Daily
			}
			return ""
		})
	r := p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	var used []string
	for _, e := range of(all, state.CallStart) {
		used = append(used, e.Model)
	}
	if got := strings.Join(used, " "); got != "big small big" || len(of(all, state.Wait)) > 0 || model.Asked() != 3 {
		t.Errorf("got models %s, waits %v, %d requests, want big small big, none, 3", got, of(all, state.Wait), model.Asked())
	}
	rows := ledgerRows(p)
	if len(rows) != 3 || rows[0]["outcome"] != "quota" || rows[1]["model"] != "small" ||
		rows[1]["total"] != "10" || rows[2]["model"] != "big" {
		t.Errorf("the ledger: got %v, want quota of big, small with 10 tokens, and big", rows)
	}
	checkNothingLeft(p)
}

var untilPattern = regexp.MustCompile(`"until": "[^"]*"`)

// A killed run that was waiting continues the wait, and a signal ends a wait.
func TestWaitSurvivesKill(t *testing.T) {
	lab.Long(t)
	p, model := troubledProject(t, "loop: {call_timeout: 60s, outage_budget: 5m}\n", inOrder("429 60", "429 2"))
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		waited := 0
		r := watch(p, func(e state.Event, abl *os.Process) {
			if e.Kind == state.Wait {
				waited++
				if left := time.Until(e.Until); left > 2*time.Minute {
					t.Errorf("the wait: got one until %s, want 2 minutes or less", e.Until)
				}
				_ = abl.Signal(sig)
			}
		}, "phase", "1")
		if want := map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGINT: 130}[sig]; r.Code != want ||
			waited != 1 || model.Asked() != 1 {
			t.Fatalf("%v: got exit %d, %d waits, %d requests, want %d, 1, 1: %s",
				sig, r.Code, waited, model.Asked(), want, r.Stderr)
		}
		wants(t, "the state", p.Read(".abl/state.json"), `"outage": {`, `"tries": 1`)
	}
	checkNothingLeft(p)
	// The provider recovers earlier than it announced, and the user resets the time.
	past := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	p.Write(".abl/state.json", untilPattern.ReplaceAllString(p.Read(".abl/state.json"), `"until": "`+past+`"`))
	r := p.Must(0, "phase", "1", "--json")
	if waits := of(events(t, r), state.Wait); len(waits) != 1 || !strings.Contains(waits[0].Text, "call 2 in a row") {
		t.Errorf("waits: got %+v, want one, for call 2 in a row", waits)
	}
}
