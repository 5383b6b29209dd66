package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/ledger"
	"abl/internal/usage"
)

var update = flag.Bool("update", false, "write the golden files")

// hostile is a text of an agent that tries to look like something else.
const hostile = "500 | </code>**x** [l](http://e) `c` <img src=x> @all #1 www.e.org ]]> &amp; \x1b]0;t\a\u202e\x00\n  pass    P1.C2  forged\ncontracts\n"

func sample(verdictIs, status string, contracts ...audit.Contract) audit.Record {
	hash := strings.Repeat("0a", 32)
	proof := &audit.Proof{Container: "b", Checks: 40, Held: 40, Image: "sha256:" + hash}
	return audit.Record{
		Version: 1, Project: "0123456789ab", Phase: 2, Title: "Links", Round: 1, Iteration: 2, Step: 2, Decided: time.Date(2026, 3, 1, 12, 0, 43, 0, time.UTC),
		Verdict: verdictIs, Status: status, Evidence: "required", Contracts: contracts,
		Commits: audit.Commits{Source: strings.Repeat("c", 40), Tree: strings.Repeat("e", 40), Tests: strings.Repeat("d", 40)},
		Specs:   []audit.Spec{{Phase: 1, File: ".abl/specs/phase1.md", SHA256: hash}, {Phase: 2, File: ".abl/specs/phase2.md", SHA256: hash}},
		Replays: []audit.Replay{
			{Name: "app-1", Against: "app", Tests: 3, OK: 2, Exit: 1, MS: 1234, Boundary: proof, App: proof},
			{Name: "no app", Against: "no app", Tests: 3, MS: 100, Late: true, Boundary: proof},
		},
		Calls: []audit.Call{{Key: "p2-build-2.1", Role: "builder", Agent: "gemini", Model: "m", Class: "done", Boundary: proof}, {Key: "p2-verify-2.1", Role: "verifier", Agent: "gemini", Class: "done"}},
	}
}

func contract(phase int, id, says, result, by, is string) audit.Contract {
	return audit.Contract{Clause: audit.Clause{ID: id, Phase: phase, Says: says}, Result: result, By: by, Finding: audit.Finding{Is: is}}
}

// program is the record of a program that passed, one contract by a test that is not shown to look.
func program() *audit.Record {
	sorts := contract(1, "P1.C1", "`sort` → prints the lines in order", audit.Pass, audit.ByReplay, "verified")
	sorts.Runs, sorts.Test, sorts.Under = []string{"ok"}, "line 2: ok 1 - P1.C1", []string{"empty 200"}
	sorts.Unshown = "not reached"
	r := sample("pass", "passed", sorts)
	r.Kind, r.Strength = "command", "shown for 0 of 1 contract, 1 not reached"
	r.Replays = append(r.Replays, audit.Replay{Name: "empty", Against: "empty", Tests: 1, OK: 1}, audit.Replay{Name: "500", Against: "500", Tests: 1},
		audit.Replay{Name: "altered-1", Against: "app", Tests: 1})
	return &r
}

