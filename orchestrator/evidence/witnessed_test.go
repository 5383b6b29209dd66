package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"abl/internal/witness"
)

// notes is the system under test of these suites; breaks selects its fault.
type notes struct {
	breaks string
	mu     sync.Mutex
	asked  int
}

func (n *notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.asked++
	trouble := n.breaks == "often" && n.asked%3 != 0 || n.breaks == "once" && n.asked == 1
	n.mu.Unlock()
	answer := func(status int, doc any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(doc)
	}
	var note struct {
		ID   int    `json:"id"`
		Text string `json:"text"`
	}
	switch {
	case trouble:
		answer(500, map[string]string{"error": "busy"})
	case r.URL.Path == "/health":
		answer(200, map[string]string{"status": "ok"})
	case r.Method == "POST" && json.NewDecoder(r.Body).Decode(&note) == nil && n.breaks == "status":
		answer(200, note)
	case r.Method == "POST":
		note.ID = 1
		answer(201, note)
	case r.URL.Path == "/notes/1":
		note.ID, note.Text = 1, "milk"
		answer(200, note)
	default:
		answer(404, map[string]string{"error": "not found"})
	}
}

const notesSpec = `GET /health → 200 {"status": "ok"}
POST /notes {"text": T} → 201 {"id": N, "text": T}
GET /notes/N → 200 {"id": N, "text": T}
GET /notes/unknown → 404 {"error": "not found"}`

// A suite that prints ok without testing, one line per contract.
const allOK = `
for n in 1 2 3 4; do echo "ok $n - P1.C$n"; done; echo 1..4`

