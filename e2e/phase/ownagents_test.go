package phase

import (
	"os"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/usage"
	"abl/roles/agent"
)

// The recipes of docs/agents.md for custom agents play the demo's first phase against a scripted model,
// with a key that only the gateway has.
func TestAgentsByRecipe(t *testing.T) {
	lab.Long(t)
	for _, name := range []string{"opencode", "qwen", "kimi", "pi", "cline", "gemini-acp"} {
		t.Run(name, func(t *testing.T) {
			a := program{name, "vendor/model", "OPENROUTER_API_KEY", "", "/v1", "Authorization", false, ""}
			real := "https://openrouter.ai/api/v1"
			if name == "gemini-acp" {
				a.model, a.keyVar, a.path, a.header = "gemini-3.8-flash", "GEMINI_API_KEY", "", "X-Goog-Api-Key"
				real = "https://generativelanguage.googleapis.com"
			}
			a.needed(t)
			turn(t)
			p := lab.Demo(t)
			plant(p)
			m := a.serve(t, p, "scenario.yaml", nil)
			recipe := lab.File(t, name+".yaml")
			page, err := os.ReadFile("../../docs/agents.md")
			if err != nil || !strings.Contains(string(page), "```yaml\n"+recipe+"```\n") {
				t.Errorf("docs/agents.md: got no recipe %s, error %v, want one", name, err)
			}
			address := strings.TrimPrefix(p.Env[len(p.Env)-1], "=")
			conf, rest, _ := strings.Cut(p.Read(".abl/config.yaml"), "agents:\n")
			p.Write(".abl/config.yaml", conf+strings.Replace(recipe, real, address, 1)+rest)
			r := p.Run("phase", "1", "--agent", name, "--json")
			if r.Code != 0 {
				t.Fatalf("got exit %d, want 0: %s\n%s\n%s\n%s", r.Code, r.Stderr,
					p.Read(".abl/logs/calls/p1-build-1.1/stdout"), p.Read(".abl/logs/calls/p1-build-1.1/stderr"), m.log.String())
			}
			all := events(t, r)
			if got := verdicts(all); got != "fail pass" {
				t.Errorf("got verdicts %q, want %q", got, "fail pass")
			}
			if n := len(of(all, state.Action)); n < 20 {
				t.Errorf("got %d actions, want 20 or more", n)
			}
			for _, e := range of(all, state.CallEnd) {
				if e.Text != "" {
					t.Errorf("got the end of a call with the text %q, want none", e.Text)
				}
			}
			for _, row := range ledgerRows(p) {
				if row["agent"] != name || row["source"] != "gateway" || row["total"] == "" || row["outcome"] != "done" {
					t.Errorf("got row %v, want one of the gateway with the outcome done", row)
				}
			}
			// They have no setting that keeps them from a workspace's AGENTS.md, as docs/agents.md says.
			if name != "kimi" && name != "cline" {
				checkPlanted(t, p, m)
			}
			a.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}

// opencode uses its model by each API in docs/agents.md.
func TestAgentsByAPI(t *testing.T) {
	lab.Long(t)
	for _, c := range []struct{ api, npm, address, path, header string }{
		{"openai-responses", "@ai-sdk/openai", "{env:ABL_BASE_URL}", "/v1", "Authorization"},
		{"anthropic", "@ai-sdk/anthropic", "{env:ABL_BASE_URL}/v1", "", "X-Api-Key"},
	} {
		t.Run(c.api, func(t *testing.T) {
			a := program{"opencode", "vendor/model", "OPENROUTER_API_KEY", "", c.path, c.header, false, ""}
			a.needed(t)
			n := int64(100)
			b, v := builds(write("server.mjs", server), run("env > env.txt")), verifies()
			b.Usage = []agent.ScriptUsage{{Model: a.model, Count: usage.Count{Input: &n, Candidates: &n, Total: &n}}}
			v.Usage = b.Usage
			p := newProject(t, "", b, v)
			a.serve(t, p, ".abl/scenario.yaml", nil)
			page, err := os.ReadFile("../../docs/agents.md")
			if row := "| `" + c.api + "` | `" + c.npm + "` | `" + c.address + "` |"; err != nil || !strings.Contains(string(page), row) {
				t.Errorf("docs/agents.md: got no row %s, error %v, want one", row, err)
			}
			recipe := strings.NewReplacer(
				"https://openrouter.ai/api/v1", strings.TrimPrefix(p.Env[len(p.Env)-1], "="), "openai-chat", c.api,
				"@ai-sdk/openai-compatible", c.npm, "{env:ABL_BASE_URL}", c.address,
			).Replace(lab.File(t, "opencode.yaml"))
			patient := replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s}\n")
			p.Write(".abl/config.yaml", strings.Replace(patient, "agents: {scripted: {scenario: .abl/scenario.yaml}}\n", recipe, 1)+nodeApp)
			r := p.Must(0, "phase", "1", "--agent", "opencode")
			counted := map[string]bool{} // the request for a title reports no tokens, which is a row with the source none
			for _, row := range ledgerRows(p) {
				counted[row["role"]] = counted[row["role"]] || row["source"] == "gateway"
				if row["outcome"] != "done" {
					t.Errorf("row of the ledger: got %v, want outcome done", row)
				}
			}
			if !counted["builder"] || !counted["verifier"] {
				t.Errorf("roles with tokens by the gateway: got %v, want both", counted)
			}
			lacks(t, "the container's environment", p.Read("src/env.txt"), a.key())
			a.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}
