package bench

import (
	"encoding/json"
	"testing"
	"testing/fstest"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// BenchmarkIteration measures abl's own time in an iteration that passes: from the start of the
// phase to its end, without the two agents' calls. The agents and the app do almost nothing. The
// app's starts and the replays count, the removal of the networks at the end of the phase does
// not.
func BenchmarkIteration(b *testing.B) {
	lab.Engine(b)
	var own []float64
	for b.Loop() {
		own = append(own, ownTime(b, passing(b).Must(0, "phase", "1", "--json")).Seconds())
	}
	b.ReportMetric(median(own), "own-s")
	b.ReportMetric(100*median(own)/(5*time.Minute).Seconds(), "%-of-5-min")
}

// passing returns a project whose phase 1 passes in one iteration.
func passing(b *testing.B) *lab.Project {
	b.Helper()
	text := "done\n"
	data, err := json.Marshal(agent.Scenario{Version: agent.Version, Calls: []agent.ScriptCall{
		{
			Role: "builder",
			Steps: []agent.Step{
				{
					Write: "server.mjs",
					Text:  "import http from 'node:http'; http.createServer((q, r) => r.end('ok')).listen(3000);\n",
				},
				{Report: &text},
			},
		},
		{
			Role:  "verifier",
			Steps: []agent.Step{{Write: "run.sh", Text: lab.File(b, "suite.sh"), Mode: "0755"}, {Report: &text}},
		},
	}})
	if err != nil {
		b.Fatal(err)
	}
	return lab.From(b, fstest.MapFS{
		".abl/config.yaml": {Data: []byte("version: 1\nagent: scripted\n" +
			"agents: {scripted: {scenario: .abl/scenario.yaml}}\n" +
			"app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}}\n")},
		".abl/specs/phase1.md": {Data: []byte("# Phase 1: One\n\n## Contracts\n\n- GET / → 200 with the text ok\n")},
		".abl/scenario.yaml":   {Data: data},
	})
}

// ownTime returns the duration of a phase up to its verdict, without its calls.
func ownTime(b *testing.B, r lab.Result) (own time.Duration) {
	b.Helper()
	all := lab.Events(b, r)
	for _, e := range all {
		switch e.Kind {
		case state.CallEnd:
			own -= time.Duration(e.MS) * time.Millisecond
		case state.Verdict:
			return own + e.Time.Sub(all[0].Time)
		}
	}
	b.Fatalf("verdict of the phase: got none in %d events, want one", len(all))
	return 0
}
