package phase

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"abl/internal/audit"
	"abl/internal/testing/lab"
	"abl/orchestrator"
	found "abl/orchestrator/evidence"
	"abl/roles/agent"
)

// witnessed is a contract, its test, and abl's finding about it.
type witnessed struct {
	name     string // of the kind of test
	contract string
	test     string // shell that exits with 0 if the contract is ok
	is       string // the finding
	why      string // a part of its reason
}

// get returns a contract that GET /path returns its name.
func get(path string) string { return fmt.Sprintf(`GET /%s → 200 {"is": "the %[1]s"}`, path) }

// judgedSuite is one call of the Verifier, with a suite for some contracts of the phase.
type judgedSuite struct {
	name    string
	long    bool   // only in make test-all
	begin   string // shell before the tests
	rest    bool   // the suite has weak tests for the contracts of the other suites
	verdict string
	cases   []witnessed
}

// judgedSuites returns the suites, which are played one after the other in one phase, two per
// iteration. The last one fails, so that no call of the Builder comes between them.
func judgedSuites(t *testing.T) []judgedSuite {
	all := []judgedSuite{
		{name: "not-witnessed", long: true, verdict: "unverified", cases: notWitnessed()},
		{name: "weak", begin: lab.File(t, "suites/signs.sh"), rest: true, verdict: "unverified", cases: weakTests()},
		{name: "nothing-asked", long: true, verdict: "unverified", cases: nothingAsked()},
		{name: "asked-until-it-fits", verdict: "fail", cases: askedUntilItFits()},
	}
	if testing.Short() {
		all = slices.DeleteFunc(all, func(s judgedSuite) bool { return s.long })
	}
	return all
}

// suiteText returns run.sh of the i-th suite.
func suiteText(t *testing.T, all []judgedSuite, i int) string {
	t.Helper()
	var tests strings.Builder
	number, planned := 0, 0
	for k, s := range all {
		for _, c := range s.cases {
			number++
			test := c.test
			if k != i {
				test = weakTest(c.contract)
			}
			if k != i && !all[i].rest {
				continue
			}
			planned++
			fmt.Fprintf(&tests, "# %s\nif ( %s ) >/dev/null; then echo 'ok %d - P1.C%[3]d'; "+
				"else echo 'not ok %[3]d - P1.C%[3]d'; fi\n", c.name, test, number)
		}
	}
	return fmt.Sprintf("%s%s\necho 1..%d\n%s", lab.File(t, "suites/ask.sh"), all[i].begin, planned, &tests)
}

// weakTest returns a test that is ok for any response. abl does not alter the responses to its
// request alone.
func weakTest(contract string) string {
	f := strings.Fields(contract)
	return fmt.Sprintf("ask -X %s -H 'as: the contract says' %s", f[0], f[1])
}

// abl judges each contract of a suite by the requests of its test, and by the test's results
// without an app and with altered responses.
func TestWitnessJudgesSuites(t *testing.T) {
	all := judgedSuites(t)
	var cases []witnessed
	var plays []agent.ScriptCall
	var want []string
	for i, s := range all {
		cases = append(cases, s.cases...)
		next := call("verifier", i/2+1, write("run.sh", suiteText(t, all, i), "0755"), report())
		next.Attempt = i%2 + 1
		plays, want = append(plays, next), append(want, s.verdict)
	}
	loop := fmt.Sprintf("max_verifier_iterations: %d, no_progress: {unverified: 0}", (len(all)+1)/2)
	p := witnessProject(t, "10m", loop, lab.File(t, "apps/names-each-path.mjs"), cases, plays...)
	r := p.Must(3, "phase", "1", "--json")
	if got, want := verdicts(events(t, r)), strings.Join(want, " "); got != want {
		t.Fatalf("verdicts: got %s, want %s", got, want)
	}
	first := 0
	for i, s := range all {
		key := fmt.Sprintf("p1-verify-%d.%d", i/2+1, i%2+1)
		var f orchestrator.Finding
		if err := json.Unmarshal([]byte(p.Read(".abl/logs/calls/"+key+"/finding.json")), &f); err != nil {
			t.Fatal(err)
		}
		if len(f.Evidence.Contracts) != len(cases) {
			t.Fatalf("%s: got %d contracts, want %d: %v", key, len(f.Evidence.Contracts), len(cases), f.Missing)
		}
		t.Run(s.name, func(t *testing.T) {
			for k, c := range s.cases {
				checkFinding(t, c, f.Evidence.Contracts[first+k].Finding)
			}
			if s.rest {
				checkEqualSigns(t, p, key)
			}
		})
		first += len(s.cases)
	}
	for step := range (len(all) + 1) / 2 {
		auditRecord(p, 1, step+1)
	}
	checkNothingLeft(p)
}

