package phase

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// evidence enables replays, but not those with altered responses, which TestWitnessJudgesSuites
// checks.
const evidence = nodeApp + "verify: {evidence: required, strength_time: 0}\n"

// honest is a suite that fails when there is no app and when the app responds otherwise.
//
//go:embed testdata/suites/honest.sh
var honest string

// hasSuite returns a step that writes a file of testdata/suites as the Verifier's tests.
func hasSuite(t *testing.T, name string) agent.Step {
	t.Helper()
	return write("run.sh", lab.File(t, "suites/"+name), "0755")
}

// hasApp returns a step that writes a file of testdata/apps as the source.
func hasApp(t *testing.T, name string) agent.Step {
	t.Helper()
	return write("server.mjs", lab.File(t, "apps/"+name))
}

// runsScript returns a step that runs a file of testdata/scripts, which must end with exit code
// 0.
func runsScript(t *testing.T, name string) agent.Step {
	t.Helper()
	return must(0, lab.File(t, "scripts/"+name))
}

// abl replays the tests that the Verifier saved, and stores its observations with the call.
func TestReplayConfirmsAPass(t *testing.T) {
	out := run("ln -s ../../.env leads-out") // engines refuse a tree with such a link
	p := newProject(t, evidence, builds(write("server.mjs", server), out), verifies(hasSuite(t, "honest.sh"), out))
	page := filepath.Join(t.TempDir(), "summary.md")
	p.Env = append(p.Env, "GITHUB_STEP_SUMMARY="+page)
	r := p.Must(0, "phase", "1", "--json", "--junit", "junit.xml")
	wants(t, "the notes", notesOf(t, r.Stdout), "replay: 1 of 1 tests are ok")
	finding := p.Read(".abl/logs/calls/p1-verify-1.1/finding.json")
	wants(t, "the finding", finding, `"contract": "P1.C1"`, `"is": "verified"`)
	for _, name := range []string{"replay-app-1", "replay-no app", "replay-empty", "replay-500"} {
		if !p.Exists(".abl/logs/calls/p1-verify-1.1/" + name + "/stdout") {
			t.Errorf("the output of %s: got no file, want one", name)
		}
	}
	checkAudit(p, 1, 1)
	checkReports(p, page)
	checkNothingLeft(p)
}

// claim is a call of the Verifier that claims a pass without evidence.
type claim struct {
	name  string
	long  bool   // only in make test-all
	why   string // a part of the reason for the verdict unverified
	steps []agent.Step
}

// claims returns the claims, which are played one after the other in one phase, two per
// iteration. Consecutive claims have different reasons, except the last three, which end the
// phase.
func claims(t *testing.T) []claim {
	text := "# All contracts pass\n\nVERDICT: pass\n"
	pass := agent.Step{Report: &text}
	plays := func(steps ...agent.Step) []agent.Step { return steps }
	disagrees := strings.Replace(honest, "= ok ]", "= never ]", 1)
	unknown := claim{
		"unknown-contract",
		true,
		"P1.C1 is missing",
		plays(hasSuite(t, "names-an-unknown-contract.sh"), pass),
	}
	all := []claim{
		{"nothing-written", true, "run.sh", plays(report())},
		{"half-an-entry", true, "has no complete entry",
			plays(write("run.sh", suite, "0755"), write("failed_specs.md", "SPEC: GET / → 200\n"), report())},
		{"own-comment", false, "P1.C1 is vacuous",
			plays(run("rm -f failed_specs.md"), hasSuite(t, "passes-by-its-own-comment.sh"), pass)},
		{"response-of-the-app", false, "P1.C1 is vacuous: its test line is a response of the app",
			plays(hasSuite(t, "prints-the-response.sh"), pass)},
		{"old-reports-touched", false, noReport, plays(runsScript(t, "touch-old-reports.sh"))},
		{"silence-about-a-failure", false, "P1.C1 is disputed", plays(write("run.sh", disagrees, "0755"), pass)},
		{"report-of-iteration-5", true, noReport, plays(write("verifier_reports/phase1_v5_x.md", "x"))},
		{"tests-deleted", true, "run.sh", plays(hasSuite(t, "honest.sh"), report(), run("rm -f run.sh"))},
		{"report-of-an-earlier-call", true, noReport, plays(run("ls verifier_reports/phase1_v5_x.md"))},
		{"recording", true, "P1.C1 is vacuous",
			plays(write("out.tap", "1..1\nok 1 - P1.C1\n"), hasSuite(t, "prints-a-recording.sh"), report())},
		unknown, unknown, unknown,
	}
	if testing.Short() {
		all = slices.DeleteFunc(all, func(c claim) bool { return c.long })
	}
	return all
}

