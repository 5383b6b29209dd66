//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
)

// desk is a Verifier's workspace with a system to test.
type desk struct {
	*testing.T
	spec helper.CmdSpec
	url  string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Write([]byte("hello"))
	}))
	t.Cleanup(system.Close)
	d := &desk{t, role(t, "verifier"), system.URL}
	d.write("verifier_reports/phase1_v2_20260101T000000Z.md", "report")
	return d
}

func (d *desk) write(name, text string) {
	d.Helper()
	path := filepath.Join(d.spec.Dir, name)
	os.Remove(path)
	write(d.T, path, text)
	if err := os.Chmod(path, 0o755); err != nil {
		d.Fatal(err)
	}
}

// check runs abl-cmd check, which must exit with code and print these lines.
func (d *desk) check(code int, want ...string) {
	d.Helper()
	cmd := helperCommand(d.T, helper.HelperCmd, d.spec, "check")
	cmd.Env = append(os.Environ(), "ABL_APP_URL="+d.url)
	if got := finish(d.T, cmd); got.code != code || got.out != strings.Join(want, "\n")+"\n" {
		d.Errorf("got  %d\n%s%swant %d\n%s", got.code, got.out, got.err, code, strings.Join(want, "\n"))
	}
}

const (
	allOK    = "ok: nothing is missing"
	testOne  = "test \"$(curl -s \"$ABL_APP_URL/\")\" = hello && echo 'ok 1 - P1.C1' || echo 'not ok 1 - P1.C1'\n"
	testTwo  = "curl -sf \"$ABL_APP_URL/x\" >/dev/null || echo 'not ok 2 - P1.C2' && echo 'ok 2 - P1.C2' >/dev/null\n"
	suiteSh  = "#!/bin/sh\necho 1..2\n" + testOne + testTwo + "exit 1\n"
	entryTwo = "SPEC: GET /x → 404\nINPUT: GET /x\nOBSERVED: 500\n"
)

// The suite is run, and its results are compared with the contracts and, in both directions, with
// failed_specs.md.
func TestCheckRunsTheSuite(t *testing.T) {
	d := newDesk(t)
	d.write("run.sh", suiteSh)
	d.check(1, "missing: an entry in failed_specs.md for P1.C2, which is not ok in run.sh: GET /x → 404")
	d.write("failed_specs.md", entryTwo)
	d.check(0, allOK)
	d.write("failed_specs.md", entryTwo+"\nSPEC: GET / → 200 hello\nINPUT: GET /\nOBSERVED: 500\n")
	d.check(1, "wrong: failed_specs.md:5 says that P1.C1 fails, but run.sh reports ok: correct one of them")

	d.write("failed_specs.md", "")
	d.write("run.sh", "#!/bin/sh\necho 1..1\n"+testOne)
	d.check(1, "missing: a line of run.sh for P1.C2: GET /x → 404 (no test line names it)")
	d.write("run.sh", "#!/bin/sh\necho 1..4\n"+testOne+"echo 'ok 2 - P1.C2 # SKIP later'\necho 'ok 3 - P1.C20'\necho 'ok 4 - all well'\n")
	d.check(1, "wrong: run.sh does not test P1.C2: line 3 is marked SKIP",
		"wrong: line 4 of run.sh's output names P1.C20, which is not a contract of phases 1 to 1",
		"note: line 5 of run.sh's output is ok and does not name a contract")
	d.write("run.sh", "#!/bin/sh\n"+testOne+"echo 'ok 2 - P1.C2'\necho done\nexit 7\n")
	d.check(1, "wrong: run.sh's output: the plan (1..n) is missing, so some tests may not have run",
		"wrong: run.sh ended with exit code 7, but no line reports not ok",
		"note: line 3 of run.sh's output: not TAP, so ignored (1 line)")
	d.write("run.sh", "#!/no/such/shell\n# P1.C1 P1.C2\n")
	cmd := helperCommand(t, helper.HelperCmd, d.spec, "check")
	cmd.Env = append(os.Environ(), "ABL_APP_URL="+d.url)
	if got := finish(t, cmd); got.code != 1 || !strings.Contains(got.out, "wrong: cannot run run.sh: ") || !strings.Contains(got.out, "missing: a line of run.sh for P1.C1") {
		t.Errorf("check with a broken shell: got %+v, want exit code 1, that run.sh cannot run, and P1.C1 missing", got)
	}
}

