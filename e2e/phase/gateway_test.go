package phase

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// The model runs on this machine's loopback, where no container comes to, behind a
// certificate of the person's own, and the call has a budget that its first answers
// use up.
func TestGatewayReachesLoopbackAndHoldsTheBudget(t *testing.T) {
	lab.Long(t)
	lab.Engine(t)
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	const key = "a-key-of-nobody-4712"
	p := lab.Demo(t)
	asked := loopbackModel(t, p, "scenario.yaml", key, (*httptest.Server).StartTLS)
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+"\nbudget: {call: {tokens: 1000}}\nnetwork: {ca_cert: .abl/ca.pem}\n")

	r := p.Must(6, "phase", "1", "--agent", "gemini", "--json")
	wants(t, "the error", r.Stderr, "the budget is reached", "of 1000", "raise the cap")
	ends := of(events(t, r), state.CallEnd)
	if len(ends) != 1 || ends[0].Class != "budget" {
		t.Errorf("calls ended as %+v", ends)
	}
	rows := ledgerRows(p)
	if len(rows) != 1 || rows[0]["source"] != "gateway" || rows[0]["outcome"] != "budget" || rows[0]["total"] == "" {
		t.Errorf("ledger %v", rows)
	}
	if n := asked.Load(); n == 0 {
		t.Error("nobody asked the model")
	}
	kept := p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl")
	wants(t, "the gateway's log", kept, `"over":true`, `"kind":"end"`)
	lacks(t, "what is kept", kept+r.Stdout+r.Stderr, key)
	if files := holding(t, p.Dir, key); len(files) > 0 {
		t.Errorf("the key is in %v", files)
	}
	noLeftovers(p)
}

// loopbackModel serves the project's scenario at 127.0.0.1, with or without TLS,
// and counts who comes with the key. Its certificate is in .abl/ca.pem.
func loopbackModel(t *testing.T, p *lab.Project, file, key string, start func(*httptest.Server)) *atomic.Int64 {
	t.Helper()
	script, err := agent.Parse(file, []byte(p.Read(file)))
	if err != nil {
		t.Fatal(err)
	}
	places := modelserver.Places{Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests}, AppURL: "http://app:3000"}
	model := &modelserver.Server{Source: modelserver.Scenario(script, places, time.Now), Log: io.Discard}
	var asked atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Goog-Api-Key") != key {
			t.Errorf("%s came with the key %q", r.URL.Path, r.Header.Get("X-Goog-Api-Key"))
		}
		asked.Add(1)
		model.ServeHTTP(w, r)
	}))
	start(s)
	t.Cleanup(s.Close)
	if _, at, _ := strings.Cut(s.URL, "://"); !strings.HasPrefix(at, "127.0.0.1:") {
		t.Fatalf("the model is at %s", s.URL)
	}
	if cert := s.Certificate(); cert != nil {
		p.Write(".abl/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	}
	p.Env = append(p.Env, "GEMINI_API_KEY="+key, "GOOGLE_GEMINI_BASE_URL="+s.URL)
	return &asked
}

// killAt runs abl and kills it once a file is there.
func killAt(p *lab.Project, file string, args ...string) {
	p.Helper()
	run := p.Cmd(args...)
	if err := run.Start(); err != nil {
		p.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Minute); !p.Exists(file); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("there is no %s after 5 minutes", file)
		}
	}
	if err := run.Process.Kill(); err != nil {
		p.Fatal(err)
	}
	_ = run.Wait()
}

// abl is killed while the CLI works, and comes back: the gateway is the same, and
// so is the address at which it finds the model on this machine's loopback. The
// CLI does not take the proxy of its tools for its own.
func TestGatewayOutlivesAbl(t *testing.T) {
	lab.Long(t)
	lab.WayOut(t)
	const gate, key = "touch at; until [ -e go ]; do sleep 0.02; done; rm -f at go", "a-key-of-nobody-4713"
	n := int64(100)
	used := []agent.ScriptUsage{{Model: "gemini-2.5-pro", Count: tokens.Count{Input: &n, Candidates: &n, Total: &n}}}
	b, v := builds(write("server.mjs", server), run(gate), must(0, "npm install --no-audit --no-fund is-number@7.0.0")), verifies()
	b.Usage, v.Usage = used, used
	p := newProject(t, nodeApp+"network: {allow: [npm]}\n", b, v)
	asked := loopbackModel(t, p, ".abl/scenario.yaml", key, (*httptest.Server).Start)

	killAt(p, "src/at", "phase", "1", "--agent", "gemini", "--json")
	before := asked.Load()
	gateway := docker(t, "ps", "-q", "--filter", "label=abl.project="+p.ID(), "--filter", "label=abl.kind=gateway")

	resumed := 0
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallResume {
			resumed++
			if now := docker(t, "ps", "-q", "--filter", "label=abl.project="+p.ID(), "--filter", "label=abl.kind=gateway"); now != gateway || now == "" {
				t.Errorf("the gateway is %q, was %q", now, gateway)
			}
			p.Write("src/go", "")
		}
	}, "phase", "1", "--agent", "gemini")
	if r.Code != 0 || resumed != 1 || asked.Load() <= before {
		t.Fatalf("exit %d, %d resumed, %d then %d requests: %s\n%s\n%s\n%s", r.Code, resumed, before, asked.Load(), r.Stderr, p.Read(".abl/logs/calls/p1-build-1.1/stdout"), p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl"), r.Stdout)
	}
	rows := ledgerRows(p)
	if len(rows) != 2 || rows[0]["source"] != "gateway" || rows[0]["outcome"] != "done" || rows[0]["total"] == "" {
		t.Errorf("ledger %v", rows)
	}
	noLeftovers(p)
}