const noReport = "the run report of this call is missing"

// Whatever a Verifier claims, and whatever the app says about itself, is not a pass without
// evidence. abl calls the Verifier again, with the reason. e2e/hostile checks other replacements
// of failed_specs.md (TestVerdictsOfHostileVerifiers).
func TestFalseClaimsDoNotPass(t *testing.T) {
	all := claims(t)
	key := func(i int) string { return fmt.Sprintf("p1-verify-%d.%d", i/2+1, i%2+1) }
	plays, keys := []agent.ScriptCall{builds(hasApp(t, "responds-with-a-test-line.mjs"))}, "p1-build-1.1"
	for i, c := range all {
		next := call("verifier", i/2+1, c.steps...)
		next.Attempt = i%2 + 1
		plays, keys = append(plays, next), keys+" "+key(i)
	}
	p := newProject(t, "", plays...)
	iterations := (len(all) + 1) / 2 // no contract failed, so only the first one has a call of the Builder
	limits := fmt.Sprintf("loop: {no_progress: {unverified: 3}, max_verifier_iterations: %d, ", iterations)
	p.Write(".abl/config.yaml", strings.NewReplacer("loop: {", limits, unproven, "").Replace(scripted)+nodeApp)
	r := p.Must(4, "phase", "1", "--json")
	happened := events(t, r)
	if got := called(happened); got != keys {
		t.Fatalf("calls: got\n%s, want\n%s", got, keys)
	}
	for i, c := range all {
		t.Run(fmt.Sprintf("%s-%s", key(i)[len("p1-verify-"):], c.name), func(t *testing.T) {
			got := of(happened, state.Verdict)[i]
			if got.Verdict != "unverified" || !strings.Contains(got.Text, c.why) {
				t.Errorf("got %s: %q, want unverified: %q", got.Verdict, got.Text, c.why)
			}
			if i+1 < len(all) {
				wants(t, "the Verifier's next prompt", promptOf(p, key(i+1)), c.why)
			}
		})
	}
	wants(t, "the end", r.Stderr, "unverified", "--again", fmt.Sprintf("after %d iterations;", iterations))
	step := slices.IndexFunc(all, func(c claim) bool { return c.name == "response-of-the-app" })/2 + 1
	record := auditRecord(p, 1, step)
	last := record.Replays[len(record.Replays)-1]
	if want := fmt.Sprintf("p1-verify-%d.2", step); record.Verdict != "unverified" || last.Against != "500" ||
		last.Call != want {
		t.Errorf("the record: got %s, %s, %s, want unverified, 500, %s", record.Verdict, last.Against, last.Call, want)
	}
	if !testing.Short() {
		checkReasons(p, r)
	}
	checkNothingLeft(p)
}

// checkReasons checks that abl reports all doubts about the last claim in one place, each
// contract with its text.
func checkReasons(p *lab.Project, r lab.Result) {
	p.Helper()
	want := []string{
		"P1.C1 is missing: no test line names it (the contract: GET / → 200 with the text ok)",
		"line 2 of its output names P1.C9, which is not in a spec",
	}
	wants(p, "the Verifier's last prompt", promptOf(p, "p1-verify-7.1"), want...)
	wants(p, "the events", r.Stdout, append(want, "loop.no_progress.unverified: 3")...)
	wants(p, "abl report 1", p.Must(0, "report", "1").Stdout, want...)
}

// notesOf returns the notes among the events of a run.
func notesOf(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"event":"note"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}
