package challenge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func answerOf(status, head, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, head, len(body), body)
}

const isJSON = "Content-Type: application/json\r\n"

// answers are those of an app with all that HTTP/1 knows.
func answers() map[string]string {
	big := `["` + strings.Repeat("x", maxBody) + `"]`
	return map[string]string{
		"/":          answerOf("200 Fine", isJSON+"x-Odd:  spaces \r\n", `{"a": 1}`),
		"/text":      answerOf("200 OK", "", "hello"),
		"/empty":     "HTTP/1.1 204 No Content\r\n\r\n",
		"/missing":   answerOf("404 Not Found", isJSON, `{"a": 1}`),
		"/same":      "HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n",
		"/chunks":    "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\n{\"a\r\n6\r\n\": [1]\r\n01\r\n}\r\n0\r\nTrail: er\r\n\r\n",
		"/none":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"/big":       answerOf("200 OK", isJSON, big),
		"/bigchunks": "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(big), big) + "0\r\n\r\n",
		"/lines":     "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"/zip":       answerOf("200 OK", isJSON+"Content-Encoding: gzip\r\n", "\x1f\x8b"),
		"/echo":      answerOf("201 Created", "Location: /echo/1\r\n", "abc"),
		"/ws":        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nwelcome ",
		"":           "HTTP/1.1 200 Connected\r\n\r\n",
		"/no":        answerOf("426 Upgrade Required", "", ""),
		"/hints":     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answerOf("200 OK", "", "x"),
		"/api":       answerOf("200 OK", "Content-Type: application/vnd.x+json; charset=utf-8\r\n", "[1]"),
		"/docs":      answerOf("200 OK", "Content-Type: application/stream+json\r\n", "[1]"),
		"/close":     "HTTP/1.1 200 OK\r\n" + isJSON + "\r\n{\"a\": 1}",
		"/cut/close": "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 50\r\n\r\n{\"a\": 1}",
		"/bad/close": "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\nzz\r\nrest",
		"/odd":       "HTP 200\r\n\r\nwhat",
		"/twice":     answerOf("200 OK", "", "x") + answerOf("408 Request Timeout", "", "y"),
		"/long":      "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 2*lineSize) + "\r\nContent-Length: 0\r\n\r\n",
		"/sse/close": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	}
}

func get(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: app\r\n\r\n", p)
	}
	return b.String()
}

// Through the proxy that changes nothing, and through each that finds nothing
// to change, comes the very same as without one, byte by byte.
func TestUntouched(t *testing.T) {
	app := rawApp(t, answers())
	control, end := proxied(t, app, Control)
	var all []string
	for path := range answers() {
		if path != "" { // of a tunnel
			all = append(all, path)
		}
	}
	slices.Sort(all)
	said := []string{
		get("/", "/text", "/empty", "/missing", "/same", "/chunks", "/lines", "/hints", "/"),
		"HEAD / HTTP/1.1\r\nHost: app\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\n\r\nabc" + get("/"),
		"POST /echo HTTP/1.1\r\nHost: app\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + get("/"),
		"GET / HTTP/1.0\r\n\r\n",
		"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"GET /no HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + get("/"),
		"GET /x/close HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
		"GET /odd HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n", "GET /long HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\nmore",
		"CONNECT app:1 HTTP/1.1\r\nHost: a\r\n\r\n\x00\x01",
		"\x16\x03\x01binary", "hello\nGET / HTTP/1.1\r\n\r\n", "get / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "\r\n" + get("/"),
		"GET / HTTP/1.1\r\nbroken\r\n\r\n", "GET /" + strings.Repeat("a", 2*lineSize) + " HTTP/1.1\r\n\r\n",
		get("/") + "no more HTTP",
	}
	for _, path := range all {
		said = append(said, get(path))
	}
	for _, s := range said {
		if want, got := say(t, app, s), say(t, control, s); got != want {
			t.Errorf("%.60q: %.300q, want %.300q", s, got, want)
		}
	}
	r := end()
	want := []string{"status-200-201", "status-201-200", "status-204-200", "status-404-200", "header-location", "header-content-type",
		"body-empty", "field-first", "value-number", "value-null", "array-short", "array-long", "create-twice", "forget-create"}
	slices.Sort(want)
	slices.Sort(r.Could)
	if diff := cmp.Diff(want, r.Could); diff != "" || r.Applied != 0 {
		t.Errorf("applied %d, could (-want +got)\n%s", r.Applied, diff)
	}
	if r.Unread < 12 || r.Answers < 30 {
		t.Errorf("%+v", r)
	}
}

