package broker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/helper"
)

// appEnv makes this test binary the app: it serves at the address in it.
const appEnv = "ABL_TEST_APP_ADDR"

func TestMain(m *testing.M) {
	if addr := os.Getenv(appEnv); addr != "" {
		fmt.Println("SOURCE-CANARY starting")
		err := http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/crash":
				os.Exit(7)
			case "/only-app":
				if !strings.HasPrefix(r.Host, "app:") {
					w.WriteHeader(http.StatusInternalServerError)
				}
			case "/only-localhost":
				if !strings.HasPrefix(r.Host, "localhost:") {
					w.WriteHeader(http.StatusForbidden)
				}
			case "/slow-to-localhost":
				if strings.HasPrefix(r.Host, "localhost:") {
					<-r.Context().Done()
				}
				w.WriteHeader(http.StatusForbidden)
			case "/broken":
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprintf(w, "SOURCE-CANARY %d", os.Getpid())
		}))
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bench is a running broker.
type bench struct {
	t       *testing.T
	spec    helper.BrokerSpec
	client  Client
	events  *bufio.Reader
	stop    func() error
	appPort int
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serve starts a broker; app is the address that the app listens on, with %d
// for its port, "" for no app.
func serve(t *testing.T, app string, edit func(*helper.BrokerSpec)) *bench {
	t.Helper()
	b := &bench{t: t, appPort: freePort(t)}
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	b.spec = helper.BrokerSpec{Deadline: time.Now().Add(time.Hour).Unix(), Token: "secret", Port: freePort(t), Dir: dir, Events: file("events"), Log: file("log")}
	if app != "" {
		b.spec.App = &helper.App{
			Command:   fmt.Sprintf("exec env %s="+app+" %s", appEnv, b.appPort, os.Args[0]),
			Port:      b.appPort,
			Path:      "/health",
			TimeoutMS: 60000,
		}
	}
	if edit != nil {
		edit(&b.spec)
	}
	b.client = Client{URL: fmt.Sprintf("http://127.0.0.1:%d", b.spec.Port), Token: "secret"}
	b.start()
	return b
}

func (b *bench) start() {
	f, err := os.Open(b.spec.Events)
	if err != nil {
		b.t.Fatal(err)
	}
	b.events = bufio.NewReader(f)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = Serve(ctx, b.spec)
	}()
	b.stop = func() error { cancel(); <-done; return err }
	b.t.Cleanup(func() { b.stop(); f.Close() })
	b.want(EventListening)
}

