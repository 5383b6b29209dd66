package phase

import (
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// The real Gemini CLI meets the six commonest troubles of its provider. Its exit
// codes and its own long retries decide nothing: what passed the gateway does.
func TestGeminiMeetsTrouble(t *testing.T) {
	lab.Long(t)
	always := func(t modelserver.Trouble) func(int64, string) modelserver.Trouble {
		return func(int64, string) modelserver.Trouble { return t }
	}
	for _, c := range []struct {
		name  string
		plan  func(int64, string) modelserver.Trouble
		loop  string
		exit  int
		class string
		soak  bool // it takes as long as the CLI's own retries
	}{
		{"the key is refused", always("401"), "", 5, "refused", false},
		{"the key is refused as a bad request", always(modelserver.Forged), "", 5, "refused", true},
		{"a limit of the rate", always("429 90000"), "", 75, "rate", true},
		{"a storm of errors", always("500"), ", outage_budget: 0s", 75, "away", true},
		{"silence", always(modelserver.Silence), ", idle_timeout: 20s, outage_budget: 0s", 75, "away", true},
		{"a hiccup, which it gets over itself", first(2, "503"), "", 0, "done", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak && os.Getenv("ABL_SOAK") == "" {
				t.Skip("as long as the CLI's own retries: only with ABL_SOAK")
			}
			n := int64(100)
			used := []agent.ScriptUsage{{Model: "gemini-2.5-pro", Count: tokens.Count{Input: &n, Candidates: &n, Total: &n}}}
			b, v := builds(write("server.mjs", server)), verifies()
			b.Usage, v.Usage = used, used
			p := newProject(t, "", b, v)
			p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m"+c.loop+"}\n")+nodeApp)
			troubledModel(t, p, c.plan)
			r := p.Must(c.exit, "phase", "1", "--agent", "gemini", "--json")
			end := of(events(t, r), state.CallEnd)[0]
			if end.Class != c.class || c.exit != 0 && !strings.HasPrefix(end.Evidence, "gateway: ") {
				t.Errorf("the call ended as %s by %q", end.Class, end.Evidence)
			}
			if c.exit == 5 {
				wants(t, "the error", r.Stderr, "GEMINI_API_KEY is refused")
			}
			t.Logf("%s: %s after %v", c.name, end.Evidence, time.Duration(end.MS)*time.Millisecond)
			noLeftovers(p)
		})
	}
}

// troubledModel serves the project's scenario on this machine's loopback, in trouble.
func troubledModel(t *testing.T, p *lab.Project, plan func(int64, string) modelserver.Trouble) {
	t.Helper()
	script, err := agent.Parse(".abl/scenario.yaml", []byte(p.Read(".abl/scenario.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	places := modelserver.Places{Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests}, AppURL: "http://app:3000"}
	model := &modelserver.Troubled{Plan: plan, Then: &modelserver.Server{Source: modelserver.Scenario(script, places, time.Now), Log: io.Discard}}
	s := httptest.NewServer(model)
	t.Cleanup(s.Close)
	p.Env = append(p.Env, "GEMINI_API_KEY="+weatherKey, "GOOGLE_GEMINI_BASE_URL="+s.URL)
}
