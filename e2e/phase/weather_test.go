package phase

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/roles/agent"
)

// asks is a step of the scripted agent that asks its model once, and fails when
// that fails.
func asks() agent.Step {
	return must(0, `curl -sS -f -m 60 -H "x-goog-api-key: $GEMINI_API_KEY" -d '{"contents":[]}' "$GOOGLE_GEMINI_BASE_URL/v1beta/models/$ABL_MODEL:generateContent" | grep -q usageMetadata`)
}

// weatherKey is the key of a provider that is in trouble.
const weatherKey = "a-key-of-nobody-4715"

// troubled is a project whose scripted agent asks a provider in trouble once a
// call, before it writes anything, and the provider.
func troubled(t *testing.T, settings string, plan func(n int64, model string) modelserver.Trouble) (*lab.Project, *modelserver.Troubled) {
	t.Helper()
	v := verifies()
	v.Steps = append([]agent.Step{asks()}, v.Steps...)
	p := newProject(t, "", builds(write("half.txt", "begun\n"), asks(), write("server.mjs", server)), v)
	sections := nodeApp + "verify: {evidence: off}\nagents: {scripted: {scenario: .abl/scenario.yaml, provider: gemini}}\n" + settings
	config := scripted
	for section := range strings.Lines(sections) {
		config = replacing(config, section)
	}
	p.Write(".abl/config.yaml", config)
	well := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"candidates":[],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}`)
	}
	model := &modelserver.Troubled{Plan: plan, Then: http.HandlerFunc(well)}
	s := httptest.NewServer(model)
	t.Cleanup(s.Close)
	p.Env = append(p.Env, "GEMINI_API_KEY="+weatherKey, "GOOGLE_GEMINI_BASE_URL="+s.URL)
	return p, model
}

// first befalls the first n requests.
func first(n int64, all ...modelserver.Trouble) func(int64, string) modelserver.Trouble {
	return func(i int64, _ string) modelserver.Trouble {
		if i > n {
			return ""
		}
		return all[int(i-1)%len(all)]
	}
}

// Whatever a provider does, the end of the call is told for what it is, by the
// gateway's word; what passes is waited out, at no cost of an iteration, and what
// the call left stays. What does not pass ends the run with the code that says so.
func TestProvidersWeather(t *testing.T) {
	for _, c := range []struct {
		trouble  modelserver.Trouble
		settings string
		class    string
		exit     int // 0: it is waited out
		says     string
		long     bool // like another one before it
	}{
		{"429 1", "", "rate", 0, "the provider answers 429", true},
		{"429", "", "rate", 0, "the provider answers 429", true},
		{"500", "", "away", 0, "the provider answers 500", true},
		{"503", "", "away", 0, "the provider answers 503", true},
		{modelserver.Reset, "", "network", 0, "gives no answer", false}, // by the word of abl, which stands between it and the gateway here
		{modelserver.Half, "", "away", 0, "has no end", true},
		{modelserver.Garbled, "", "away", 0, "no answer of a model", true},
		{modelserver.Silence, ", idle_timeout: 3s", "away", 0, "did not answer its last request (stopped as idle)", true},
		{modelserver.Slow, "", "away", 0, "did not answer its last request", true},
		{modelserver.Daily, "", "quota", 75, "come back after", true},
		{"429 90000", "", "quota", 75, "come back after", true},
		{modelserver.Broke, "", "quota", 75, "wants somebody to pay, or to change something in its account: the provider answers 403: nobody has paid", true},
		{"401", "", "refused", 5, "GEMINI_API_KEY is refused", true},
		{modelserver.Forged, "", "refused", 5, "GEMINI_API_KEY is refused", true},
		{modelserver.TooLong, "", "large", 5, "the prompt is longer than the model takes", true},
	} {
		t.Run(string(c.trouble), func(t *testing.T) {
			if c.long {
				lab.Long(t)
			}
			timeout := "60s"
			if c.trouble == modelserver.Slow { // nothing else ends it
				timeout = "15s"
			}
			p, _ := troubled(t, "loop: {call_timeout: "+timeout+", outage_budget: 2m"+c.settings+"}\n", first(1, c.trouble))
			r := p.Must(c.exit, "phase", "1", "--json")
			all := events(t, r)
			end := of(all, state.CallEnd)[0]
			if end.Class != c.class || !strings.HasPrefix(end.Evidence, "gateway: ") && c.class != "quota" {
				t.Errorf("the call ended as %s by %q: %s", end.Class, end.Evidence, end.Text)
			}
			wants(t, "the record", p.Read(".abl/logs/calls/p1-build-1.1/outcome.json"), `"class": "`+c.class+`"`, `"evidence": {`)
			wants(t, "the history", p.Git("src", "ls-tree", "-r", "--name-only", "HEAD"), "half.txt")
			if c.exit != 0 {
				wants(t, "the error", r.Stderr, c.says, "abl: hint: ")
				p.Must(0, "phase", "1") // and goes on from there once the provider is well
			} else {
				wants(t, "the end", end.Text, c.says)
				if waits := of(all, state.Wait); len(waits) != 1 || waits[0].MS <= 0 || waits[0].Class != c.class {
					t.Errorf("waits %+v", waits)
				}
				wants(t, "what the next call is told", p.Read(".abl/logs/calls/p1-build-1.2/in/prompt.md"), "that call was ended early: "+c.class)
			}
			if got := verdictsOf(p); got != "1 pass" {
				t.Errorf("in iteration and verdict: %s", got)
			}
			lacks(t, "what abl said", r.Stdout+r.Stderr, weatherKey)
			noLeftovers(p)
		})
	}
}

// verdictsOf are the iterations that a project's first phase has behind it.
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

// A chain of models is gone through on too much load and on a quota that is used
// up, and who did the work is in the ledger.
func TestModelsFallBack(t *testing.T) {
	p, model := troubled(t, "models: {builder: [big, small], verifier: big}\n", func(n int64, model string) modelserver.Trouble {
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
		t.Errorf("models %s, waits %v, %d asked", got, of(all, state.Wait), model.Asked())
	}
	rows := ledgerRows(p)
	if len(rows) != 3 || rows[0]["outcome"] != "quota" || rows[1]["model"] != "small" || rows[1]["total"] != "10" || rows[2]["model"] != "big" {
		t.Errorf("ledger %v", rows)
	}
	noLeftovers(p)
}

var untilPattern = regexp.MustCompile(`"until": "[^"]*"`)

