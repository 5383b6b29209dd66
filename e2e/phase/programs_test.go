package phase

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
)

// mustAgents enables the tests of the rarer programs, whose images have a gigabyte.
const mustAgents = "ABL_TEST_AGENTS"

// program is a coding CLI in the tests.
type program struct {
	name, model     string
	keyVar, baseVar string
	path            string // of its API, below the configured address
	header          string // with the key
	joined          bool   // its API counts thoughts with the output
	effort          string // of a request with the effort high
}

var programs = map[string]program{
	"gemini": {
		"gemini",
		"gemini-3.8-flash",
		"GEMINI_API_KEY",
		"GOOGLE_GEMINI_BASE_URL",
		"",
		"X-Goog-Api-Key",
		false,
		`"thinkingLevel":"HIGH"`,
	},
	"claude": {
		"claude",
		"claude-sonnet-5-5",
		"ANTHROPIC_API_KEY",
		"ANTHROPIC_BASE_URL",
		"",
		"X-Api-Key",
		true,
		`"effort":"high"`,
	},
	"codex": {
		"codex",
		"gpt-6.2-sol",
		"OPENAI_API_KEY",
		"OPENAI_BASE_URL",
		"/v1",
		"Authorization",
		false,
		`"effort":"high"`,
	},
	"copilot": {
		"copilot",
		"gpt-6.1-sol",
		"COPILOT_PROVIDER_API_KEY",
		"COPILOT_PROVIDER_BASE_URL",
		"/v1",
		"Authorization",
		false,
		`"effort":"high"`,
	},
}

// rarePrograms lists the programs whose images are not built for every test.
func rarePrograms() []program {
	return []program{programs["claude"], programs["codex"], programs["copilot"]}
}

func (a program) key() string { return "a-key-of-nobody-" + a.name }

// needed skips a test unless its image was requested.
func (a program) needed(t *testing.T) {
	t.Helper()
	lab.Engine(t)
	if os.Getenv(mustAgents) == "" {
		t.Skip("make test-agents builds its image and runs it")
	}
}

// checkKeyHidden checks that only the gateway has the key of a program.
func (a program) checkKeyHidden(t *testing.T, p *lab.Project, r lab.Result) {
	t.Helper()
	if files := holding(t, p.Dir, a.key()); len(files) > 0 {
		t.Errorf("got the key in %v, want no file", files)
	}
	lacks(t, "abl's output", r.Stdout+r.Stderr, a.key())
}

// askedModel is a scripted model on this machine's loopback.
type askedModel struct {
	log   *bytes.Buffer
	asked atomic.Int64

	mu     sync.Mutex
	bodies [][]byte // of all requests
	seen   []*http.Request
	first  [][]byte // those before the first use of a tool
}

// serve starts a model that plays a scenario with the troubles of plan, and writes its address to
// the project.
func (a program) serve(
	t *testing.T, p *lab.Project, file string, plan func(n int64, model string) modelserver.Trouble,
) *askedModel {
	t.Helper()
	log := &bytes.Buffer{}
	scripted, err := modelserver.Open(filepath.Join(p.Dir, file), log)
	if err != nil {
		t.Fatal(err)
	}
	var model http.Handler = scripted
	if plan != nil {
		model = &modelserver.Troubled{Plan: plan, Then: model}
	}
	m := a.answers(t, p, model)
	m.log = log
	return m
}

// answers serves the model on this machine's loopback, for the program.
func (a program) answers(t *testing.T, p *lab.Project, model http.Handler) *askedModel {
	t.Helper()
	m := &askedModel{log: &bytes.Buffer{}}
	s := lab.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimPrefix(r.Header.Get(a.header), "Bearer ") != a.key() {
			t.Errorf("%s of the request for %s: got %q, want the program's key", a.header, r.URL.Path,
				r.Header.Get(a.header))
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

// note records the requests to the model, and separately those before a tool has shown it the
// workspace. In the second iteration the workspace contains the files of the first.
func (m *askedModel) note(body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, body)
	if !bytes.Contains(body, []byte("iteration 2 attempt")) {
		return
	}
	for _, shown := range []string{
		`"type":"tool_result"`, `"type":"function_call_output"`,
		`"type":"custom_tool_call_output"`, `"role":"tool"`,
	} {
		if bytes.Contains(body, []byte(shown)) {
			return
		}
	}
	m.first = append(m.first, body)
}

// heard returns the text around the first of these words in a request, or "".
func (m *askedModel) heard(words ...string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.first {
		for _, w := range words {
			if at := bytes.Index(body, []byte(w)); at >= 0 {
				return string(body[max(0, at-300):min(len(body), at+100)])
			}
		}
	}
	return ""
}
