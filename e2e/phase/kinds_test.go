package phase

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	found "abl/orchestrator/evidence"
	"abl/roles/agent"
)

const (
	command = "app: {kind: command, command: 'sh \"$ABL_SRC/count.sh\"', env: {FLAVOUR: sweet}}\n" +
		"verify: {evidence: required, strength_time: 5m}\n"

	countSpec = "# Phase 1: Count\n\n## Context\n\nA command that counts words.\n\n## Contracts\n\n```\n" +
		"`count words` with three words on standard input → prints 3, exit code 0\n" +
		"`count words FILE INTO` → the number of words of FILE stands in INTO, and nothing is printed\n" +
		"`count` without arguments → exit code 2\n```\n"

	// exactly is a check of P1.C1 that compares everything that the contract says.
	exactly = `got=$(echo a b c | timeout 20 abl-cmd app words) && test "$got" = 3`
)

// countSuite returns the suite of count, with this check of P1.C1.
func countSuite(t *testing.T, check string) agent.Step {
	t.Helper()
	return write("run.sh", strings.Replace(lab.File(t, "suites/count.sh"), "{ CHECK_OF_STDIN; }", "{ "+check+"; }",
		1), "0755")
}

// countProject returns a project with a command-line program and its contracts.
func countProject(t *testing.T, calls ...agent.ScriptCall) *lab.Project {
	t.Helper()
	p := newProject(t, command, calls...)
	p.Write(".abl/specs/phase1.md", countSpec)
	return p
}

// The Verifier and each replay run a program on the copy of the commit.
func TestProgramPasses(t *testing.T) {
	program := write("count.sh", lab.File(t, "apps/count.sh"))
	p := countProject(t, builds(program, run("echo a b | abl-cmd app words"), must(2, "abl-cmd app"),
		must(2, "abl-cmd restart")),
		call("verifier", 0, countSuite(t, exactly), runsScript(t, "looks-at-a-program.sh"), report(),
			must(0, "abl-cmd check")))
	p.Must(0, "phase", "1")
	r := auditRecord(p, 1, 1)
	seen := []string{"run with words → exit code 0", "run with words", ""} // with file names
	for i, c := range r.Contracts {
		if c.Is != found.Verified || c.Unread || !strings.HasPrefix(c.Witness, seen[i]) {
			t.Errorf("got %s as %s: %s (unread %v, ok under %v), witnessed %q, want %q",
				c.ID, c.Is, c.Why, c.Unread, c.Under, c.Witness, seen[i])
		}
	}
	if want := "shown for 3 of 3 contracts"; r.Strength != want {
		t.Errorf("strength: got %q, want %q", r.Strength, want)
	}
	built, out := printed(p, "p1-build-1.1"), printed(p, "p1-verify-1.1")
	wants(t, "the Builder's call", built, "2\n")
	wants(t, "the Verifier's call", out, "app ARGS…", "ABL_EXCHANGE=/tmp/exchange", "ok: nothing is missing")
	lacks(t, "the Verifier's call", out, "ABL_APP_URL", "\nsrc\n", "count.sh")
	lacks(t, "the files that the Verifier can read", p.Read(".abl/logs/calls/p1-verify-1.1/in/commands.json"), "count.sh", "FLAVOUR")
	for role, has := range map[string]string{"build": "sh \"$ABL_SRC/count.sh\"", "verify": "Exit code 125"} {
		wants(t, role, promptOf(p, "p1-"+role+"-1.1"), "It is a command-line program", has)
	}
	page := p.Must(0, "report", "1").Stdout
	wants(t, "the report", page, "witnessed: "+seen[0])
	lacks(t, "the report", page, "not checkable", "HTTP", "request")
	wants(t, "the page", p.Must(0, "report", "1", "--html", "-").Stdout, ">run<", "input:\na b c", "standard output:\n3")
	wants(t, "abl open", p.Must(2, "open", "1").Stderr, "cannot open the app: it is a command-line program", "abl shell verifier")
	checkNothingLeft(p)
}

// The default time is enough to alter the output of a program for each of 20 contracts, although
// most tests need a command of another contract first.
func TestTwentyContractsOfAProgram(t *testing.T) {
	lab.Long(t)
	p := newProject(t, strings.Replace(command, "count.sh", "tasks.sh", 1),
		builds(write("tasks.sh", lab.File(t, "apps/tasks.sh"))), call("verifier", 0, hasSuite(t, "tasks.sh"), report()))
	p.Write(".abl/specs/phase1.md", lab.File(t, "tasks.md"))
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), ", strength_time: 5m", "", 1))
	p.Must(0, "phase", "1")
	if got, want := auditRecord(p, 1, 1).Strength, "shown for 20 of 20 contracts"; got != want {
		t.Errorf("strength: got %q, want %q", got, want)
	}
	checkNothingLeft(p)
}