// witnessProject returns a project with these contracts, this app and these calls of the Verifier.
func witnessProject(t *testing.T, strength, loop, app string, cases []witnessed, plays ...agent.ScriptCall) *lab.Project {
	t.Helper()
	spec := strings.TrimSuffix(oneSpec, "GET / → 200 with the text ok\n```\n")
	for _, c := range cases {
		spec += c.contract + "\n"
	}
	settings := nodeApp + "verify: {evidence: required, strength_time: " + strength + "}\n"
	p := newProject(t, settings, append([]agent.ScriptCall{builds(write("server.mjs", app))}, plays...)...)
	p.Write(".abl/specs/phase1.md", spec+"```\n")
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", "loop: {"+loop+", ", 1))
	return p
}

// checkFinding checks the finding of a case.
func checkFinding(t *testing.T, c witnessed, got audit.Finding) {
	t.Helper()
	t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
		if got.Is != c.is || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: got %s: %s, want %s: %s (runs %v, ok under %v)",
				c.contract, got.Is, got.Why, c.is, c.why, got.Runs, got.Under)
		}
	})
}

// nothingAsked returns tests that send no request to the app.
func nothingAsked() []witnessed {
	const none = "the tests sent the app no request"
	lie := func(name, test string) witnessed {
		return witnessed{name, "GET /lie-" + strings.ReplaceAll(name, " ", "-") + " → 200", test, found.Vacuous, none}
	}
	return []witnessed{
		lie("port liar", `case $ABL_APP_URL in *:3000) ;; *) exit 1; esac`),
		lie("echo", `true`),
		lie("hosts file", `grep -q '^127.0.0.1.*app' /etc/hosts`),
		lie("a connection alone", `exec 3<>/dev/tcp/app/3000`),
	}
}

// notWitnessed returns tests that do not send the request of their contract, that get another
// response than the contract says, or that cannot fail. None recognizes the real app by its
// surroundings.
func notWitnessed() []witnessed {
	const unsent = "the tests never sent this request"
	const other, never = "every response to this request differs from the contract: ", "it cannot fail"
	return []witnessed{
		{"health only", get("health"), "exact /health", found.Verified, ""},
		{"the rest of health only", get("rest"), "said /health", found.NotWitnessed, unsent},
		{"nonempty", get("nonempty"), `test -n "$(ask /)"`, found.NotWitnessed, unsent},
		{"echo", get("echo"), "true", found.NotWitnessed, unsent},
		{"golden", `GET /nugget → 200 {"is": "gold"}`, "exact /nugget", found.NotWitnessed, other},
		{"golden status", "POST /coin → 200", `ask -d x -o /dev/null -w '%{http_code}' /coin | grep 201`,
			found.NotWitnessed, other},
		{"shared", get("shared"), "exact /shared", found.Verified, ""},
		{"shared by another method", "DELETE /shared → 200", "said /shared", found.NotWitnessed, unsent},
		{"another host", get("host"), `curl -s http://127.0.0.1:3000/host | grep host`, found.Verified, ""},

		{"connection error is ok", get("refused"),
			"a=$(ask /refused) || exit 0; test \"$a\" = '{\"is\":\"the refused\"}'",
			found.Vacuous, "ok without the app (does it send requests to $ABL_APP_URL?)"},
		{"connection error is any answer", get("anything"), "ask /anything; true", found.Vacuous, never},
		{"hosts file", get("hosts"), "ask /hosts; grep '^127.0.0.1.*app' /etc/hosts", found.Vacuous, never},
		{"resolver", get("resolver"), "ask /resolver; getent hosts app | grep 127.0.0.1", found.Vacuous, never},
		{"name servers", get("servers"), "ask /servers; grep '^nameserver 127' /etc/resolv.conf",
			found.Vacuous, never},
		{"environment", get("env"),
			"ask /env; test $ABL_APP_URL = http://app:3000 && ! env | grep -iE 'replay|empty|away|trouble'",
			found.Vacuous, never},
		{"interfaces", get("net"), "ask /net; test $(grep -c : /proc/net/dev) = 1", found.Vacuous, never},
		{"mounts", get("mounts"), "ask /mounts; ! grep -E 'replay-(no|empty|500|altered)' /proc/self/mountinfo",
			found.Vacuous, never},
		{"marker", get("marker"), "ask /marker; test ! -e /tmp/ran; r=$?; touch /tmp/ran; exit $r",
			found.Vacuous, never},
		{"marker among the tests", get("order"), "ask /order; test ! -e ran; r=$?; touch ran; exit $r",
			found.Vacuous, never},
		{"processes", get("processes"), `ask /processes; set -- /proc/[0-9]*; test $# -lt 9`,
			found.Vacuous, never},
	}
}

// weakTests returns tests that stay ok if the responses of the app are altered.
func weakTests() []witnessed {
	becomes := func(path string) string {
		return "its test stays ok when the 200 to GET /" + path + " becomes 500"
	}
	return []witnessed{
		{"tourist", get("tourist"), "exact /tourist", found.Verified, ""},
		{"the rest of the tour", "GET /tour → 200", "ask /tour && exact /tourist", found.Weak, becomes("tour")},
		{"vacuous", get("vacuous"), "ask /vacuous", found.Weak, becomes("vacuous")},
		{"status only", `POST /status → 201 {"is": "the status"}`,
			`test "$(ask -d x -o /dev/null -w '%{http_code}' /status)" = 201`,
			found.Weak, "its test stays ok when the 201 to POST /status has no is"},
		{"body only", get("body"), "said /body", found.Weak, becomes("body")},
		{"marker in a body", get("finger"), `ask /zzz | grep 'not found' && ask /finger`,
			found.Weak, becomes("finger")},
		{"marker in a header", get("header"), `ask -i /zzz | grep -i '^date:' && ask /header`,
			found.Weak, becomes("header")},
		{"timing", get("slow"), `ask -o /dev/null -w '%{time_total}' /slow | grep '^0.[3-9]\|^[1-9]'`,
			found.Weak, becomes("slow")},
		{"first answer", get("first"), `ask / | grep . && ask /first`, found.Weak, becomes("first")},
	}
}

