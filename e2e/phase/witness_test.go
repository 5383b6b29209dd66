package phase

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"abl/internal/audit"
	"abl/internal/testing/lab"
	found "abl/orchestrator/evidence"
	"abl/roles/agent"
)

// witnessed is one contract, how its test looks, and what that comes to.
type witnessed struct {
	name     string // of the way in which the test is made
	contract string
	test     string // ok is its exit code 0
	is       string // where the contract stands then, with the words of the rule
	why      string
}

// get is a contract that is answers as it says.
func get(path string) string { return fmt.Sprintf(`GET /%s → 200 {"is": "the %[1]s"}`, path) }

// judged plays a suite that has a test for each contract, and holds against the cases
// what was found of them.
func judged(t *testing.T, code int, begin string, cases []witnessed) *lab.Project {
	t.Helper()
	run := fmt.Sprintf("%s%s\necho 1..%d\n", lab.File(t, "suites/ask.sh"), begin, len(cases))
	for i, c := range cases {
		run += fmt.Sprintf("# %s\nif ( %s ) >/dev/null; then echo 'ok %d - P1.C%[3]d'; "+
			"else echo 'not ok %[3]d - P1.C%[3]d'; fi\n", c.name, c.test, i+1)
	}
	p := once(t, code, "10m", lab.File(t, "apps/names-each-path.mjs"), cases, write("run.sh", run, "0755"))
	held(t, p, cases)
	noLeftovers(p)
	return p
}

// once plays a phase with an app and a Verifier that is asked once.
func once(t *testing.T, code int, strength, app string, cases []witnessed, tests ...agent.Step) *lab.Project {
	t.Helper()
	spec := strings.TrimSuffix(oneSpec, "GET / → 200 with the text ok\n```\n")
	for _, c := range cases {
		spec += c.contract + "\n"
	}
	settings := nodeApp + "verify: {evidence: required, strength_time: " + strength + "}\n"
	tests = append(tests, report())
	p := newProject(t, settings, builds(write("server.mjs", app)), call("verifier", 0, tests...))
	p.Write(".abl/specs/phase1.md", spec+"```\n")
	limits := "loop: {max_verifier_iterations: 1, no_progress: {unverified: 1}, "
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", limits, 1))
	p.Must(code, "phase", "1", "--json")
	return p
}

// held holds what was found against the cases.
func held(t *testing.T, p *lab.Project, cases []witnessed) audit.Record {
	t.Helper()
	r := audited(p, 1, 1)
	if len(r.Contracts) != len(cases) {
		t.Fatalf("%d contracts were judged, want %d: %v", len(r.Contracts), len(cases), r.Missing)
	}
	for i, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			got := r.Contracts[i]
			if got.Is != c.is || !strings.Contains(got.Why, c.why) {
				t.Errorf("%s is %s: %s; want %s: %s (runs %v, ok under %v)",
					c.contract, got.Is, got.Why, c.is, c.why, got.Runs, got.Under)
			}
		})
	}
	return r
}

// A suite that asks the app nothing proves nothing, whatever signs it goes by.
func TestWitnessNothingAsked(t *testing.T) {
	lab.Long(t)
	const none = "the tests sent the app no request"
	lie := func(name, test string) witnessed {
		return witnessed{name, "GET /" + strings.ReplaceAll(name, " ", "-") + " → 200", test, found.Vacuous, none}
	}
	judged(t, 4, "", []witnessed{
		lie("port liar", `case $ABL_APP_URL in *:3000) ;; *) exit 1; esac`),
		lie("echo", `true`),
		lie("hosts file", `grep -q '^127.0.0.1.*app' /etc/hosts`),
		lie("a connection alone", `exec 3<>/dev/tcp/app/3000`),
	})
}

// What was not asked, or answered otherwise, is not witnessed; what nobody need answer
// is vacuous. By no sign of its surroundings does a suite know the real app.
func TestWitnessNotShown(t *testing.T) {
	const unsent = "the tests never sent this request"
	const other, never = "every answer to this request was another than the contract says: ", "it cannot fail"
	judged(t, 4, "", []witnessed{
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
			found.Vacuous, "ok with the app away (does it ask $ABL_APP_URL?)"},
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
	})
}

