package phase

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
)

// The user's own agent plays the Builder. The ledger has the token counts of the usage line that
// it prints.
func TestCustomAgent(t *testing.T) {
	p := newProject(t, nodeApp, verifies())
	const agents = "agent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n"
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), agents, lab.File(t, "own-agent.yaml"), 1))
	r := p.Must(0, "phase", "1", "--json")
	if got, want := verdicts(events(t, r)), "pass"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	row := ledgerRows(p)[0]
	for column, want := range map[string]string{
		"agent":      "mine",
		"model":      "my-model",
		"input":      "120",
		"candidates": "30",
		"total":      "150",
		"source":     "cli",
	} {
		if row[column] != want {
			t.Errorf("%s of the ledger: got %q, want %q", column, row[column], want)
		}
	}
	checkNothingLeft(p)
}

// A custom agent that exits with 0 but did not run the tool that its model called, or got no
// response, has not done its task. Its container has the gateway's address and a token, but no
// key.
func TestCustomAgentThatDidNothing(t *testing.T) {
	lab.Long(t)
	for _, c := range []struct{ name, asks, reason string }{
		{"open call", lab.File(t, "asks-once.sh"),
			"the agent ended without running the tool that the model's last response calls"},
		{"no response", "env > env.txt; exit 0\n", "the agent ended without a successful response of its model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProject(t, nodeApp, builds(run("true")), verifies())
			a := program{"mine", "my-model", "MY_KEY", "", "/v1", "Authorization", false, ""}
			m := a.serve(t, p, ".abl/scenario.yaml", nil)
			address := strings.TrimPrefix(p.Env[len(p.Env)-1], "=")
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "agents: {",
				"agents: {mine: {api: openai-chat, key: MY_KEY, base: \""+address+"\", model: my-model, command: sh asks.sh}, ", 1))
			p.Write("src/asks.sh", c.asks)
			r := p.Run("phase", "1", "--builder-agent", "mine", "--json")
			if r.Code == 0 || !strings.Contains(r.Stderr, c.reason) {
				t.Errorf("got exit code %d, want another than 0 and %q: %s\n%s", r.Code, c.reason, r.Stderr, m.log.String())
			}
			rows := ledgerRows(p)
			if len(rows) == 0 || rows[0]["outcome"] != "nothing" || rows[0]["source"] != "gateway" {
				t.Errorf("got the rows %v, want the outcome nothing from the gateway first", rows)
			}
			container := p.Read("src/env.txt")
			wants(t, "the container's environment", container, "ABL_BASE_URL=http://gateway:8080/", "/openai-chat/v1\n", "ABL_TOKEN=")
			lacks(t, "the container's environment", container, a.key())
			a.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}

// While a call runs, key_command prints another key, and the gateway uses it before the provider refuses
// the first one. The agent notices nothing.
func TestKeyIsRenewedDuringACall(t *testing.T) {
	lab.Long(t)
	const first, second = "a-first-key-of-nobody", "a-second-key-of-nobody"
	p := newProject(t, nodeApp, call("builder", 0), verifies())
	scripted, err := modelserver.Open(filepath.Join(p.Dir, ".abl/scenario.yaml"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	keys := &lab.Project{TB: t, Dir: t.TempDir()}
	keys.Write("key", first)
	var seen []string // the agent sends one request at a time
	s := lab.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		seen = append(seen, key)
		switch {
		case len(seen) == 1:
			keys.Write("key", second)
			// If the command has run twice since, the gateway has the key of the first of the two runs.
			runs := len(keys.Read("runs"))
			for end := time.Now().Add(time.Minute); len(keys.Read("runs")) < runs+2*len("run\n") && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond)
			}
		case key == first:
			modelserver.Trouble("401").ServeHTTP(w, r)
			return
		}
		scripted.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	agents := strings.NewReplacer("BASE", s.URL+"/v1", "KEYS", keys.Dir).Replace(lab.File(t, "renews-its-key.yaml"))
	const was = "agent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n"
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), was, agents, 1))
	p.Write("src/asks.sh", lab.File(t, "asks-once.sh"))
	p.Write("src/server.mjs", server)
	r := p.Must(0, "phase", "1", "--json")
	if got, want := strings.Join(seen, " "), first+" "+second; got != want {
		t.Errorf("got requests with the keys %q, want %q", got, want)
	}
	wants(t, "the gateway's log", p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl"), `"kind":"command"`, `"reason":"key"`)
	for _, key := range []string{first, second} {
		if files := holding(t, p.Dir, key); len(files) > 0 {
			t.Errorf("got the key %s in %v, want no file", key, files)
		}
		lacks(t, "abl's output", r.Stdout+r.Stderr, key)
	}
	checkNothingLeft(p)
}
