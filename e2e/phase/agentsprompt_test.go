package phase

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
)

// oddLines are lines that a CLI may treat as its own: commands, files to add, variables.
const oddLines = "/clear\n!ls\n#remember\n" +
	"@planted.txt and `id` $(id) ${HOME} <b>&amp;</b> user@example.com \\@x @/workspace/src/planted.txt 'quoted' " +
	"\U0001f600\n"

// heredoc looks like a substitution to Gemini's shell, as its prompt says, but to no other.
const heredoc = "cat > quoted.txt <<'EOF'\n$(id) `id`\nEOF"

// Each CLI sends its model the whole prompt of 200 KB, as one unchanged text of the user, and
// adds no file that the prompt names. Its shell refuses only what the prompt says.
func TestAgentsGetTheFullPrompt(t *testing.T) {
	lab.Long(t)
	for _, name := range []string{"gemini", "claude", "codex", "copilot"} {
		a := programs[name]
		t.Run(name, func(t *testing.T) {
			a.needed(t)
			p := newProject(t, nodeApp, builds(write("server.mjs", server)))
			p.Write("src/planted.txt", plantedWord)
			p.Write(".abl/project.md", oddLines+strings.Repeat("A line of the project's description, as long as others.\n", 200<<10/56)+oddLines)
			p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s}\n")+nodeApp)
			script := modelserver.Script{Turns: []modelserver.Turn{{
				Name: "run_shell_command",
				Args: map[string]any{"command": heredoc, "description": "quote"},
			}}}
			m := a.answers(t, p, &modelserver.Troubled{
				Plan: func(n int64, _ string) modelserver.Trouble {
					if n == 1 {
						return ""
					}
					return "401" // ends every CLI soon
				},
				Then: &modelserver.Server{Source: func(string) (modelserver.Script, error) { return script, nil }, Log: io.Discard},
			})
			p.Must(5, "phase", "1", "--agent", a.name)
			prompt := promptOf(p, "p1-build-1.1")
			refuses := strings.Contains(prompt, "in the body of a heredoc too")
			if refuses != (name == "gemini") || refuses == p.Exists("src/quoted.txt") {
				t.Errorf("the shell refuses a heredoc: got %t in the prompt and file written %t, want %t and %t",
					refuses, p.Exists("src/quoted.txt"), name == "gemini", name != "gemini")
			}
			if len(m.bodies) < 2 || len(prompt) < 200<<10 {
				t.Fatalf("got %d requests and a prompt of %d bytes, want 2 or more and %d or more",
					len(m.bodies), len(prompt), 200<<10)
			}
			for _, body := range m.bodies {
				var request any
				if err := json.Unmarshal(body, &request); err != nil {
					t.Fatal(err)
				}
				if got := holders(request, "", strings.TrimSpace(prompt)); got != "user" {
					t.Errorf("got the prompt in texts of %q, want one of the user: %.2000s", got, body)
				}
				lacks(t, "the request to the model", string(body), plantedWord)
			}
			checkNothingLeft(p)
		})
	}
}

// abl refuses a prompt that the agent's CLI would truncate, before it starts anything.
func TestPromptIsRefusedBeforeTheCall(t *testing.T) {
	a := programs["gemini"]
	p := newProject(t, nodeApp, builds(), verifies())
	p.Write(".abl/project.md", strings.Repeat("A line of the project's description, as long as others.\n", 8<<20/56))
	m := a.serve(t, p, ".abl/scenario.yaml", nil)
	for _, how := range []string{"--dry-run", "--json"} {
		r := p.Must(2, "phase", "1", "--agent", a.name, how)
		wants(t, how, r.Stderr, "the prompt is longer than the agent's program accepts", "gemini accepts at most 8388608")
		if starts := of(events(t, r), state.CallStart); len(starts) > 0 || m.asked.Load() > 0 {
			t.Errorf("%s: got %d requests, calls %+v, want none", how, m.asked.Load(), starts)
		}
	}
	checkNothingLeft(p)
}

// holders returns the roles of all texts in a request that contain the whole text.
func holders(v any, role, text string) string {
	var all []string
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			all = append(all, holders(one, role, text))
		}
	case map[string]any:
		if r, ok := v["role"].(string); ok {
			role = r
		}
		for _, one := range v {
			all = append(all, holders(one, role, text))
		}
	case string:
		if strings.Contains(v, text) {
			return role
		}
	}
	return strings.TrimSpace(strings.Join(all, " "))
}
