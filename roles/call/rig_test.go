package call

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/internal/usage"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
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
		res.Usage = []agent.Usage{{Model: "m-1", Count: usage.Count{Total: r.used}}}
	}
	return res
}

// rig is a Runner on an engine in memory.
type rig struct {
	*rolestest.Site
	runner  *Runner
	job     Job
	prompts int
}

func newRig(t *testing.T, script sandboxtest.Script) *rig {
	t.Helper()
	r := &rig{Site: rolestest.NewSite(t)}
	if script != nil {
		r.Engine.Scripts = map[string]sandboxtest.Script{"role": script}
	}
	containers := &boundary.Containers{Engine: r.Engine, ID: "id", UID: 1000, GID: 1000, Limits: rolestest.Limits, Helper: "holder"}
	r.runner = &Runner{Containers: containers, Project: r.Project, Timeout: time.Hour, Out: r.Out()}
	r.job = Job{
		Role: roles.Builder, Agent: plain(), Image: "i", Round: 2,
		Call:   agent.Call{ID: "p1-build-1.1", Phase: 1, Iteration: 1, Step: 1, Attempt: 1, Model: "m", Session: "s"},
		Prompt: func() (string, string, error) { r.prompts++; return "do it", "", nil },
	}
	return r
}

func (r *rig) rec() roles.Record { return roles.Record{Dir: r.runner.Project.Call(r.job.Call.ID)} }

func (r *rig) run() roles.Outcome {
	r.Helper()
	o, err := r.runner.Run(r.Context(), r.job)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// begin starts the call like an abl that is killed immediately afterwards.
func (r *rig) begin() {
	r.Helper()
	if _, err := r.runner.begin(r.Context(), r.job, r.rec()); err != nil {
		r.Fatal(err)
	}
}

func show(o roles.Outcome) string {
	text := fmt.Sprintf("%s %d", o.Class, o.Exit)
	if o.Reason != "" {
		text += " " + o.Reason
	}
	for _, u := range o.Usage {
		text += fmt.Sprintf(", %s %d", u.Model, *u.Total)
	}
	return text
}
