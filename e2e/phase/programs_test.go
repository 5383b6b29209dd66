package phase

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/roles/agent"
)

// mustAgents asks for the tests of the rarer programs, whose images are a gigabyte.
const mustAgents = "ABL_TEST_AGENTS"

// program is a coding CLI as the tests play it.
type program struct {
	name, model     string
	keyVar, baseVar string
	path            string // of its API, below the address that it is given
	header          string // in which the key comes
	joined          bool   // its API counts thoughts with the answer
	effort          string // in a request with the effort high
}

var programs = map[string]program{
	"gemini":  {"gemini", "gemini-2.5-pro", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "", "X-Goog-Api-Key", false, `"thinkingBudget":16384`},
	"claude":  {"claude", "claude-sonnet-4-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", "X-Api-Key", true, `"budget_tokens":31999`},
	"codex":   {"codex", "gpt-6.1-sol", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", "Authorization", false, `"effort":"high"`},
	"copilot": {"copilot", "gpt-5.1", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", "/v1", "Authorization", false, `"effort":"high"`},
}

// rarePrograms are those whose images are not made for every test.
func rarePrograms() []program {
	return []program{programs["claude"], programs["codex"], programs["copilot"]}
}

func (a program) key() string { return "a-key-of-nobody-" + a.name }

// needed leaves a test out unless somebody asked for the image that it needs.
func (a program) needed(t *testing.T) {
	t.Helper()
	lab.Engine(t)
	if os.Getenv(mustAgents) == "" {
		t.Skip("make test-agents makes its image and runs it")
	}
}

// hidden wants the key of a program nowhere but in the gateway.
func (a program) hidden(t *testing.T, p *lab.Project, r lab.Result) {
	t.Helper()
	if files := holding(t, p.Dir, a.key()); len(files) > 0 {
		t.Errorf("the key is in %v", files)
	}
	lacks(t, "what abl printed", r.Stdout+r.Stderr, a.key())
}

// askedModel is a scripted model on this machine's loopback.
type askedModel struct {
	log   *bytes.Buffer
	asked atomic.Int64

	mu     sync.Mutex
	bodies [][]byte // of all requests
	seen   []*http.Request
	told   [][]byte // those before any tool was used
}

// serve starts a model that plays a scenario, but for the troubles of plan, and
// tells the project where it is.
func (a program) serve(t *testing.T, p *lab.Project, file string, plan func(n int64, model string) modelserver.Trouble) *askedModel {
	t.Helper()
	script, err := agent.Parse(file, []byte(p.Read(file)))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range script.Calls {
		if script.Calls[i], err = c.Resolve(p.Dir); err != nil {
			t.Fatal(err)
		}
	}
	log := &bytes.Buffer{}
	places := modelserver.Places{Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests}, AppURL: "http://app:3000"}
	var model http.Handler = &modelserver.Server{Source: modelserver.Scenario(script, places, time.Now), Log: log}
	if plan != nil {
		model = &modelserver.Troubled{Plan: plan, Then: model}
	}
	m := a.answers(t, p, model)
	m.log = log
	return m
}

// answers lets a model on this machine's loopback answer the program.
func (a program) answers(t *testing.T, p *lab.Project, model http.Handler) *askedModel {
	t.Helper()
	m := &askedModel{log: &bytes.Buffer{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimPrefix(r.Header.Get(a.header), "Bearer ") != a.key() {
			t.Errorf("%s came with %s %q", r.URL.Path, a.header, r.Header.Get(a.header))
		}
		m.asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		m.note(body)
		m.mu.Lock()
		m.seen = append(m.seen, r)
		m.mu.Unlock()
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.Env = append(p.Env, a.keyVar+"="+a.key(), a.baseVar+"="+s.URL+a.path)
	return m
}

// note keeps what a model is told, and apart what it is told before any tool has
// shown it the workspace: in the second iteration, when the files of the first are there.
func (m *askedModel) note(body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, body)
	if !bytes.Contains(body, []byte("iteration 2 attempt")) {
		return
	}
	for _, shown := range []string{`"type":"tool_result"`, `"type":"function_call_output"`, `"type":"custom_tool_call_output"`, `"role":"tool"`} {
		if bytes.Contains(body, []byte(shown)) {
			return
		}
	}
	m.told = append(m.told, body)
}

// heard is what stands around the first of these words that a model was told, ""
// where it was told none.
func (m *askedModel) heard(words ...string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.told {
		for _, w := range words {
			if at := bytes.Index(body, []byte(w)); at >= 0 {
				return string(body[max(0, at-300):min(len(body), at+100)])
			}
		}
	}
	return ""
}
