package phase

import (
	"os"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The recipes of docs/agents.md for custom agents play the demo's first phase against a scripted model,
// with a key that only the gateway has.
func TestAgentsByRecipe(t *testing.T) {
	lab.Long(t)
	for _, name := range []string{"opencode", "qwen"} {
		t.Run(name, func(t *testing.T) {
			a := program{name, "vendor/model", "OPENROUTER_API_KEY", "", "/v1", "Authorization", false, ""}
			a.needed(t)
			turn(t)
			p := lab.Demo(t)
			plant(p)
			m := a.serve(t, p, "scenario.yaml", nil)
			const real = "https://openrouter.ai/api/v1"
			recipe := lab.File(t, name+".yaml")
			page, err := os.ReadFile("../../docs/agents.md")
			if err != nil || !strings.Contains(string(page), "```yaml\n"+recipe+"```\n") {
				t.Errorf("docs/agents.md does not contain the recipe %s, error %v", name, err)
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
			checkPlanted(t, p, m)
			a.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}