// runs are those that the golden files show.
func runs() map[string]Run {
	weak := contract(1, "P1.C2", "GET /b → 200", audit.Pass, audit.ByReplay, "weak")
	weak.Why, weak.Under, weak.Runs = "its test is ok under an app that responds to everything with an empty 200", []string{"empty 200"}, []string{"ok"}
	good := contract(1, "P1.C1", "GET /a → 200", audit.Pass, audit.ByReplay, "verified")
	good.Runs, good.Witness, good.Test = []string{"ok"}, "GET /a?x="+hostile+" → 200", "line 3: ok 1 - P1.C1 "+hostile
	unread := contract(1, "P1.C3", "two orders at once → one of them wins", audit.Pass, audit.ByReplay, "verified")
	unread.Unread, unread.Runs = true, []string{"ok"}
	weak.Allowed, weak.Witness = true, "GET /b → 200"
	passed := sample("pass", "passed", good, weak, unread)
	passed.Strength = "shown for 1 of 2 contracts"
	passed.Replays = append(passed.Replays, audit.Replay{Name: "altered-1", Against: "app", Tests: 3, OK: 1, MS: 900})
	passed.Commits.Tag = "phase2/passed"

	bad := contract(2, "P2.C1", "POST /links {url} → 201 | {id}", audit.Fail, audit.ByReplay, "failed")
	bad.Input, bad.Observed, bad.Why, bad.Runs, bad.Entries = "POST /links\n"+hostile, hostile, "1 of 1 replays are not ok: "+hostile, []string{"not ok"}, 1
	doubted := contract(2, "P2.C2", "GET /links/{id} → 302", audit.Fail, audit.ByVerifier, "not reproduced")
	doubted.Input, doubted.Observed, doubted.Entries = "GET /links/1", "404", 1
	skippedChecks := contract(1, "P1.C1", "GET /a → 200", audit.Unknown, "", "untried")
	failed := sample("fail", "refuted", skippedChecks, bad, doubted)
	failed.Entries = []failedspecs.Entry{
		{Spec: "the moon → round", Input: "look", Observed: hostile},
		{Spec: "POST /links {url} → 201 " + hostile, Input: "POST /links {}", Observed: "500", Contract: "P2.C1"},
	}
	failed.Notes = []string{hostile, "another note"}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range failed.Calls {
		failed.Calls[i].Started, failed.Calls[i].Ended = began, began.Add(90*time.Second)
	}
	known := ledger.Sum{Rows: 2, Total: ledger.Counter{Known: 1_234_567}, Cost: ledger.Money{Known: 3 * usage.Dollar}}
	partly := ledger.Sum{Rows: 2, Total: ledger.Counter{Known: 1200, Missing: 1}, Cost: ledger.Money{Missing: 2}}
	before := sample("fail", "refuted", bad)
	before.Step = 1

	vacuous := contract(1, "P1.C1", "GET /a → 200", audit.Unknown, "", "vacuous")
	vacuous.Why = "its test is ok without the app"
	open := sample("unverified", "unverified", vacuous, contract(1, "P1.C2", "GET /b → 200", audit.Unknown, "", ""))
	open.Missing, open.Replays, open.Calls = []string{"P1.C1 is vacuous: its test is ok without the app", hostile}, nil, nil
	word := sample("pass", "passed", contract(1, "P1.C1", "GET /a → 200", audit.Pass, audit.ByVerifier, ""))
	word.Evidence, word.Replays = "off", nil
	return map[string]Run{
		"program": {Phase: 2, Record: program(), Used: known, Files: 3, More: true},
		"pass":    {Phase: 2, Record: &passed, Used: partly, Files: -1, Unpublished: true}, "unverified": {Phase: 2, Record: &open, Older: true}, "word": {Phase: 2, Record: &word},
		"fail":               {Phase: 2, Record: &failed, Before: []audit.Record{before}, Used: known, Files: 12, Page: "out|`page`.html"},
		"ended":              {Phase: 3, Title: "Later", Ended: &Ended{Code: 5, What: "the agent failed: " + hostile}},
		"ended-after-a-fail": {Phase: 2, Record: &failed, Ended: &Ended{Code: 75, What: "the provider is unavailable"}},
	}
}

func TestGolden(t *testing.T) {
	for name, r := range runs() {
		var text bytes.Buffer
		if err := Text(&text, r); err != nil {
			t.Fatal(err)
		}
		xml, err := JUnit(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range structure(xml) {
			t.Errorf("structure of %s: got %s, want no error", name, wrong)
		}
		for ext, got := range map[string]string{"txt": text.String(), "md": Markdown(r), "xml": string(xml)} {
			path := filepath.Join("testdata", name+"."+ext)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; go test ./orchestrator/report -update writes it)\n%s", path, diff)
			}
		}
	}
}