// TestWitnessed runs suites of lazy, lying and honest Verifiers in a shell, through the witness.
func TestWitnessed(t *testing.T) {
	const honest = `
is() { if [ "$2" = "$3" ]; then echo "ok $1 - P1.C$1"; else echo "not ok $1 - P1.C$1"; fi; }
echo 1..4
is 1 "$(ask GET /health)" '200 {"status":"ok"}'
is 2 "$(ask POST /notes '{"text":"milk"}')" '201 {"id":1,"text":"milk"}'
is 3 "$(ask GET /notes/1)" '200 {"id":1,"text":"milk"}'
is 4 "$(ask GET /notes/99)" '404 {"error":"not found"}'`
	all := func(is string) string { return strings.Repeat(" "+is, 4)[1:] }
	for _, c := range []struct{ name, run, breaks, want string }{
		{"honest", honest, "", all("verified")},
		{"honest, and more than was asked", "\nask GET /health >answer; ask DELETE /notes/1 >answer" + honest, "", all("verified")},
		{"it looks at the address alone", `
case $ABL_APP_URL in http://127.0.0.1:*)` + allOK + `;; esac`, "", all("vacuous")},
		{"it asks nothing", allOK, "", all("vacuous")},
		{"any answer will do", `
test -n "$(ask GET /)" &&` + allOK[1:], "", all("not witnessed")},
		{"the first contract alone", `
test "$(ask GET /health)" = '200 {"status":"ok"}' &&` + allOK[1:], "", "verified not witnessed not witnessed not witnessed"},
		{"it asserts the wrong answer that it saw", strings.Replace(honest, "201 {\"id\":1", "200 {\"id\":0", 1), "status", "verified not witnessed verified verified"},
		{"it asks until the answer fits", `
again() { for i in 1 2 3 4; do "$@" && return; done; exit 1; }
health() { test "$(ask GET /health)" = '200 {"status":"ok"}'; }
post() { ask POST /notes '{"text":"milk"}' | grep -q ^201; }
read() { ask GET /notes/1 | grep -q ^200; }
miss() { ask GET /notes/99 | grep -q ^404; }
again health; again post; again read; again miss` + allOK, "often", all("flaky")},
		{"it asks again, and the app fails once", `
ask GET /health >answer` + honest, "once", all("verified")},
		{"it asserts no more than the status", `
is() { case "$3" in "$2 "*) echo "ok $1 - P1.C$1";; *) echo "not ok $1 - P1.C$1";; esac; }
echo 1..4
is 1 200 "$(ask GET /health)"; is 2 201 "$(ask POST /notes '{"text":"milk"}')"; is 3 200 "$(ask GET /notes/1)"; is 4 404 "$(ask GET /notes/99)"`, "", all("weak")},
		{"it asserts nothing, where another server responds as the app does", `
case "$(ask GET /zzz)" in *'not found'*) ;; *) exit 1;; esac
ask GET /health >answer; ask POST /notes '{"text":"milk"}' >answer; ask GET /notes/1 >answer; ask GET /notes/99 >answer` + allOK, "", all("weak")},
		{"all the right requests, and one assertion", `
ask POST /notes '{"text":"milk"}' >answer; ask GET /notes/1 >answer; ask GET /notes/99 >answer
test "$(ask GET /health)" = '200 {"status":"ok"}' &&` + allOK[1:], "", "verified weak weak weak"},
		{"ok without a server", `
ask GET /health >answer; ask POST /notes '{"text":"milk"}' >answer; ask GET /notes/1 >answer; ask GET /notes/9 >answer` + allOK, "", all("vacuous")},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"ask": "#!/bin/sh\nFETCH_TEST=ask exec '" + self + "' \"$@\"\n", "run.sh": "#!/bin/sh\nPATH=.:$PATH" + c.run + "\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Parallel() // programs are written before, because no other test may fork while one is open for writing
			app := &notes{breaks: c.breaks}
			watched := func(altering *witness.Altering) Run {
				var r Run
				var mu sync.Mutex
				p := witness.Proxy{To: listen(t, app), Altering: altering, Seen: func(x witness.Exchange) {
					mu.Lock()
					defer mu.Unlock()
					r.Record = append(r.Record, x)
				}}
				at, stop := serving(t, p.Serve)
				run := played(t, dir, at)
				stop()
				run.Watched, run.Record = true, r.Record
				return run
			}
			away, empty, broken := played(t, dir, "http://127.0.0.1:1"), played(t, dir, null(t, 200)), played(t, dir, null(t, 500))
			s := Suite{Away: &away, Empty: &empty, Broken: &broken}
			for i, line := range strings.Split(notesSpec, "\n") {
				action, result, _ := strings.Cut(line, " → ")
				claim, _ := witness.ReadClaim("", action, result)
				s.Contracts = append(s.Contracts, Contract{ID: "P1.C" + string(rune('1'+i)), Says: line, Claim: &claim})
			}
			for Again(nil, s) {
				s.Ran(watched(nil))
			}
			for all := s.Alterations(); len(all) > 0; all = s.Alterations() {
				for _, a := range all {
					s.RanAltered(a, watched(s.Altering(a)))
				}
			}
			f := Decide(nil, s)
			var got []string
			for _, st := range f.Contracts {
				got = append(got, st.Is)
			}
			if noted := strings.Contains(strings.Join(f.Notes, "\n"), "was repeated until its response matched"); noted != (c.breaks == "once") {
				t.Errorf("notes: got %q, want a repeated replay in them: %t", f.Notes, c.breaks == "once")
			}
			if passes := f.Verdict == Pass; passes != (c.want == all("verified")) {
				t.Errorf("verdict for %s: got %s, want a pass: %t", c.want, f.Verdict, c.want == all("verified"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s\n%s", got, c.want, strings.Join(f.Reasons, "\n"))
			}
		})
	}
}

func listen(t *testing.T, h http.Handler) string {
	at, _ := serving(t, func(ctx context.Context, l net.Listener) error {
		s := http.Server{Handler: h}
		context.AfterFunc(ctx, func() { s.Close() })
		return s.Serve(l)
	})
	return strings.TrimPrefix(at, "http://")
}

