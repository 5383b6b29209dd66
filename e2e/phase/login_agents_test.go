package phase

import (
	"net/http"
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/internal/usage"
	"abl/roles/agent"
)

// login is one of a CLI's logins, with the provider's requirements for a request.
type login struct {
	program
	name     string
	settings string   // lines of agents.NAME
	env      []string // in addition to the key and the address
	paths    []string
	cost     string // of a call
}

// Each login of a real CLI plays a whole phase. The key is only in the header that the provider
// requires, the path has the provider's prefix, and the request has the fixed headers and
// parameters of the settings. In the container only the variable of that login has a placeholder.
func TestAgentsLogIn(t *testing.T) {
	lab.Long(t)
	const messages = "/v1/messages"
	claude := func(keyVar, baseVar, path, header string) program {
		return program{"claude", "claude-sonnet-5-5", keyVar, baseVar, path, header, true, ""}
	}
	for _, c := range []login{
		{
			claude("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "/api", "Authorization"),
			"token",
			"",
			nil,
			[]string{"/api" + messages},
			"0.",
		},
		{
			claude("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL", "", "Authorization"),
			"plan",
			"login: plan",
			nil,
			[]string{messages},
			"subscription",
		},
		{
			claude("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "/anthropic", "Authorization"), "mantle", "",
			[]string{"AWS_REGION=us-east-1"}, []string{"/anthropic" + messages}, "0.",
		},
		{
			claude("ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_BASE_URL", "/anthropic", "X-Api-Key"),
			"foundry",
			"",
			nil,
			[]string{"/anthropic" + messages},
			"0.",
		},
		{
			program{"codex", "gpt-6.1-sol", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "", "Api-Key", false, ""}, "azure",
			"headers: {X-Gateway-Key: $TEAM_KEY}, query: {api-version: 2026-01-01}", nil, []string{"/openai/v1/responses"}, "0.",
		},
		{
			program{
				"copilot",
				"gpt-5.1",
				"COPILOT_PROVIDER_BEARER_TOKEN",
				"COPILOT_PROVIDER_BASE_URL",
				"",
				"Authorization",
				false,
				"",
			}, "copilot's azure", "",
			[]string{"COPILOT_PROVIDER_TYPE=azure"}, []string{"/openai/v1/responses"}, "0.",
		},
		{
			program{
				"copilot",
				"claude-sonnet-5-5",
				"COPILOT_PROVIDER_API_KEY",
				"COPILOT_PROVIDER_BASE_URL",
				"",
				"X-Api-Key",
				true,
				"",
			}, "copilot's anthropic", "",
			[]string{"COPILOT_PROVIDER_TYPE=anthropic"}, []string{messages}, "0.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.needed(t)
			n := int64(100)
			b, v := builds(write("server.mjs", server), run("env > env.txt")), verifies()
			b.Usage = []agent.ScriptUsage{{Model: c.model, Count: usage.Count{Input: &n, Candidates: &n, Total: &n}}}
			v.Usage = b.Usage
			p := newProject(t, "", b, v)
			p.Write(".abl/config.yaml", replacing(replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s}\n"),
				"agents: {"+c.program.name+": {"+c.settings+"}}\n")+nodeApp+"models: "+c.model+"\n")
			p.Write(".env", "TEAM_KEY=a-key-of-a-team-1234\n")
			p.Env = append(p.Env, c.env...)
			m := c.serve(t, p, ".abl/scenario.yaml", nil)
			r := p.Must(0, "phase", "1", "--agent", c.program.name)
			if m.asked.Load() == 0 {
				t.Fatalf("requests to the provider: got none, want one or more: %s", r.Stderr)
			}
			c.sees(t, m)
			rows := ledgerRows(p)
			for _, row := range rows {
				if !strings.HasPrefix(row["cost_usd"], c.cost) {
					t.Errorf("got the cost %q, want %s…", row["cost_usd"], c.cost)
				}
			}
			container := p.Read("src/env.txt")
			lacks(t, "the container's environment", container, c.key())
			lacks(t, "the container's environment", container, "a-key-of-a-team")
			for _, a := range []string{"claude", "codex", "copilot"} {
				one, err := agent.Find(a)
				if err != nil {
					t.Fatal(err)
				}
				for _, other := range one.Logins {
					if other.KeyVar != c.keyVar && strings.Contains("\n"+container, "\n"+other.KeyVar+"=") {
						t.Errorf("key variables in the container: got %s, want only %s", other.KeyVar, c.keyVar)
					}
				}
			}
			c.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}

// sees compares every request that the provider got with the provider's documentation.
func (c login) sees(t *testing.T, m *askedModel) {
	t.Helper()
	for _, q := range m.requests() {
		if q.URL.Path != c.paths[0] {
			t.Errorf("got a request for %s, want %s", q.URL.Path, c.paths[0])
		}
		for _, other := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			if value := q.Header.Get(other); other != c.header && value != "" {
				t.Errorf("key headers of the request: got %s, want only %s", other, c.header)
			}
		}
		if strings.Contains(c.settings, "X-Gateway-Key") {
			if got := q.Header.Get("X-Gateway-Key") + " " +
				q.URL.Query().Get("api-version"); got != "a-key-of-a-team-1234 2026-01-01" {
				t.Errorf("the fixed header and parameter: got %q, want those of the settings", got)
			}
		}
	}
}

// requests returns all requests that the provider got.
func (m *askedModel) requests() []*http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*http.Request(nil), m.seen...)
}