// A write is seen for what it is whatever its answer.
func TestCould(t *testing.T) {
	app := rawApp(t, answers())
	for _, path := range []string{"/", "/big", "/empty", "/close"} {
		at, end := proxied(t, app, Control)
		say(t, at, "PUT "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		if r := end(); !slices.Contains(r.Could, "forget-change") || slices.Contains(r.Could, "forget-create") {
			t.Errorf("%s: %v", path, r.Could)
		}
	}
	at, end := proxied(t, app, Control)
	say(t, at, "PUT /missing HTTP/1.1\r\nHost: a\r\n\r\n")
	if r := end(); slices.Contains(r.Could, "forget-change") {
		t.Errorf("a write that was refused: %v", r.Could)
	}
}

// Each mutation changes what it says, and nothing else.
func TestMutants(t *testing.T) {
	app := rawApp(t, answers())
	json := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 Fine\r\n%sx-Odd:  spaces \r\nContent-Length: %d\r\n\r\n%s", isJSON, len(body), body)
	}
	for _, c := range []struct {
		name, path, want string // "" is the answer as it is
		applied          int
	}{
		{"status-200-201", "/", strings.Replace(answers()["/"], "200 Fine", "201 Created", 1), 1},
		{"status-200-201", "/lines", "HTTP/1.1 201 Created\nContent-Length: 2\n\nok", 1},
		{"status-200-201", "/close", strings.Replace(answers()["/close"], "200 OK", "201 Created", 1), 1},
		{"status-200-201", "/missing", "", 0},
		{"status-201-200", "/echo", strings.Replace(answers()["/echo"], "201 Created", "200 OK", 1), 1},
		{"status-204-200", "/empty", emptyOK, 1},
		{"status-404-200", "/missing", strings.Replace(answers()["/missing"], "404 Not Found", "200 OK", 1), 1},
		{"status-refused-200", "/missing", "", 0},
		{"header-location", "/echo", strings.Replace(answers()["/echo"], "Location: /echo/1\r\n", "", 1), 1},
		{"header-content-type", "/chunks", strings.Replace(answers()["/chunks"], isJSON, "", 1), 1},
		{"header-content-type", "/text", "", 0},
		{"body-empty", "/text", emptyOK, 1},
		{"body-empty", "/chunks", "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 0\r\n\r\n", 1},
		{"body-empty", "/big", "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 0\r\n\r\n", 1},
		{"body-empty", "/empty", "", 0},
		{"body-empty", "/none", emptyOK, 0},
		{"body-empty", "/missing", "", 0},
		{"body-empty", "/sse/close", "", 0},
		{"field-first", "/", json("{}"), 1},
		{"value-number", "/", json(`{"a": 2}`), 1},
		{"value-number", "/chunks", "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 10\r\n\r\n" + `{"a": [2]}`, 1},
		{"value-number", "/close", "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 8\r\n\r\n" + `{"a": 2}`, 1},
		{"value-number", "/api", strings.Replace(answers()["/api"], "[1]", "[2]", 1), 1},
		{"value-number", "/docs", "", 0},
		{"value-number", "/missing", "", 0},
		{"value-number", "/text", "", 0},
		{"value-number", "/zip", "", 0},
		{"value-number", "/cut/close", "", 0},
		{"value-text", "/", "", 0},
		{"value-text", "/big", "", 0},
		{"value-text", "/bigchunks", "", 0},
		{"array-short", "/chunks", "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 9\r\n\r\n" + `{"a": []}`, 1},
		{"forget-create", "/", "", 0},
	} {
		t.Run(c.name+c.path, func(t *testing.T) {
			at, end := proxiedTo(t, app, c.name)
			what := get(c.path)
			want := c.want
			if want == "" {
				want = answers()[c.path]
			}
			if got := say(t, at, what); got != want {
				t.Errorf("%.300q, want %.300q", got, want)
			}
			said := end()
			if r := said[len(said)-1]; r.Applied != c.applied || r.Mutation != c.name || r.Could != nil || len(said) != 1+c.applied {
				t.Errorf("reports %+v", said)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for from, to := range map[int]int{400: 422, 401: 403, 403: 401, 409: 400, 422: 400, 404: 404, 200: 200, 500: 500} {
		if got := refusedOtherwise(from); got != to {
			t.Errorf("%d becomes %d", from, got)
		}
		if got := refusedToSuccess(from); (got == 200) != (from != to || from == 200) {
			t.Errorf("%d becomes %d", from, got)
		}
	}
	for from, to := range map[int]int{301: 200, 308: 200, 300: 300, 304: 304} {
		if got := redirectToSuccess(from); got != to {
			t.Errorf("%d becomes %d", from, got)
		}
	}
}

// Whoever speaks first is heard: an app that greets, and one that talks while it
// is still being talked to.
func TestServerFirst(t *testing.T) {
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, l, func(_ context.Context, conn net.Conn) {
			_, _ = io.WriteString(conn, "220 ready\r\n")
			r := bufio.NewReader(conn)
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "250 "+line)
			}
		})
	})
	at, _ := proxied(t, app, "status-200-201")
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, step := range []string{"", "EHLO me\r\n", "QUIT\r\n"} {
		want := "250 " + step
		if step == "" {
			want = "220 ready\r\n"
		} else if _, err := io.WriteString(conn, step); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); got != want || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// An app that has said all that it has to say still hears.