// askedUntilItFits returns tests that repeat the request until the response matches. It rarely
// does.
func askedUntilItFits() []witnessed {
	const why = "was repeated until its response matched: 2 of 3 responses were errors"
	return []witnessed{
		{"until it is no 500", get("busy"), "for i in 1 2 3 4; do said /busy && exit; done; exit 1",
			found.Flaky, "GET /busy " + why},
		{"until it is a success", `GET /busy/b → 200`,
			"for i in 1 2 3 4; do ask -f /busy/b && exit; done; exit 1", found.Flaky, "GET /busy/b " + why},
		{"it may be busy", `GET /busy/c → 200 eventually`,
			"for i in 1 2 3 4; do ask -f /busy/c && exit; done; exit 1", found.OKSoFar, ""},
	}
}

// checkEqualSigns checks that each replay of a call has the same signs, whether the suite meets
// the app or not.
func checkEqualSigns(t *testing.T, p *lab.Project, key string) {
	t.Helper()
	const app = "app-1"
	seen := map[string]string{}
	for _, against := range []string{app, "altered-1", "empty", "500", "no app"} {
		for line := range strings.Lines(p.Read(".abl/logs/calls/" + key + "/replay-" + against + "/stdout")) {
			name, text, ok := strings.Cut(strings.TrimPrefix(line, "# sign "), ": ")
			switch {
			case !ok || !strings.HasPrefix(line, "# sign "):
			case name == "sockets" && against == "no app": // it cannot be connected to
			case against == app:
				seen[name] = text
			case seen[name] != text:
				t.Errorf("%s in %s: got %q, want %q as with the app", name, against, text, seen[name])
			}
		}
	}
}

// Honest suites of different styles pass without a note.
func TestWitnessHonest(t *testing.T) {
	lab.Long(t)
	app, cases, tests := fromArchive(t, "testdata/honest.txtar")
	p := witnessProject(t, "3x", "max_verifier_iterations: 1", app, cases, call("verifier", 0, append(tests, report())...))
	p.Must(0, "phase", "1", "--json")
	r := checkFindings(t, p, cases)
	if len(r.Missing)+len(r.Notes) > 0 || !strings.HasPrefix(r.Strength, "shown for ") {
		t.Errorf("got the strength %q, notes %q, missing %q, want shown for …, none and none", r.Strength, r.Notes, r.Missing)
	}
	for _, c := range r.Contracts {
		if c.Unread || c.Witness == "" {
			t.Errorf("%s: got the witness %q (unread: %v), want an exchange", c.ID, c.Witness, c.Unread)
		}
	}
	checkNothingLeft(p)
}

// An app that violates its contracts does not pass with tests that check less than the contracts
// say, nor with a response that abl cannot read.
func TestWitnessViolations(t *testing.T) {
	lab.Long(t)
	app, cases, tests := fromArchive(t, "testdata/violations.txtar")
	const loop = "max_verifier_iterations: 1, no_progress: {unverified: 1}"
	p := witnessProject(t, "0", loop, app, cases, call("verifier", 0, append(tests, report())...))
	p.Must(4, "phase", "1", "--json")
	checkFindings(t, p, cases)
	checkNothingLeft(p)
}

// fromArchive reads an app, its contracts and their tests. A contract is expected to be verified
// unless the archive says otherwise.
func fromArchive(t *testing.T, path string) (app string, cases []witnessed, tests []agent.Step) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		switch text := string(f.Data); f.Name {
		case "server.mjs":
			app = text
		case "contracts":
			for line := range strings.Lines(text) {
				is, contract, ok := strings.Cut(strings.TrimSpace(line), ": ")
				if !ok || strings.Contains(is, "/") {
					is, contract = found.Verified, strings.TrimSpace(line)
				}
				cases = append(cases, witnessed{name: contract, contract: contract, is: is})
			}
		default:
			tests = append(tests, write(f.Name, text, "0755"))
		}
	}
	return app, cases, tests
}

// checkFindings checks the findings of all cases.
func checkFindings(t *testing.T, p *lab.Project, cases []witnessed) audit.Record {
	t.Helper()
	r := auditRecord(p, 1, 1)
	if len(r.Contracts) != len(cases) {
		t.Fatalf("got %d contracts, want %d: %v", len(r.Contracts), len(cases), r.Missing)
	}
	for i, c := range cases {
		checkFinding(t, c, r.Contracts[i].Finding)
	}
	return r
}
