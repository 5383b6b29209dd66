// Package recordtest makes audit records for tests.
package recordtest

import (
	"strings"

	"abl/internal/audit"
	"abl/internal/spec"
)

// RecordOn returns an audit record of phase n on these specs. results has a word per contract: pass, fail or
// another result of the replays; with a question mark it is the Verifier's.
func RecordOn(set spec.Set, n int, results string) audit.Record {
	r := audit.Record{Version: audit.Version, Phase: n, Step: 1, Replays: []audit.Replay{}, Calls: []audit.Call{}}
	words := strings.Fields(results)
	for _, s := range set.UpTo(n) {
		r.Specs = append(r.Specs, audit.Spec{Phase: s.Number, SHA256: s.SHA256, Bytes: len(s.Text)})
		for _, c := range s.Contracts {
			k := audit.Contract{Clause: audit.Clause{ID: c.ID, Phase: s.Number, Line: c.Line, Says: c.Says()}, Result: words[0], By: audit.ByReplay}
			switch k.Is = map[string]string{"pass": "verified", "fail": "failed"}[words[0]]; {
			case strings.HasSuffix(words[0], "?"):
				k.Result, k.By, k.Is = strings.TrimSuffix(words[0], "?"), audit.ByVerifier, ""
			case words[0] == "weak":
				k.Result, k.Is = audit.Pass, "weak"
			case words[0] == "flaky":
				k.Result, k.Is = audit.Fail, "flaky"
			case k.Is == "":
				k.Result, k.By, k.Is = audit.Unknown, "", words[0]
			}
			r.Contracts, words = append(r.Contracts, k), words[1:]
		}
	}
	return r
}