func TestHalfClosed(t *testing.T) {
	heard := make(chan string, 1)
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, l, func(_ context.Context, conn net.Conn) {
			_, _ = io.WriteString(conn, "bye\n")
			closeWrite(conn)
			data, _ := io.ReadAll(conn)
			heard <- string(data)
		})
	})
	at, _ := proxied(t, app, Control)
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "bye\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := io.WriteString(conn, "one more thing"); err != nil {
		t.Error(err)
	}
	conn.Close()
	if got := <-heard; got != "one more thing" {
		t.Errorf("the app hears %q", got)
	}
}

// What is too long to be held streams: its beginning is here before its end is there.
func TestStreams(t *testing.T) {
	more := make(chan bool)
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, l, func(_ context.Context, conn net.Conn) {
			if _, err := readHead(bufio.NewReader(conn)); err != nil {
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s\r\n[\"%s", isJSON, strings.Repeat("x", maxBody))
			<-more
			_, _ = io.WriteString(conn, `"]`)
		})
	})
	for _, name := range []string{Control, "value-text", "body-empty"} {
		at, end := proxied(t, app, name)
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, get("/")); err != nil {
			t.Fatal(err)
		}
		if name != "body-empty" {
			if _, err := io.ReadFull(conn, make([]byte, maxBody)); err != nil {
				t.Fatal(err)
			}
		}
		more <- true
		rest, err := io.ReadAll(conn)
		conn.Close()
		if name != "body-empty" && !strings.HasSuffix(string(rest), `x"]`) || err != nil {
			t.Errorf("%s: it ends with %.50q, %v", name, rest, err)
		}
		if r := end(); r.Applied != map[string]int{"body-empty": 1}[name] {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// An app that is not there is as if it had closed the connection.
func TestNoApp(t *testing.T) {
	at, end := proxied(t, "127.0.0.1:1", Control)
	if got := say(t, at, get("/")); got != "" {
		t.Errorf("%q", got)
	}
	if r := end(); r.Answers != 0 {
		t.Errorf("%+v", r)
	}
}