// Tests that stay ok when the app's answers are altered are weak.
func TestWitnessWeak(t *testing.T) {
	becomes := func(path string) string {
		return "its test stays ok when the 200 to GET /" + path + " becomes 500"
	}
	p := judged(t, 4, lab.File(t, "suites/signs.sh"), []witnessed{
		{"tourist", get("tourist"), "exact /tourist", found.Verified, ""},
		{"the rest of the tour", "GET /tour → 200", "ask /tour && exact /tourist", found.Weak, becomes("tour")},
		{"vacuous", get("vacuous"), "ask /vacuous", found.Weak, becomes("vacuous")},
		{"status only", `POST /status → 201 {"is": "the status"}`,
			`test "$(ask -d x -o /dev/null -w '%{http_code}' /status)" = 201`,
			found.Weak, "its test stays ok when is is taken out of the 201 to POST /status"},
		{"body only", get("body"), "said /body", found.Weak, becomes("body")},
		{"finger by a body", get("finger"), `ask /zzz | grep 'not found' && ask /finger`,
			found.Weak, becomes("finger")},
		{"finger by a header", get("header"), `ask -i /zzz | grep -i '^date:' && ask /header`,
			found.Weak, becomes("header")},
		{"timing", get("slow"), `ask -o /dev/null -w '%{time_total}' /slow | grep '^0.[3-9]\|^[1-9]'`,
			found.Weak, becomes("slow")},
		{"first answer", get("first"), `ask / | grep . && ask /first`, found.Weak, becomes("first")},
	})
	alike(t, p)
}

// alike wants that the replays of a call, whatever stood in the app's place, show a
// suite the same signs.
func alike(t *testing.T, p *lab.Project) {
	t.Helper()
	const app = "app-1"
	seen := map[string]string{}
	for _, against := range []string{app, "altered-1", "empty", "500", "no app"} {
		for line := range strings.Lines(p.Read(".abl/logs/calls/p1-verify-1.1/replay-" + against + "/stdout")) {
			name, text, ok := strings.Cut(strings.TrimPrefix(line, "# sign "), ": ")
			switch {
			case !ok || !strings.HasPrefix(line, "# sign "):
			case name == "sockets" && against == "no app": // which cannot be connected to
			case against == app:
				seen[name] = text
			case seen[name] != text:
				t.Errorf("%s tells %s from the app: %q, not %q", name, against, text, seen[name])
			}
		}
	}
}

// Who asks until the answer fits has seen that it mostly does not.
func TestWitnessAskedUntilItFits(t *testing.T) {
	const why = "was asked again until it fitted: 2 of 3 answers were errors"
	judged(t, 3, "", []witnessed{
		{"until it is no 500", get("busy"), "for i in 1 2 3 4; do said /busy && exit; done; exit 1",
			found.Flaky, "GET /busy " + why},
		{"until it is a success", `GET /busy/b → 200`,
			"for i in 1 2 3 4; do ask -f /busy/b && exit; done; exit 1", found.Flaky, "GET /busy/b " + why},
		{"it may be busy", `GET /busy/c → 200 eventually`,
			"for i in 1 2 3 4; do ask -f /busy/c && exit; done; exit 1", found.Untried, ""},
	})
}

// Honest suites of many hands are believed, with no word of doubt.
func TestWitnessHonest(t *testing.T) {
	lab.Long(t)
	archive, err := txtar.ParseFile("testdata/honest.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var app string
	var cases []witnessed
	var tests []agent.Step
	for _, f := range archive.Files {
		switch text := string(f.Data); f.Name {
		case "server.mjs":
			app = text
		case "contracts":
			for contract := range strings.Lines(text) {
				contract = strings.TrimSpace(contract)
				cases = append(cases, witnessed{contract, contract, "", found.Verified, ""})
			}
		default:
			tests = append(tests, write(f.Name, text, "0755"))
		}
	}
	p := once(t, 0, "3x", app, cases, tests...)
	r := held(t, p, cases)
	if len(r.Missing)+len(r.Notes) > 0 || !strings.HasPrefix(r.Strength, "shown for ") {
		t.Errorf("strength %q, notes %q, missing %q", r.Strength, r.Notes, r.Missing)
	}
	for _, c := range r.Contracts {
		if c.Unread || c.Witness == "" {
			t.Errorf("%s is witnessed by %q (unread: %v)", c.ID, c.Witness, c.Unread)
		}
	}
	noLeftovers(p)
}
