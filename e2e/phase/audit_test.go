package phase

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/audit"
	"abl/internal/state"
	"abl/internal/testing/audittest"
	"abl/internal/testing/lab"
)

// checkNoDoubts checks that the record has no doubts: each contract has a witness.
func checkNoDoubts(p *lab.Project, r audit.Record) {
	p.Helper()
	if len(r.Missing)+len(r.Notes) > 0 {
		p.Errorf("the record: got notes %q, missing %q, want none", r.Notes, r.Missing)
	}
	for _, c := range r.Contracts {
		if c.Is != "verified" || c.Unread || c.Witness == "" {
			p.Errorf("%s: got %s (%s), witness %q, unread %t, want verified and read by a witness", c.ID, c.Is, c.Why,
				c.Witness, c.Unread)
		}
	}
}

// checkStrength checks that each test detected altered responses, as far as time allowed.
func checkStrength(p *lab.Project, r audit.Record) {
	p.Helper()
	if !strings.HasPrefix(r.Strength, "shown for ") {
		p.Errorf("strength of the tests: got %q, want one that begins with %q", r.Strength, "shown for ")
	}
}

// auditRecord returns the audit record of an iteration. It checks the record against the schema,
// and its hashes against the named files.
func auditRecord(p *lab.Project, phase, step int) audit.Record {
	p.Helper()
	paths := state.NewProject(p.Dir, "src", ".abl/tests")
	r, err := audit.Load(paths, phase, step)
	if err != nil {
		p.Fatal(err)
	}
	schema, err := os.ReadFile("../../docs/audit-record.schema.json")
	if err != nil {
		p.Fatal(err)
	}
	for _, wrong := range audittest.Violations(schema, []byte(p.Read(paths.Rel(audit.Path(paths, phase, step))))) {
		p.Errorf("the record: got violation %s, want none", wrong)
	}
	same := func(path, want string) {
		if sum := sha256.Sum256([]byte(p.Read(path))); hex.EncodeToString(sum[:]) != want {
			p.Errorf("the hash of %s: got %x, want %s as in the record", path, sum, want)
		}
	}
	for _, s := range r.Specs {
		same(s.File, s.SHA256)
	}
	proven := func(of string, b *audit.Proof) {
		if b == nil || b.Failed != "" || b.Held != b.Checks || b.Checks < 10 || !strings.HasPrefix(b.Image, "sha256:") {
			p.Errorf("proof of %s: got %+v, want one with 10 checks or more that all hold", of, b)
			return
		}
		same(b.File.Path, b.File.SHA256)
	}
	for _, c := range r.Calls {
		proven(c.Key, c.Boundary)
		if c.Role == "verifier" {
			proven(c.Key+"'s app", c.App)
		}
	}
	for _, run := range r.Replays {
		same(run.Output.Path, run.Output.SHA256)
		proven(run.Name, run.Boundary)
		if run.Against == "app" {
			proven(run.Name+"'s app", run.App)
		}
	}
	return r
}

// checkAudit checks that the record of a passing step contains all its evidence.
func checkAudit(p *lab.Project, phase, step int) {
	p.Helper()
	r := auditRecord(p, phase, step)
	var names []string
	for _, run := range r.Replays {
		if !strings.HasPrefix(run.Name, "altered-") { // altered responses need a witness
			names = append(names, run.Name)
		}
	}
	if got := strings.Join(names, ", "); got != "app-1, no app, empty, 500" {
		p.Errorf("got replays %s, want %q", got, "app-1, no app, empty, 500")
	}
	for dir, want := range map[string]string{"src": r.Commits.Source, ".abl/tests": r.Commits.Tests} {
		if got := p.Git(dir, "rev-parse", r.Commits.Tag); got != want || r.Commits.Tag == "" {
			p.Errorf("%s: tag %q: got %s, want %s as in the record", dir, r.Commits.Tag, got, want)
		}
	}
	if c := r.Contracts[0]; r.Verdict != "pass" || r.Status != "passed" || r.Evidence != "required" ||
		c.Result != "pass" || c.By != "replay" || c.Is != "verified" {
		p.Errorf("the record: got verdict %s, status %s, evidence %s, %+v, want a verified pass by replay", r.Verdict,
			r.Status, r.Evidence, c)
	}
	if len(r.Calls) != 2 || r.Calls[1].Verdict != "pass" || filepath.Base(r.Calls[1].Report) == "." {
		p.Errorf("calls of the record: got %+v, want 2 and the second with a pass and a report", r.Calls)
	}
}

// checkRegressionAudit checks which contracts of an earlier phase the record lists as broken and
// as verified.
func checkRegressionAudit(p *lab.Project) {
	p.Helper()
	broke, fixed := auditRecord(p, 2, 1), auditRecord(p, 2, 2)
	if c := broke.Contracts[0]; broke.Verdict != "fail" || !broke.ByReplay || c.ID != "P1.C1" ||
		c.Result != "fail" || c.By != "replay" || c.Observed != "nothing" {
		p.Errorf("broken phase: got %s, by replay %t, %+v, want P1.C1 failed by replay", broke.Verdict,
			broke.ByReplay, c)
	}
	if c := broke.Contracts[1]; c.ID != "P2.C1" || c.Result != "unknown" {
		p.Errorf("untested contract: got %+v, want P2.C1 unknown", c)
	}
	if e := fixed.Earlier; fixed.Verdict != "pass" || len(e) != 1 || e[0].Suite != "phase1/passed" ||
		e[0].Is != "verified" {
		p.Errorf("fixed phase: got %s, %+v, want a pass and only phase1/passed, verified", fixed.Verdict, e)
	}
	if run := fixed.Replays[0]; run.Name != "phase1-app-1" ||
		run.Commit != p.Git(".abl/tests", "rev-parse", "phase1/passed") {
		p.Errorf("first replay: got %+v, want phase1-app-1 with the tests of phase1/passed", run)
	}
}

// checkReports checks the record of a pass in every format.
func checkReports(p *lab.Project, page string) {
	p.Helper()
	wants(p, "the JUnit file", p.Read("junit.xml"), `tests="1" failures="0" errors="0" skipped="0"`,
		`<testcase name="P1.C1 GET / → 200 with the text ok" classname="phase1" time="`,
		"not ok, as it should be, against: stopped app, null app (empty 200), null app (500)", `name="commit.source" value="`+p.Git("src", "rev-parse", "HEAD"))
	data, err := os.ReadFile(page)
	if err != nil {
		p.Fatal(err)
	}
	wants(p, "the summary", string(data), "### abl phase 1: <code>Answer</code>", "**pass** in step-1",
		"<code>GET / → 200 with the text ok</code> | pass |", "cost: ", "tokens: ", "time of calls and replays: ", "changed in the source: 2 files")
	wants(p, "abl report 1", p.Must(0, "report", "1").Stdout, "step-1: PASS", "phase1/passed",
		"4 replays by abl: app, stopped app, null app (empty 200), null app (500)", "containers held")
	wants(p, "abl spec list", p.Must(0, "spec", "list", "--json").Stdout,
		`{"phase":1,"result":"pass","by":"replay","is":"verified","step":1}`)
}
