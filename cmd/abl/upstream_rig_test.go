package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/gateway"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/play"
	"abl/internal/testing/sandboxtest"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
	"abl/roles/environment"
)

// providersKey must be in no record.
const providersKey = "a-key-of-nobody-4716"

// upstreamPhase is a phase whose Builder sends requests to a provider through the real gateway, in one
// process. The engine is in memory, and waits take no time.
type upstreamPhase struct {
	*play.Plant
	vars    agent.Provider
	api     wireAPI
	asks    int           // number of requests before the Builder gives up
	setup   gateway.Setup // of each call's gateway; changed only between calls
	between func()        // runs once instead of the first wait
	clock   time.Time     // of the loop; only waits advance it

	mu     sync.Mutex
	places map[string]string // address of each gateway, by call
	stops  map[string]func() // by container
	waits  []time.Duration
	events []state.Event
}

func newUpstreamPhase(t *testing.T, api wireAPI, upstream string) *upstreamPhase {
	c := &upstreamPhase{Plant: play.NewPlant(t), api: api, asks: 1, clock: time.Now(), places: map[string]string{}, stops: map[string]func(){}}
	c.Easy = true
	c.vars = agent.Provider{API: api.name, KeyVar: api.keyVar, BaseVar: api.baseVar}
	c.setup.Providers = []gateway.Provider{{Name: api.name, Upstream: upstream, Key: providersKey}}
	c.Engine.Scripts = map[string]sandboxtest.Script{"gateway": c.gateway, "": c.play}
	c.Engine.Stopped = func(b sandbox.ContainerConfig) {
		c.mu.Lock()
		stop := c.stops[b.Name]
		c.mu.Unlock()
		if stop != nil {
			stop()
		}
	}
	return c
}

// run runs the phase like abl phase 1, without waiting.
func (c *upstreamPhase) run() (state.Phase, error) {
	return play.Phase{
		Root: c.Dir, Engine: c.Engine, Change: c.change,
		Out: state.Func(func(e state.Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.events = append(c.events, e)
		}),
		Outages: orchestrator.Outages{Budget: 4 * time.Hour, Models: map[string]int{"builder": 1, "verifier": 1}, Sleep: func(_ context.Context, d time.Duration, _ time.Time) error {
			c.waits, c.clock = append(c.waits, d), c.clock.Add(d)
			c.clears()
			return nil
		}, Now: func() time.Time { return c.clock }},
	}.Play(c.Context())
}

// clears ends a fault that is not the server's.
func (c *upstreamPhase) clears() {
	if c.between != nil {
		c.between()
		c.between = nil
	}
}

// change puts a gateway between the Builder and its provider.
func (c *upstreamPhase) change(role roles.Role, containers *boundary.Containers, p *orchestrator.Player) {
	if role.Name != roles.Builder.Name {
		return
	}
	p.Agent = asker(c.vars)
	p.Gate = &environment.Gate{
		Containers: containers, Project: state.NewProject(c.Dir, "src", ".abl/tests"), Sidecar: "gateway", Setup: c.setup,
		Access: environment.Access{Place: role.Name, Agent: agent.Agent{Provider: c.vars}, Budget: func(string) (gateway.Budget, error) { return gateway.Budget{}, nil }},
	}
	containers.Gated[role.Name] = true
}

// asker is an agent that reports failure only by its exit code.
func asker(p agent.Provider) agent.Agent {
	a := agent.Program("scripted", agent.Command{Argv: []string{"/bin/true"}})
	a.Provider = p
	return a
}

// play sends requests to the provider before the Builder's work, and fails if one fails.
func (c *upstreamPhase) play(b sandbox.ContainerConfig) sandbox.Exit {
	if b.Labels[sandbox.LabelKind] != "role" || b.Labels[sandbox.LabelRole] != roles.Builder.Name {
		return c.Play(b)
	}
	play.Add(b, helper.Src+"/half.txt", "begun\n")
	for range c.asks {
		if c.ask(b) {
			return c.Builds(b)
		}
	}
	return sandbox.Exit{Code: 1}
}

// ask sends one request like the agent in a container, and reports whether a model responded.
func (c *upstreamPhase) ask(b sandbox.ContainerConfig) bool {
	env := map[string]string{}
	for _, line := range b.Env {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	c.mu.Lock()
	place := c.places[b.Labels[sandbox.LabelCall]]
	c.mu.Unlock()
	base := strings.Replace(env[c.vars.BaseVar], "gateway:8080", place, 1)
	q, err := http.NewRequestWithContext(c.Context(), http.MethodPost, base+c.api.path, strings.NewReader(c.api.body))
	if err != nil {
		return false
	}
	q.Header.Set(c.api.header, c.api.scheme+env[c.vars.KeyVar])
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && bytes.Contains(text, []byte("WELL"))
}

// gateway runs the real gateway in a container.
func (c *upstreamPhase) gateway(b sandbox.ContainerConfig) sandbox.Exit {
	ctx, stop := context.WithCancel(c.Context())
	in, feed := io.Pipe()
	done := make(chan struct{})
	c.mu.Lock()
	c.stops[b.Name] = func() { stop(); <-done }
	c.mu.Unlock()
	go func() {
		defer feed.Close()
		for {
			select {
			case line := <-c.Engine.Fed(b.Name):
				line = bytes.Replace(line, []byte(`"listen":":8080"`), []byte(`"listen":"127.0.0.1:0"`), 1)
				if _, err := feed.Write(line); err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err := gateway.Process{In: in, Out: said{c, b}}.Run(ctx)
	close(done)
	if err != nil {
		c.Errorf("the gateway: %v", err)
	}
	return sandbox.Exit{}
}

// said is the standard output of a gateway.
type said struct {
	*upstreamPhase
	container sandbox.ContainerConfig
}

func (s said) Write(line []byte) (int, error) {
	var e gateway.Entry
	if json.Unmarshal(line, &e) == nil && e.Kind == gateway.Ready {
		s.mu.Lock()
		s.places[s.container.Labels[sandbox.LabelCall]] = e.Listen
		s.mu.Unlock()
	}
	s.Engine.Print(s.container.Name, string(line))
	return len(line), nil
}

// wireAPI has a valid request and a good response of an API.
type wireAPI struct{ name, keyVar, baseVar, path, body, header, scheme, well string }

var (
	geminiAPI = wireAPI{
		"gemini", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/m:generateContent", `{"contents":[]}`, "X-Goog-Api-Key", "",
		`{"candidates":[{"content":{"parts":[{"text":"WELL"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}`,
	}
	anthropicAPI = wireAPI{
		"anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "/v1/messages", `{"model":"m","max_tokens":5,"messages":[]}`, "X-Api-Key", "",
		`{"type":"message","content":[{"text":"WELL"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3}}`,
	}
	responsesAPI = wireAPI{
		"openai-responses", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1/responses", `{"model":"m","input":[]}`, "Authorization", "Bearer ",
		`{"status":"completed","output":[{"text":"WELL"}],"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}`,
	}
	chatAPI = wireAPI{
		"openai-chat", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", "/v1/chat/completions", `{"model":"m","messages":[]}`, "Authorization", "Bearer ",
		`{"choices":[{"message":{"content":"WELL"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`,
	}
)

// provider is a server whose first requests fail.
func provider(api wireAPI, requests int64, trouble http.HandlerFunc) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read to its end, so that the server notices when a client disconnects.
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) <= requests {
			trouble(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, api.well)
	})
}

// kept returns a file of a call's record.
func (c *upstreamPhase) kept(key, name string) string {
	return filepath.Join(c.Dir, ".abl/logs/calls", key, name)
}
