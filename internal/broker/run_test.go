package broker

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
)

// idle returns a broker without an app, with these commands.
func idle(t *testing.T, commands ...helper.Command) *bench {
	t.Helper()
	for i := range commands {
		commands[i].TimeoutMS = cmp.Or(commands[i].TimeoutMS, 60_000)
	}
	return serve(t, "", func(s *helper.BrokerSpec) { s.Commands = commands })
}

func TestRunCommands(t *testing.T) {
	b := idle(t,
		helper.Command{Name: "lint", Command: "echo SOURCE-CANARY; echo SOURCE-CANARY >&2; exit 3"},
		helper.Command{Name: "query", Command: "echo out; echo err >&2", Shown: true},
		helper.Command{Name: "stdin", Command: "wc -c", Shown: true},
		helper.Command{Name: "much", Command: "head -c 100000 /dev/zero | tr '\\0' x", Shown: true},
		helper.Command{Name: "raw", Command: `printf '\377'`, Shown: true},
		helper.Command{Name: "killed", Command: "kill -9 $$"},
		helper.Command{Name: "where", Command: "pwd", Shown: true},
	)
	tests := []struct {
		name, stdin string
		want        helper.CommandReply
	}{
		{"lint", "", helper.CommandReply{Exit: 3}},
		{"query", "", helper.CommandReply{Output: "out\nerr\n"}},
		{"stdin", "12345", helper.CommandReply{Output: "5\n"}},
		{"much", "", helper.CommandReply{Output: strings.Repeat("x", maxShown), Truncated: true}},
		{"raw", "", helper.CommandReply{Output: "\uFFFD"}},
		{"killed", "", helper.CommandReply{Exit: 137}},
		{"where", "", helper.CommandReply{Output: b.spec.Dir + "\n"}},
		{"nothing", "", helper.CommandReply{Exit: 2, Error: `there is no command "nothing"; the declared commands are: killed, lint, much, query, raw, stdin, where`}},
		{"../restart", "", helper.CommandReply{Exit: 2, Error: `there is no command "../restart"; the declared commands are: killed, lint, much, query, raw, stdin, where`}},
		{"lint; id", "", helper.CommandReply{Exit: 2, Error: `there is no command "lint; id"; the declared commands are: killed, lint, much, query, raw, stdin, where`}},
	}
	for _, tt := range tests {
		if got := b.run(tt.name, tt.stdin); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		if tt.want.Exit == 2 {
			continue
		}
		if ev := b.want(EventCommand); ev.Name != tt.name || *ev.Exit != tt.want.Exit {
			t.Errorf("event: got %s with exit code %d, want %s with %d", ev.Name, *ev.Exit, tt.name, tt.want.Exit)
		}
	}
	b.stop()
	if log := b.log(); !strings.Contains(log, "abl: lint starts\nSOURCE-CANARY\nSOURCE-CANARY\nabl: lint ended with exit code 3\n") || !strings.Contains(log, "abl: query starts\nout\nerr\n") {
		t.Errorf("log: got %.300q, want one with the output of lint and query", log)
	}
}