// Without a system the suite is not run, and this is reported.
func TestCheckWithoutSystem(t *testing.T) {
	d := newDesk(t)
	d.url = ""
	d.write("run.sh", "#!/bin/sh\ntouch ran\n# P1.C1\n. ./cases.sh\n")
	d.write("cases.sh", "# P1.C20\n")
	const unchecked = "note: run.sh was not run because ABL_APP_URL is not set: abl-cmd did not check whether every contract has a test"
	d.check(0, unchecked, allOK)
	if _, err := os.Lstat(filepath.Join(d.spec.Dir, "ran")); err == nil {
		t.Error("run.sh without a system: got a run, want none")
	}
}

func TestCheckFiles(t *testing.T) {
	d := newDesk(t)
	d.spec.Iteration = 3
	d.check(1, "missing: the run report of this call, verifier_reports/phase1_v3_<time>.md",
		"missing: run.sh, which replays every saved test and prints TAP")
	d.spec.Iteration = 2
	const unfit = "wrong: run.sh must be executable (chmod +x run.sh) and begin with #!, such as #!/bin/sh"
	d.write("run.sh", "echo P1.C1 P1.C2\n")
	d.check(1, unfit)
	d.write("run.sh", suiteSh)
	if err := os.Chmod(filepath.Join(d.spec.Dir, "run.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.check(1, unfit)
	d.write("run.sh", suiteSh)
	d.write("cases/refused_path.py", "def test_refused_path():\n")
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"no INPUT", "SPEC: GET /x → 404\nOBSERVED: 500\n", []string{"missing: failed_specs.md:1: the entry has no INPUT"}},
		{"prose", "none\n", []string{
			"wrong: failed_specs.md:1: there is no entry: lines that begin with SPEC:, INPUT: and OBSERVED:, in UTF-8",
			"wrong: failed_specs.md:1: text outside of the entries is ignored"}},
		{"no contract", "SPEC: GET /x → 500\nINPUT: GET /x\nOBSERVED: 404\n",
			[]string{"wrong: failed_specs.md:1: SPEC names no contract of phases 1 to 1"}},
		{"a code block", "SPEC: GET /x → 404\nINPUT: GET /x\nOBSERVED:\n```json\n{}\n```\n",
			[]string{"wrong: failed_specs.md:4: an entry contains a code block: write the value on one line, after its label"}},
		{"code, a trace, a test, a path", "SPEC: GET /x → 404\nINPUT: GET /x in /workspace/tests/x\nOBSERVED: 500 in test_refused_path\n  at f (/a/b.js:1:2)\n  expect(1).toBe(2)\n", []string{
			"wrong: failed_specs.md:1: INPUT contains a path of a workspace, which does not reach the Builder: use the text of the specs",
			"wrong: failed_specs.md:1: OBSERVED contains a stack trace, which does not reach the Builder: use the text of the specs",
			"wrong: failed_specs.md:1: OBSERVED contains code, which does not reach the Builder: use the text of the specs",
			"wrong: failed_specs.md:1: OBSERVED contains the name of a test, which does not reach the Builder: use the text of the specs"}},
	} {
		d.write("failed_specs.md", c.text)
		if !strings.Contains(c.text, "/x → 404\nINPUT") { // no complete entry about P1.C2
			c.want = append(c.want, "missing: an entry in failed_specs.md for P1.C2, which is not ok in run.sh: GET /x → 404")
		}
		d.check(1, c.want...)
	}
	os.Remove(filepath.Join(d.spec.Dir, "failed_specs.md"))
	if err := os.Symlink("/etc/passwd", filepath.Join(d.spec.Dir, "failed_specs.md")); err != nil {
		t.Fatal(err)
	}
	if got := finish(t, helperCommand(t, helper.HelperCmd, d.spec, "check")); got.code != 1 || strings.Contains(got.out, "root:") {
		t.Errorf("check with a link: got %+v, want exit code 1 and nothing of /etc/passwd", got)
	}
}