// next reads the next event; the file grows, so its end is only a pause.
func (b *bench) next() helper.Event {
	b.t.Helper()
	var line []byte
	for {
		part, err := b.events.ReadBytes('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if err != io.EOF || b.t.Context().Err() != nil {
			b.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	var ev helper.Event
	if err := json.Unmarshal(line, &ev); err != nil {
		b.t.Fatalf("event: got %q, error %v, want JSON", line, err)
	}
	return ev
}

func (b *bench) want(event string) helper.Event {
	b.t.Helper()
	ev := b.next()
	if ev.Event != event {
		b.t.Fatalf("got event %+v, want %s", ev, event)
	}
	return ev
}

func (b *bench) run(name, stdin string) helper.CommandReply {
	b.t.Helper()
	reply, err := b.client.Run(b.t.Context(), name, strings.NewReader(stdin))
	if err != nil {
		b.t.Fatal(err)
	}
	return reply
}

func (b *bench) get(path string) string {
	b.t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s:%d%s", "127.0.0.1", b.appPort, path))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func (b *bench) log() string {
	b.t.Helper()
	data, err := os.ReadFile(b.spec.Log)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func TestAppComesUpCrashesAndRestarts(t *testing.T) {
	b := serve(t, "0.0.0.0:%d", nil)
	if ev := b.want(EventReady); ev.Detail != "GET /health returned 200" || ev.Name != "app" {
		t.Errorf("event: got %+v, want app with %q", ev, "GET /health returned 200")
	}
	first := b.get("/")
	reply, err := b.client.Restart(t.Context())
	if err != nil || reply.Exit != 0 {
		t.Fatalf("restart: got %+v, error %v, want exit code 0", reply, err)
	}
	b.want(EventRestarted)
	if second := b.get("/"); second == first || !strings.Contains(second, "CANARY") {
		t.Errorf("response after a restart: got %q, before it %q, want a new process with CANARY", second, first)
	}
	b.get("/crash")
	if ev := b.want(EventExited); ev.Exit == nil || *ev.Exit != 7 {
		t.Errorf("got %+v, want exit code 7", ev)
	}
	if reply, err := b.client.Restart(t.Context()); err != nil || reply.Exit != 0 {
		t.Fatalf("restart after a crash: got %+v, error %v, want exit code 0", reply, err)
	}
	b.want(EventRestarted)
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if body := b.get("/"); strings.Contains(body, "CANARY") {
		t.Errorf("response after the end of the broker: got %q, want none of the app", body)
	}
	if !strings.Contains(b.log(), "SOURCE-CANARY starting") {
		t.Errorf("log: got %q, want one with the app's output", b.log())
	}
}

func TestAppDoesNotComeUp(t *testing.T) {
	tests := []struct {
		name, app string
		edit      func(*helper.BrokerSpec)
		exit      int // -1: the app runs on
		detail    string
	}{
		{"loopback", "127.0.0.1:%d", nil, -1, loopbackOnly},
		{"exits", "127.0.0.1:%d", func(s *helper.BrokerSpec) { s.App.Command = "echo SOURCE-CANARY; exit 3" }, 3,
			"the app ended with exit code 3 before it was ready; last probe: GET /health: connection refused"},
		{"no command", "127.0.0.1:%d", func(s *helper.BrokerSpec) { s.App.Command = "no-such-program" }, 127,
			"the app ended with exit code 127 before it was ready; last probe: GET /health: connection refused"},
		{"returns 500", "0.0.0.0:%d", func(s *helper.BrokerSpec) { s.App.Path, s.App.TimeoutMS = "/broken", 1500 }, -1, "GET /broken returned 500"},
		{"silent", "0.0.0.0:%d", func(s *helper.BrokerSpec) { s.App.Command, s.App.TimeoutMS = "exec sleep 1000", 200 }, -1, "GET /health: connection refused"},
		{"knows its own names only", "0.0.0.0:%d", func(s *helper.BrokerSpec) { s.App.Path, s.App.TimeoutMS = "/only-localhost", 1500 }, -1,
			"GET /only-localhost returned 403 for the host name app and 200 for localhost: the app must accept the host name app, which the tests use"},
		{"refuses its name, and the time is over before localhost answers", "0.0.0.0:%d", func(s *helper.BrokerSpec) {
			s.App.Path, s.App.TimeoutMS = "/slow-to-localhost", 500
		}, -1, "not ready after"},
		{"service away", "0.0.0.0:%d", func(s *helper.BrokerSpec) {
			s.Services = []helper.Service{{Name: "127.0.0.1", Port: 1, TimeoutMS: 100}}
		}, -1, "port 1: connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.app, tt.edit)
			ev := b.want(EventFailed)
			if !strings.Contains(ev.Detail, tt.detail) || strings.Contains(ev.Detail, "CANARY") {
				t.Errorf("got %q, want %q", ev.Detail, tt.detail)
			}
			if (tt.exit < 0) != (ev.Exit == nil) || ev.Exit != nil && *ev.Exit != tt.exit {
				t.Errorf("got %+v, want exit code %d", ev, tt.exit)
			}
		})
	}
}

// The ready check asks for the app by the name that its tests use.
func TestReadyCheckAsksForTheAppByName(t *testing.T) {
	b := serve(t, "0.0.0.0:%d", func(s *helper.BrokerSpec) { s.App.Path, s.App.TimeoutMS = "/only-app", 5000 })
	if ev := b.next(); ev.Event != EventReady {
		t.Errorf("got %+v, want ready", ev)
	}
}

// A response that is not HTTP can contain anything, so no part of it is reported.
func TestProbeQuotesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "SOURCE-CANARY\n\n")
			conn.Close()
		}
	}()
	app := helper.App{Port: l.Addr().(*net.TCPAddr).Port, Path: "/"}
	if a := probe(t.Context(), app, "127.0.0.1"); a.ready || a.detail != "GET /: the response is not HTTP" {
		t.Errorf("probe: got %+v, want %q", a, "GET /: the response is not HTTP")
	}
}

func TestLogIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"0123456789":            "0123456789",
		"0123456789, and so on": "0123456789\nabl: the log is full: 11 more bytes were left out\n",
	} {
		var kept bytes.Buffer
		log, err := keepLog(&kept, 10)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(log.pipe, text)
		if log.close(); kept.String() != want {
			t.Errorf("log of %q: got %q, want %q", text, kept.String(), want)
		}
	}
}

// A program that outlives the broker holds the pipe, and the log ends all the same.
func TestLogEndsAlthoughThePipeIsHeld(t *testing.T) {
	var kept bytes.Buffer
	log, err := keepLog(&kept, 10)
	if err != nil {
		t.Fatal(err)
	}
	held, err := syscall.Dup(int(log.pipe.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(held)
	io.WriteString(log.pipe, "text")
	if log.close(); kept.String() != "text" {
		t.Errorf("log: got %q, want text", kept.String())
	}
}