// A command is stopped at its limit, and its output up to there is shown. On a busy machine the
// shell may not print within the first limit, so that a second one follows.
func TestCommandAtItsLimit(t *testing.T) {
	const command = "echo started; sleep 1000; :"
	b := idle(t,
		helper.Command{Name: "100ms", Command: command, TimeoutMS: 100, Shown: true},
		helper.Command{Name: "20s", Command: command, TimeoutMS: 20_000, Shown: true},
	)
	got := b.run("100ms", "")
	want := helper.CommandReply{Exit: 124, Output: "started\n", Error: "stopped after 100ms"}
	if got.Output == "" {
		got, want.Error = b.run("20s", ""), "stopped after 20s"
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A tool's standard input is often a pipe that is never closed.
func TestCommandThatDoesNotReadIsNotHeldUp(t *testing.T) {
	b := idle(t, helper.Command{Name: "quick", Command: "exit 4"})
	r, w := io.Pipe()
	defer w.Close()
	reply, err := b.client.Run(t.Context(), "quick", r)
	if err != nil || reply.Exit != 4 {
		t.Errorf("reply: got %+v, error %v, want exit code 4", reply, err)
	}
}

// A client that still sends after the reply was written must be able to read the reply.
func TestReplyReachesClientThatStillSends(t *testing.T) {
	b := idle(t, helper.Command{Name: "quick", Command: "exit 4"})
	tests := []struct {
		name, token, path string
		sent              func()
		want              helper.CommandReply
	}{
		{"run", b.client.Token, "/run/quick", func() { b.want(EventCommand) }, helper.CommandReply{Exit: 4}},
		{"refused", "wrong", "/run/quick", func() {}, helper.CommandReply{Exit: 2, Error: "the token is wrong"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.client.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: app\r\nAuthorization: Bearer %s\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n", tt.path, tt.token)
			tt.sent()
			got := bufio.NewReader(conn)
			if _, err := got.Peek(1); err != nil {
				t.Fatal(err)
			}
			for i := range 256 {
				if _, err := fmt.Fprintf(conn, "4000\r\n%s\r\n", strings.Repeat("x", 0x4000)); err != nil {
					t.Fatalf("error after %d kB: got %v, want none", i*16, err)
				}
			}
			resp, err := http.ReadResponse(got, nil)
			if err != nil {
				t.Fatal(err)
			}
			var reply helper.CommandReply
			if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || reply != tt.want {
				t.Errorf("got %+v, %v, want %+v", reply, err, tt.want)
			}
		})
	}
}

func TestTooMuchInput(t *testing.T) {
	b := idle(t, helper.Command{Name: "eat", Command: "cat >/dev/null; sleep 1000"})
	reply, err := b.client.Run(t.Context(), "eat", io.LimitReader(endless{}, maxStdin+1))
	if err == nil && (reply.Exit != 2 || reply.Error != errStdin.Error()) {
		t.Errorf("reply: got %+v, want exit code 2 and %q", reply, errStdin)
	}
	if ev := b.want(EventCommand); *ev.Exit != 2 {
		t.Errorf("exit code of the event: got %d, want 2", *ev.Exit)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// Two runs of the same command would work on the same data.
func TestOneAtATime(t *testing.T) {
	// The command is busy long enough that a second one would find its directory.
	b := idle(t, helper.Command{Name: "once", Command: "mkdir busy && sleep 0.05 && rmdir busy", Shown: true})
	replies := make(chan helper.CommandReply)
	for range 5 {
		go func() {
			reply, err := b.client.Run(t.Context(), "once", nil)
			if err != nil {
				reply.Exit = -1
			}
			replies <- reply
		}()
	}
	for range 5 {
		if reply := <-replies; reply.Exit != 0 {
			t.Errorf("reply: got %+v, want exit code 0", reply)
		}
	}
}

func TestBackground(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	b := idle(t,
		helper.Command{Name: "start", Command: "echo $$ >>" + pid + "; exec sleep 1000", Background: true},
		helper.Command{Name: "fails", Command: "exit 5", Background: true},
		helper.Command{Name: "end", Command: "kill $(tail -1 " + pid + ")"},
	)
	for range 2 { // the second call restarts it
		if reply := b.run("start", ""); reply != (helper.CommandReply{}) {
			t.Fatalf("reply of start: got %+v, want an empty one", reply)
		}
		b.want(EventCommand)
	}
	if reply := b.run("fails", ""); reply.Exit != 5 {
		t.Errorf("reply of fails: got %+v, want exit code 5", reply)
	}
	b.want(EventCommand)
	b.run("end", "")
	seen := map[string]int{}
	for range 2 {
		ev := b.next()
		seen[ev.Event+" "+ev.Name] = *ev.Exit
	}
	if code, ok := seen["exited start"]; !ok || code != 143 {
		t.Errorf("got %v, want that start exited with 143", seen)
	}
	if reply, err := b.client.Restart(t.Context()); err != nil || reply.Exit != 2 || reply.Error == "" {
		t.Errorf("restart without an app: got %+v, error %v, want exit code 2 and an error", reply, err)
	}
}

// If a program ends before abl stops it, for example for a restart, its end is reported.
func TestEndBeforeAStop(t *testing.T) {
	for command, want := range map[string]string{"exit 7": `"exit":7`, "exec sleep 1000": ""} {
		t.Run(command, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := openForAbl(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			log, err := keepLog(io.Discard, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer log.close()
			p := &program{server: &server{events: &events{file: f}, log: log}, Command: helper.Command{Command: command}}
			r, err := p.start()
			if err != nil {
				t.Fatal(err)
			}
			if want != "" {
				<-r.ended
			}
			p.stop()
			p.watch(r)
			got, err := os.ReadFile(path)
			if err != nil || (want == "") != (len(got) == 0) || !strings.Contains(string(got), want) {
				t.Errorf("events: got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestStopEndsBackgroundCommands(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	b := idle(t, helper.Command{Name: "start", Command: "echo $$ >" + pid + "; trap '' TERM; sleep 1000 & wait", Background: true})
	b.run("start", "")
	b.stop()
	data, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(data))); err == nil {
		t.Errorf("process %s: got it running, want it ended", strings.TrimSpace(string(data)))
	}
}

func TestAPIRefuses(t *testing.T) {
	b := idle(t, helper.Command{Name: "x", Command: "true"})
	tests := []struct {
		method, path, auth string
		want               int
	}{
		{"POST", "/run/x", "", 401},
		{"POST", "/run/x", "Bearer wrong", 401},
		{"POST", "/run/x", "secret", 401},
		{"POST", "/run/x", "Bearer secre", 401},
		{"POST", "/restart", "", 401},
		{"GET", "/list", "Bearer secret", 404},
		{"GET", "/run/x", "Bearer secret", 405},
		{"POST", "/run/y", "Bearer secret", 404},
		{"POST", "/other", "Bearer secret", 404},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, b.client.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", tt.auth)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s %s with %q: got %d, want %d", tt.method, tt.path, tt.auth, resp.StatusCode, tt.want)
		}
		if strings.Contains(string(body), "true") {
			t.Errorf("reply to %s %s: got %s, want one without the command", tt.method, tt.path, body)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []helper.BrokerSpec{
		{Token: "t", Events: file + "x", Log: file},
		{Token: "t", Events: file, Log: file + "x"},
		{Token: "t", Events: file, Log: file, Port: -1},
	}
	for i, spec := range tests {
		spec.Deadline = time.Now().Add(time.Hour).Unix()
		if err := Serve(t.Context(), spec); err == nil {
			t.Errorf("error of spec %d: got none, want one", i)
		}
	}
	if err := Serve(t.Context(), helper.BrokerSpec{Token: "t", Events: file, Log: file, Deadline: 1}); err != nil {
		t.Errorf("error past the deadline: got %v, want none", err)
	}
}
