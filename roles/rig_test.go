package roles

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/sandboxtest"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// plain is an agent whose output is "do WORDS", "used N" and "end".
func plain() agent.Agent {
	a := agent.Program("plain", agent.Command{Argv: []string{"plain"}, Env: map[string]string{"A": "1"}, Files: map[string][]byte{"more": []byte("x")}})
	a.NewReader = func(agent.Call) agent.Reader { return &plainReader{} }
	return a
}

type plainReader struct {
	used  *int64
	ended bool
}

func (r *plainReader) Line(line []byte, cut bool) []agent.Message {
	word, rest, _ := strings.Cut(string(line), " ")
	switch word {
	case "do":
		return []agent.Message{{Kind: agent.Called, Text: rest}}
	case "used":
		n, _ := strconv.ParseInt(rest, 10, 64)
		r.used = &n
	case "end":
		r.ended = true
	}
	return nil
}

func (r *plainReader) Result(exit int) agent.Result {
	res := agent.Result{Finished: r.ended && exit == 0, Requests: -1}
	if r.used != nil {
		res.Usage = []agent.Usage{{Model: "m-1", Count: tokens.Count{Total: r.used}}}
	}
	return res
}

// someLimits are all set, as a box's have to be.
var someLimits = sandbox.Limits{Memory: 1, CPUs: 1, Pids: 1, FileSize: 1, OpenFile: 1}

// rig is a Runner on an engine in memory.
type rig struct {
	*testing.T
	engine  *sandboxtest.Engine
	runner  *Runner
	job     Job
	prompts int

	mu     sync.Mutex
	events []state.Event
}

func boxesOn(e sandbox.Engine) *Boxes {
	return &Boxes{Engine: e, ID: "id", UID: 1000, GID: 1000, Limits: someLimits, Helper: "holder"}
}

func newRig(t *testing.T, script sandboxtest.Script) *rig {
	t.Helper()
	root := t.TempDir()
	r := &rig{T: t, engine: &sandboxtest.Engine{}}
	if script != nil {
		r.engine.Scripts = map[string]sandboxtest.Script{"role": script}
	}
	p := state.NewProject(root, "src", ".abl/tests")
	for _, dir := range []string{p.Src + "/.git", p.Tests + "/.git", p.Calls(), p.Specs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.runner = &Runner{Boxes: boxesOn(r.engine), Project: p, Timeout: time.Hour, Out: state.Func(r.record)}
	r.job = Job{
		Role: Builder, Agent: plain(), Image: "i", Round: 2, Call: agent.Call{ID: "p1-build-1.1", Phase: 1, Iteration: 1, Step: 1, Attempt: 1, Model: "m", Session: "s"},
		Prompt: func() (string, string, error) { r.prompts++; return "do it", "", nil },
	}
	return r
}

func (r *rig) record(e state.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// kinds are the events so far, the agent's actions with their words.
func (r *rig) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.events {
		word := string(e.Kind)
		if e.Kind == state.Action {
			word += ":" + e.Text
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func (r *rig) rec() Record { return Record{r.runner.Project.Call(r.job.Call.ID)} }

func (r *rig) run() Outcome {
	r.Helper()
	o, err := r.runner.Run(r.Context(), r.job)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// begin starts the call as an abl does that is killed right afterwards.
func (r *rig) begin() {
	r.Helper()
	if _, err := r.runner.begin(r.Context(), r.job, r.rec()); err != nil {
		r.Fatal(err)
	}
}

// prints writes an agent's output as its box does.
func prints(b sandbox.Box, text string) {
	if err := os.WriteFile(sandboxtest.Host(b, helper.Out), []byte(text), 0o644); err != nil {
		panic(err)
	}
}

// says is an agent that prints and ends.
func says(text string, code int) sandboxtest.Script {
	return func(b sandbox.Box) sandbox.Exit {
		prints(b, text)
		return sandbox.Exit{Code: code}
	}
}

func (r *rig) wantLeft(names ...string) {
	r.Helper()
	if got := r.engine.Left(); !slices.Equal(got, names) {
		r.Errorf("on the engine there is %q, want %q", got, names)
	}
}

// cancelled is a context that ended.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func show(o Outcome) string {
	text := fmt.Sprintf("%s %d", o.Class, o.Exit)
	if o.Reason != "" {
		text += " " + o.Reason
	}
	for _, u := range o.Usage {
		text += fmt.Sprintf(", %s %d", u.Model, *u.Total)
	}
	return text
}
