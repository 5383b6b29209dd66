package phase

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// slots limits the number of concurrent projects: each has its own containers, and the machines
// that run these tests are small.
var slots = make(chan struct{}, 3)

// turn waits until a test with containers may start.
func turn(t *testing.T) {
	t.Helper()
	lab.Engine(t)
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
}

// The smallest project: a service that responds to one request.
const (
	oneSpec = "# Phase 1: Answer\n\n## Context\n\nA service that answers.\n\n## Contracts\n\n```\n" +
		"GET / → 200 with the text ok\n```\n"

	scripted = "version: 1\nagent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n" +
		"limits: {memory: 1g}\nloop: {call_timeout: 60s}\n" + unproven

	// unproven makes abl believe the Verifier. The tests of replays enable them.
	unproven = "verify: {evidence: off}\n"

	nodeApp = "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}}\n"

	server = `import http from 'node:http';
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
`
	suite = "#!/bin/sh\necho 1..1\n" +
		"curl -sf \"$ABL_APP_URL/\" >/dev/null && echo 'ok 1 - P1.C1' || echo 'not ok 1 - P1.C1'\n"
)

// The parts that the suites share.
var (
	events     = lab.Events
	of         = lab.Of
	wants      = lab.Wants
	lacks      = lab.Lacks
	docker     = lab.Docker
	printed    = (*lab.Project).Printed
	ledgerRows = (*lab.Project).Ledger
	toolsImage = (*lab.Project).ToolsImage
	ownerOf    = lab.OwnerOf
	write      = lab.WriteStep
	report     = lab.ReportStep
	raw        = lab.RawStep
	run        = lab.RunStep
)

// newProject creates a project with the smallest spec, these settings after those of the scripted
// agent, and a script. It waits for its turn.
func newProject(t *testing.T, settings string, calls ...agent.ScriptCall) *lab.Project {
	t.Helper()
	turn(t)
	own := scripted
	if strings.Contains(settings, "verify:") {
		own = strings.Replace(own, unproven, "", 1)
	}
	p := lab.From(t, fstest.MapFS{
		".abl/config.yaml":     {Data: []byte(own + settings)},
		".abl/specs/phase1.md": {Data: []byte(oneSpec)},
		".gitignore":           {Data: []byte(".env\n")},
	})
	script(p, calls...)
	return p
}

// script makes the project's scripted agent play these calls.
func script(p *lab.Project, calls ...agent.ScriptCall) {
	p.Helper()
	p.Write(".abl/scenario.yaml", string(lab.Scenario(p, calls...)))
}

func call(role string, iteration int, steps ...agent.Step) agent.ScriptCall {
	return agent.ScriptCall{Role: role, Iteration: iteration, Steps: steps}
}

// builds returns a call of the Builder that performs these steps and writes its report.
func builds(steps ...agent.Step) agent.ScriptCall {
	return call("builder", 0, append(steps, report())...)
}

// verifies returns a call of the Verifier that performs these steps and writes its report.
func verifies(steps ...agent.Step) agent.ScriptCall {
	steps = append([]agent.Step{write("run.sh", suite, "0755")}, steps...)
	return call("verifier", 0, append(steps, report())...)
}

// must returns a step that runs a command and requires an exit code.
func must(code int, command string) agent.Step {
	return agent.Step{Run: command, Expect: &code}
}

// refute returns a step that writes a valid failed_specs.md.
func refute(what string) agent.Step {
	return write("failed_specs.md", "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: "+what+"\n")
}

// verdicts returns the verdicts of a run, in order.
func verdicts(all []state.Event) string {
	var words []string
	for _, e := range of(all, state.Verdict) {
		words = append(words, e.Verdict)
	}
	return strings.Join(words, " ")
}

// called returns the calls of a run, in order.
func called(all []state.Event) string {
	var keys []string
	for _, e := range of(all, state.CallStart) {
		keys = append(keys, e.Call)
	}
	return strings.Join(keys, " ")
}

// said returns the output of the agent in a call, from its own records.
func said(p *lab.Project, key string) string {
	p.Helper()
	text := p.Read(".abl/logs/calls/" + key + "/stdout")
	if text == "" {
		p.Fatalf("got no output of call %s, want some", key)
	}
	return text
}

// calls returns the names of the records of a project.
func calls(p *lab.Project) string {
	p.Helper()
	entries, err := os.ReadDir(filepath.Join(p.Dir, ".abl/logs/calls"))
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// watch runs abl with --json, passes each event and abl's process to see as soon as it is
// printed, and returns the result.
func watch(p *lab.Project, see func(state.Event, *os.Process), args ...string) lab.Result {
	p.Helper()
	cmd := p.Cmd(append(args, "--json")...)
	var out, errs bytes.Buffer
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = cmd.Process.Kill() }) // in case see ends the test
	follow(p, io.TeeReader(pipe, &out), func(e state.Event) { see(e, cmd.Process) })
	_ = cmd.Wait()
	return lab.Result{
		Code:   cmd.ProcessState.ExitCode(),
		Stdout: out.String(),
		Stderr: errs.String(),
		Took:   time.Since(begun),
	}
}

// follow reads events as they are printed and passes each to see.
func follow(t testing.TB, from io.Reader, see func(state.Event)) {
	t.Helper()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var e state.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("line of the output: got error %v, want an event: %s", err, lines.Text())
		}
		see(e)
	}
}
