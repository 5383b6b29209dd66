package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// contracts is the number of contracts of the phase. pause is the duration of each test without
// its request, in seconds: a process starts, a library loads.
const (
	contracts = 20
	pause     = 0.2
)

// BenchmarkReplay measures the time from the Verifier's end to the verdict on a phase of twenty
// contracts: the replay against a fresh app, the replays without an app and under two null apps,
// and those with altered responses. It compares with one run of the suite by the Verifier in the
// same phase.
func BenchmarkReplay(b *testing.B) {
	b.Run("needed", func(b *testing.B) { replays(b, "0") })
	b.Run("altered", func(b *testing.B) { replays(b, "3x") })
}

func replays(b *testing.B, strength string) {
	lab.Engine(b)
	spec := "# Phase 1: Twenty\n\n## Context\n\nA service that answers.\n\n## Contracts\n\n"
	suite := strings.NewReplacer("CONTRACTS", strconv.Itoa(contracts), "PAUSE", fmt.Sprint(pause)).
		Replace(lab.File(b, "twenty.sh"))
	for i := 1; i <= contracts; i++ {
		spec += fmt.Sprintf("- GET /%d → 200 with the text %d\n", i, i)
	}
	text := "done\n"
	calls := []agent.ScriptCall{
		{
			Role: "builder",
			Steps: []agent.Step{
				{
					Write: "server.mjs",
					Text:  "import http from 'node:http'; http.createServer((q, r) => r.end(q.url.slice(1))).listen(3000);\n",
				},
				{Report: &text},
			},
		},
		{Role: "verifier", Steps: []agent.Step{
			{Write: "run.sh", Text: suite, Mode: "0755"},
			{Run: lab.File(b, "times-the-suite.sh")},
			{Report: &text},
		}},
	}
	data, err := json.Marshal(agent.Scenario{Version: agent.Version, Calls: calls})
	if err != nil {
		b.Fatal(err)
	}
	var alone, replayed time.Duration
	for range b.N {
		p := lab.From(b, fstest.MapFS{
			".abl/config.yaml": {Data: []byte("version: 1\nagent: scripted\n" +
				"agents: {scripted: {scenario: .abl/scenario.yaml}}\n" +
				"app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}}\n" +
				"verify: {strength_time: " + strength + "}\n")},
			".abl/specs/phase1.md": {Data: []byte(spec)},
			".abl/scenario.yaml":   {Data: data},
		})
		r := p.Must(0, "phase", "1", "--json")
		ms, err := strconv.Atoi(strings.TrimSpace(p.Read(".abl/tests/alone.ms")))
		if err != nil {
			b.Fatal(err)
		}
		alone += time.Duration(ms) * time.Millisecond
		replayed += afterTheVerifier(b, r)
	}
	b.ReportMetric(alone.Seconds()/float64(b.N), "s-suite")
	b.ReportMetric(float64(replayed)/float64(alone), "replays/suite")
	b.ReportMetric(0, "ns/op")
}

// afterTheVerifier returns the time from the end of the Verifier's call to the verdict.
func afterTheVerifier(b *testing.B, r lab.Result) time.Duration {
	b.Helper()
	var ended time.Time
	for _, e := range lab.Events(b, r) {
		switch {
		case e.Kind == state.CallEnd && e.Role == "verifier":
			ended = e.Time
		case e.Kind == state.Verdict:
			return e.Time.Sub(ended)
		}
	}
	b.Fatal("verdict of the phase: got none, want one")
	return 0
}
