package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/tap"
	"abl/internal/witness"
)

// TestMain lets the test binary be the HTTP client of the suites, so that they need no curl.
func TestMain(m *testing.M) {
	switch os.Getenv("FETCH_TEST") {
	case "1":
		os.Exit(fetch(os.Args[1:]))
	case "ask":
		os.Exit(ask(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fetch prints the response of an address. It exits with 7 without a server, and with -f with 22 for
// an error status.
func fetch(args []string) int {
	resp, err := http.Get(args[len(args)-1])
	if err != nil {
		return 7
	}
	defer resp.Body.Close()
	if args[0] == "-f" && resp.StatusCode >= 400 {
		return 22
	}
	io.Copy(os.Stdout, resp.Body)
	return 0
}

// lies are suites and apps that cheat. app is the response of the system under test; the contract is
// that it says hello.
var lies = []struct{ name, run, app, want string }{
	{"an honest suite", `
if [ "$(fetch "$ABL_APP_URL/")" = hello ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
echo 1..1`, "hello", "pass\n  P1.C1 verified\n"},
	{"it repeats what a run before printed", `
cat saved.tap`, "hello", "unverified\n  P1.C1 vacuous, ok under away, empty 200, 500\n"},
	{"it greps its own answers", `
echo 1..1
if grep -q '^# P1.C1 holds' "$0"; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
# P1.C1 holds`, "hello", "unverified\n  P1.C1 vacuous, ok under away, empty 200, 500\n"},
	{"it asks, and does not listen", `
fetch "$ABL_APP_URL/" > answer
echo 'ok 1 - P1.C1'; echo 1..1`, "hello", "unverified\n  P1.C1 vacuous, ok under away, empty 200, 500\n"},
	{"it makes up the answer that it misses", `
answer=$(fetch "$ABL_APP_URL/" || echo hello)
if [ "$answer" = hello ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
echo 1..1`, "hello", "unverified\n  P1.C1 vacuous, ok under away\n"},
	{"it looks whether anybody is there, and then repeats", `
if fetch "$ABL_APP_URL/" > answer; then cat saved.tap; else echo 'not ok 1 - P1.C1'; echo 1..1; fi`, "hello", "pass\n  P1.C1 weak, ok under empty 200, 500\n"},
	{"the app answers in TAP, and the suite shows the answer", `
answer=$(fetch "$ABL_APP_URL/"); echo "$answer"
if [ "$answer" = hello ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
echo 1..1`, "ok 1 - P1.C1", "unverified\n  P1.C1 missing\n"},
	{"the app answers with another number and plan", `
answer=$(fetch "$ABL_APP_URL/"); echo "$answer"
if [ "$answer" = hello ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
echo 1..1`, "1..2\nok 2 - P1.C1", "unverified\n  P1.C1 missing\n"},
	{"the app ends the test before its line", `
fetch "$ABL_APP_URL/"
echo 'ok 1 - P1.C1'; echo 1..1`, "Bail out!\n", "unverified\n  P1.C1 vacuous, ok under away, empty 200, 500\n"},
	{"the app answers in TAP, and the suite quotes it as an observation", `
answer=$(fetch "$ABL_APP_URL/")
if [ "$answer" = hello ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; printf '  ---\n  observed: |\n    %s\n  ...\n' "$answer"; fi
echo 1..1`, "ok 1 - P1.C1", "unverified\n  P1.C1 disputed\n"},
	{"the app answers in TAP, and the suite shows it as a comment", `
answer=$(fetch "$ABL_APP_URL/"); echo "# $answer"
case $answer in *hello*) echo 'ok 1 - P1.C1';; *) echo 'not ok 1 - P1.C1';; esac
echo 1..1`, "ok 2 - P1.C1 hello", "pass\n  P1.C1 verified\n"},
	{"the app answers in TAP, and the suite has no line of its own", `
fetch "$ABL_APP_URL/"; echo 1..1`, "ok 1 - P1.C1 hello\n", "unverified\n  P1.C1 vacuous\n! P1.C1 is vacuous: its test line is a response of the app"},
	{"likewise, with a tab in it", `
fetch "$ABL_APP_URL/"; echo 1..1`, "ok 1 -\tP1.C1 hello\n", "unverified\n  P1.C1 vacuous\n! P1.C1 is vacuous: its test line is a response of the app"},
	{"likewise, where errors are not shown", `
set -e; answer=$(fetch -f "$ABL_APP_URL/"); echo "$answer"; echo 1..1`, "ok 1 - P1.C1 hello", "unverified\n  P1.C1 vacuous\n! P1.C1 is vacuous: its test line is a response of the app"},
	{"an honest suite that gives up at the first failure", `
set -e; answer=$(fetch -f "$ABL_APP_URL/"); test "$answer" = hello; echo 'ok 1 - P1.C1'; echo 1..1`, "hello", "pass\n  P1.C1 verified\n"},
	{"no suite at all", "", "hello", "unverified\n  P1.C1 missing\n"},
}

// TestLies runs each suite in a shell, against an app, without an app, and against both null apps.
func TestLies(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	for _, c := range lies {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"fetch": "#!/bin/sh\nFETCH_TEST=1 exec '" + self + "' \"$@\"\n", "saved.tap": "ok 1 - P1.C1\n1..1\n"}
			if c.run != "" {
				files["run.sh"] = "#!/bin/sh\nPATH=.:$PATH" + c.run + "\n"
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Parallel() // programs are written before, because no other test may fork while one is open for writing
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.app) }))
			t.Cleanup(app.Close)
			play := func(url string) *Run { r := played(t, dir, url); return &r }
			s := Suite{
				Contracts: []Contract{{ID: "P1.C1", Says: "GET / → hello"}}, Real: []Run{*play(app.URL)},
				Away: play("http://127.0.0.1:1"), Empty: play(null(t, 200)), Broken: play(null(t, 500)),
			}
			s.Real[0].Record = []witness.Exchange{{Method: "GET", Target: "/", Status: 200, Got: witness.Body{Bytes: int64(len(c.app)), Begins: []byte(c.app)}}}
			if got := show(Decide(nil, s)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// played runs a suite like a replay, whose output until its end counts.
func played(t *testing.T, dir, url string) Run {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec ./run.sh")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ABL_APP_URL="+url)
	out, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	err = cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if code == 126 || code == 127 {
		return Run{Gone: fmt.Sprintf("run.sh could not be started: code %d", code)}
	}
	data, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return Run{TAP: tap.Parse(data, true), Exit: code}
}

// null starts an app that gives every request the same response.
func null(t *testing.T, status int) string {
	t.Helper()
	at, _ := serving(t, func(ctx context.Context, l net.Listener) error { return witness.Null(ctx, l, status) })
	return at
}

// serving runs a server until the test ends or stop is called.
func serving(t *testing.T, serve func(context.Context, net.Listener) error) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = serve(ctx, l) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}