// Whoever is killed while it waits knows afterwards for how long it has waited, and
// whoever is told to stop stops.
func TestWaitingSurvives(t *testing.T) {
	lab.Long(t)
	p, model := troubled(t, "loop: {call_timeout: 60s, outage_budget: 5m}\n", first(2, "429 60", "429 2"))
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		waited := 0
		r := watch(p, func(e state.Event, abl *os.Process) {
			if e.Kind == state.Wait {
				waited++
				if left := time.Until(e.Until); left > 2*time.Minute {
					t.Errorf("it waits until %s", e.Until)
				}
				_ = abl.Signal(sig)
			}
		}, "phase", "1")
		if want := map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGINT: 130}[sig]; r.Code != want || waited != 1 || model.Asked() != 1 {
			t.Fatalf("%v: exit %d, %d waits, %d asked: %s", sig, r.Code, waited, model.Asked(), r.Stderr)
		}
		wants(t, "the state", p.Read(".abl/state.json"), `"outage": {`, `"tries": 1`)
	}
	noLeftovers(p)
	// The provider is well earlier than it said: a person who knows sets the time back to now.
	past := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	p.Write(".abl/state.json", untilPattern.ReplaceAllString(p.Read(".abl/state.json"), `"until": "`+past+`"`))
	r := p.Must(0, "phase", "1", "--json")
	if waits := of(events(t, r), state.Wait); len(waits) != 1 || !strings.Contains(waits[0].Text, "call 2 in a row") {
		t.Errorf("waits %+v", waits)
	}
}