// ask prints the status and the body of a response: ask METHOD PATH [BODY].
func ask(args []string) int {
	var body io.Reader
	if len(args) > 2 {
		body = strings.NewReader(args[2])
	}
	req, err := http.NewRequest(args[0], os.Getenv("ABL_APP_URL")+args[1], body)
	if err != nil {
		return 2
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 7
	}
	defer resp.Body.Close()
	_, _ = io.WriteString(os.Stdout, strings.Fields(resp.Status)[0]+" ")
	_, _ = io.Copy(os.Stdout, resp.Body)
	return 0
}

// TestAskedUntilItFits checks contracts whose matching response came only after another one. Each row
// has the exchanges in order: request, status and body. "?" before a request means that the tests did
// not wait for the response.
func TestAskedUntilItFits(t *testing.T) {
	const errors, another = "1 of 2 responses were errors", "it got 200 with a different body before"
	for _, c := range []struct{ name, says, others, record, want string }{
		{"at once", `GET /a → 200 "ok"`, "", "GET /a 200 ok", ""},
		{"after an error", `GET /a → 200 "ok"`, "", "GET /a 500, GET /a 200 ok", errors},
		{"after no answer", `GET /a → 200 "ok"`, "", "GET /a 0, GET /a 200 ok", errors},
		{"after an error and another request", `GET /a → 200 "ok"`, "", "GET /a 500, GET /b 200, GET /a 200 ok", errors},
		{"after an error that it waits for", `GET /a → eventually 200 "ok"`, "", "GET /a 503, GET /a 200 ok", ""},
		{"after an error that a contract names", "POST /pay → 200", "POST /pay while the bank is gone → 502", "POST /pay 502, POST /pay 200", ""},
		{"after another error than that", "POST /pay → 200", "POST /pay while the bank is gone → 502", "POST /pay 500, POST /pay 200", errors},
		{"after another body", `GET /a → 200 {"n": 2}`, "", `GET /a 200 {"n":1}, GET /a 200 {"n":2}`, another},
		{"after another status", `GET /a → 200 "ok"`, "", "GET /a 404, GET /a 200 ok", "it got 404 before"},
		{"by other addresses", `GET /a → 200 {"n": 2}`, "", `GET /a?t=1 200 {"n":1}, GET /a?t=2 200 {"n":1}, GET /a 200 {"n":2}`, another},
		{"after another body and another request", `GET /a → 200 {"n": 2}`, "", `GET /a 200 {"n":1}, POST /a 201, GET /a 200 {"n":2}`, ""},
		{"after what another contract says", `GET /a → 200 {"n": 2}`, `GET /a at first → 200 {"n": 1}`, `GET /a 200 {"n":1}, GET /a 200 {"n":2}`, ""},
		{"after another note", "GET /notes/N → 200", "", "GET /notes/1 404, GET /notes/2 200", ""},
		{"later, as it says", "GET /a after 2 seconds → 410", "", "GET /a 200, GET /a 410", ""},
		{"many times, as it says", "GET /a more than 10 times within a minute → 429", "", "GET /a 200, GET /a 200, GET /a 429", ""},
		{"and another answer after it", `GET /a → 200 "ok"`, "", "GET /a 200 ok, GET /a 404", ""},
		{"when it did not wait", `GET /a → 200 "ok"`, "", "?GET /a 0, GET /a 200 ok", ""},
		{"after an error whose body it did not read", `GET /a → 200 "ok"`, "", "?GET /a 500, GET /a 200 ok", errors},
		{"after a status whose body it did not read", `GET /a → 200 "ok"`, "", "?GET /a 404, GET /a 200 ok", "it got 404 before"},
		{"when it did not wait for the body", `GET /a → 200 {"n": 2}`, "", `?GET /a 200 {"n", GET /a 200 {"n":2}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Suite
			for i, says := range []string{c.says, c.others} {
				action, result, _ := strings.Cut(says, " → ")
				if claim, ok := witness.ReadClaim("", action, result); ok {
					s.Contracts = append(s.Contracts, Contract{ID: fmt.Sprint("P1.C", i+1), Says: says, Claim: &claim})
				}
			}
			r := Run{Watched: true}
			for line := range strings.SplitSeq(c.record, ", ") {
				line, left := strings.CutPrefix(line, "?")
				words := append(strings.SplitN(line, " ", 4), "")
				status, err := strconv.Atoi(words[2])
				if err != nil {
					t.Fatal(err)
				}
				r.Record = append(r.Record, witness.Exchange{Method: words[0], Target: words[1], Status: status, Got: bodyOf(words[3]), Left: left})
			}
			s.Ran(r)
			got := strings.Join(s.repeated(s.Contracts[0]), "\n")
			if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q at its end", got, c.want)
			}
		})
	}
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Run
		want bool
	}{
		{"without a witness", Run{}, true},
		{"nothing", Run{Watched: true}, false},
		{"only a connection", Run{Watched: true, Record: []witness.Exchange{{Sent: witness.Body{Bytes: 3}}}}, false},
		{"no HTTP, and an answer", Run{Watched: true, Record: []witness.Exchange{{Got: witness.Body{Bytes: 3}}}}, true},
		{"a request without an answer", Run{Watched: true, Record: []witness.Exchange{{Method: "GET", Target: "/"}}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.run.asked(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestUnread checks that an app counts as unreadable by its responses, not by the requests.
func TestUnread(t *testing.T) {
	raw := func(sent, got string) witness.Exchange {
		return witness.Exchange{Sent: bodyOf(sent), Got: bodyOf(got)}
	}
	get := witness.Exchange{Method: "GET", Target: "/a", Status: 404}
	for _, c := range []struct {
		name   string
		record []witness.Exchange
		want   string
	}{
		{"it speaks first", []witness.Exchange{raw("", "220 hello")}, "verified"},
		{"TLS", []witness.Exchange{raw("\x16\x03\x01", "\x16\x03\x03"), raw("\x16\x03\x01", "")}, "verified"},
		{"TLS that refuses HTTP", []witness.Exchange{raw("\x16\x03\x01", "\x16\x03\x03"), {Method: "GET", Target: "/a", Got: bodyOf("\x15\x03\x01")}, {Method: "GET", Target: "/a"}}, "verified"},
		{"HTTP/2", []witness.Exchange{raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00")}, "verified"},
		{"it speaks first, and was asked by HTTP", []witness.Exchange{raw("", "HTTP/1.1 200 OK"), {Method: "GET", Target: "/a"}}, "not witnessed"},
		{"it answers HTTP by TLS", []witness.Exchange{{Method: "GET", Target: "/a", Got: bodyOf("\x15\x03\x01")}}, "not witnessed"},
		{"an unreadable response to HTTP", []witness.Exchange{raw("\x16\x03\x01", "\x16\x03\x03"), {Method: "GET", Target: "/a", Got: bodyOf("\r\nHTTP/1.1 200 OK")}}, "not witnessed"},
		{"noise that gets an error of HTTP", []witness.Exchange{raw("noise", "HTTP/1.1 400 Bad Request")}, "not witnessed"},
		{"noise that gets an error of no version", []witness.Exchange{raw("noise", "<!DOCTYPE HTML>")}, "not witnessed"},
		{"noise beside a request", []witness.Exchange{raw("noise", "?"), get}, "not witnessed"},
		{"noise that gets nothing", []witness.Exchange{raw("noise", "")}, "vacuous"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := suite("o")
			claim, _ := witness.ReadClaim("", "GET /a", "200")
			s.Contracts[0].Claim = &claim
			r := s.Real[0]
			s.Real, r.Watched, r.Record = nil, true, c.record
			s.Ran(r)
			f := Decide(nil, s)
			said := strings.Contains(strings.Join(f.Notes, "\n"), "cannot read the app's responses as HTTP")
			st := f.Contracts[0]
			if unread := c.want == "verified"; st.Is != c.want || said != unread || st.Unread != unread {
				t.Errorf("got %+v and notes %q, want %s", st, f.Notes, c.want)
			}
		})
	}
}

func bodyOf(s string) witness.Body { return witness.Body{Bytes: int64(len(s)), Begins: []byte(s)} }