// A suite that does not check what the program does cannot pass. The program's files, output and
// child processes harm neither its next run nor its Verifier.
func TestWeakProgramSuitesDoNotPass(t *testing.T) {
	lab.Long(t)
	const otherCode = "P1.C1 is weak: its test stays ok when the exit code of its run with words is 1 instead of 0"
	cases := []struct {
		name  string
		suite agent.Step
		want  string // a part of the reason for the verdict unverified
	}{
		{"never-runs", hasSuite(t, "count-never-runs.sh"), "P1.C1 is vacuous: the tests never ran the program"},
		{
			"runs-at-all",
			hasSuite(t, "count-runs-at-all.sh"),
			`P1.C1 is not witnessed: every run of this differs from the contract: without "3" on standard output`,
		},
		{
			"prints-the-output",
			hasSuite(t, "count-prints-the-output.sh"),
			"P1.C1 is vacuous: its test line is output of the program",
		},
		{"exit-code-alone", countSuite(t, "got=$(echo a b c | timeout 20 abl-cmd app words)"),
			"P1.C1 is weak: its test stays ok when the output and files of its run with words change"},
		{"output-alone", countSuite(t, `test "$(echo a b c | timeout 20 abl-cmd app words)" = 3`), otherCode},
	}
	plays := []agent.ScriptCall{builds(write("count.sh", lab.File(t, "apps/count.sh")))}
	for i, c := range cases {
		lazy := call("verifier", i/2+1, c.suite, report())
		lazy.Attempt = i%2 + 1
		plays = append(plays, lazy)
	}
	// No replays.
	hostile := call("verifier", 0, runsScript(t, "meets-a-hostile-program.sh"), run("rm run.sh"),
		refute("a failure"), report())
	p := countProject(t, append(plays, hostile)...)
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {",
		"loop: {max_verifier_iterations: 3, ", 1))
	all := of(events(t, p.Must(3, "phase", "1", "--json")), state.Verdict)
	if got, want := len(all), len(cases)+1; got != want {
		t.Fatalf("got %d verdicts, want %d: %+v", got, want, all)
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := all[i]; got.Verdict != "unverified" || !strings.Contains(got.Text, c.want) {
				t.Errorf("got %s: %q, want unverified: %q", got.Verdict, got.Text, c.want)
			}
		})
	}
	t.Run("hostile-program", func(t *testing.T) { checkHostileProgram(t, printed(p, "p1-verify-3.2")) })
	checkNothingLeft(p)
}

// checkHostileProgram checks the output of a Verifier that met a hostile program.
func checkHostileProgram(t *testing.T, out string) {
	t.Helper()
	wants(t, "links", out, `"pass" is left out: it is a link`, `"pipe" is left out: it is a FIFO`, "/tmp/exchange/fine\n")
	wants(t, "huge output", out, "4194304\n", "cut after 4194304 bytes", `"big" is left out`, "\nsmall\n")
	wants(t, "many files", out, "480 more are left out\n1000\n")
	wants(t, "the rest", out, "033", "the program itself ended with exit code 125", "DAEMON-GONE\n", "none\n",
		"which contains your work", "SECOND\n")
	lacks(t, "the Verifier's call", out, "root:x:", "case $1 in")
}

// An app without HTTP is tested over TCP, and the transferred bytes are counted.
func TestTCP(t *testing.T) {
	p := newProject(t, "app: {kind: tcp, command: node upper.mjs, port: 4000}\nverify: {evidence: required}\n",
		builds(write("upper.mjs", lab.File(t, "apps/upper.mjs"))),
		call("verifier", 0, hasSuite(t, "upper.sh"), run("echo at=$ABL_APP_URL"), report()))
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "GET / → 200 with the text ok",
		"send a line → the line in capitals", 1))
	p.Must(0, "phase", "1")
	wants(t, "the Verifier's call", printed(p, "p1-verify-1.1"), "at=tcp://app:4000\n")
	r := auditRecord(p, 1, 1)
	if c := r.Contracts[0]; c.Is != found.Verified || !c.Unread || len(c.Under) > 0 {
		t.Errorf("%s: got %s (%s), unread %t, ok under %v, want verified, unread and ok under none", c.ID, c.Is, c.Why,
			c.Unread, c.Under)
	}
	wants(t, "the report", p.Must(0, "report", "1").Stdout, "only counted bytes", "not checkable by abl")
	checkNothingLeft(p)
}

// A program that violates its contracts does not pass with tests that check less than the contracts
// say. Its other contracts are verified.
func TestProgramViolations(t *testing.T) {
	lab.Long(t)
	_, cases, tests := fromArchive(t, "testdata/programs.txtar")
	spec := strings.TrimSuffix(oneSpec, "GET / → 200 with the text ok\n```\n")
	for _, c := range cases {
		spec += c.contract + "\n"
	}
	settings := "app: {kind: command, command: 'python3 \"$ABL_SRC/calc.py\"'}\nverify: {evidence: required, strength_time: 0}\n"
	p := newProject(t, settings, builds(tests[0]), call("verifier", 0, append(tests[1:], report())...))
	p.Write(".abl/specs/phase1.md", spec+"```\n")
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {",
		"loop: {max_verifier_iterations: 1, no_progress: {unverified: 1}, ", 1))
	p.Must(4, "phase", "1", "--json")
	checkFindings(t, p, cases)
	checkNothingLeft(p)
}
