package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/gateway"
)

const (
	canary = "sk-CANARY-5a4b3c2d1e0f9876"
	token  = "call-token-0123456789"
)

// program is the gateway as it is shipped: static.
var program string

func TestMain(m *testing.M) { os.Exit(built(m.Run)) }

func built(run func() int) int {
	dir, err := os.MkdirTemp("", "abl-gateway")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "abl-gateway")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	return run()
}

// started is a running gateway.
type started struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	all    bytes.Buffer // what it wrote to either output
	listen string
}

func launch(t *testing.T, upstream string, changes ...func(*gateway.Setup)) *started {
	t.Helper()
	s := &started{cmd: exec.Command(program)}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(io.TeeReader(out, &s.all))
	s.cmd.Stderr = &s.all
	s.cmd.Env = []string{"HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1", "GEMINI_API_KEY=another-key-that-nobody-reads"}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()
	})
	setup := gateway.Setup{Listen: "127.0.0.1:0", Call: gateway.Call{ID: "c1", Token: token, Deadline: time.Now().Add(time.Hour).Unix()}}
	for api := range paths {
		setup.Providers = append(setup.Providers, gateway.Provider{Name: api, Upstream: upstream, Key: canary, Models: []string{"m"}})
	}
	for _, change := range changes {
		change(&setup)
	}
	line, err := json.Marshal(setup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	s.listen = s.line(t).Listen
	return s
}

// line returns the next line, except those for the start of a request.
func (s *started) line(t *testing.T) (e gateway.Entry) {
	t.Helper()
	for e.Kind == "" || e.Kind == "begin" {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("log: got error %v after %s, want one more line", err, s.all.String())
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("line of the log: got %q, error %v, want JSON", line, err)
		}
	}
	return e
}

func (s *started) ask(t *testing.T, path, body string) (status int, words string) {
	t.Helper()
	status, _, words = s.asks(t, path, body)
	return status, words
}

func (s *started) asks(t *testing.T, path, body string) (int, http.Header, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.listen+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Goog-Api-Key", token)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// TestKeyIsNowhere looks for the key in everything that others can see of the
// process. That the provider gets it shows that the search would find it.
func TestKeyIsNowhere(t *testing.T) {
	got := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got <- q.Header.Get("X-Goog-Api-Key")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"message":"no such key: `+canary+`"}}`)
	}))
	defer provider.Close()
	s := launch(t, provider.URL)
	seen := ""
	for _, path := range []string{"/c1/gemini/v1beta/models/m:generateContent", "/c1/gemini/" + canary, "/c1/gemini/v1beta/models/" + canary + ":generateContent"} {
		_, body := s.ask(t, path, "{}")
		if strings.HasPrefix(body, `{"error":{"code":40`) { // the gateway's own words, which repeat what the client sent
			body = ""
		}
		seen += body
		s.line(t)
	}
	if key := <-got; key != canary {
		t.Fatalf("key at the provider: got %q, want %q", key, canary)
	}
	for _, name := range []string{"cmdline", "environ", "status", "comm"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, name))
		if err != nil {
			t.Fatal(err)
		}
		seen += string(data)
	}
	io.WriteString(s.in, `{"call":{"id":"`+canary+`"},"x":"`+canary+`"}`+"\n"+canary+"\n")
	s.line(t)
	s.line(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	seen += s.all.String()
	for _, secret := range []string{canary, token} {
		if strings.Contains(seen, secret) {
			t.Errorf("visible text: got %s in %s, want no secret", secret, seen)
		}
	}
}

func TestSignalEndsIt(t *testing.T) {
	s := launch(t, "http://127.0.0.1:1")
	s.in.Close()
	if status, _ := s.ask(t, "/c1/gemini/x", ""); status != http.StatusNotFound {
		t.Errorf("status after the end of its input: got %d, want %d", status, http.StatusNotFound)
	}
	s.line(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := s.line(t); e.Kind != gateway.Ended {
		t.Errorf("got %+v, want the kind %s", e, gateway.Ended)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// It links only Go's own modules, because it has the keys.
func TestItIsStatic(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("build settings: got %s, error %v, want CGO_ENABLED=0", out, err)
	}
	for line := range strings.Lines(string(out)) {
		if module, is := strings.CutPrefix(strings.TrimSpace(line), "dep\t"); is && !strings.HasPrefix(module, "golang.org/x/") {
			t.Errorf("linked module: got %s, want only modules of golang.org/x", module)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for want, cmd := range map[string]*exec.Cmd{
		"exit status 2: abl-gateway: takes no arguments; it reads its settings from standard input\n":                                   exec.CommandContext(t.Context(), program, "--key", canary),
		"exit status 1: abl-gateway: cannot read the setup line: want JSON with the fields of this gateway; the error is near byte 0\n": exec.CommandContext(t.Context(), program),
	} {
		cmd.Stdin = strings.NewReader(canary + "\n")
		out, err := cmd.CombinedOutput()
		if got := fmt.Sprintf("%v: %s", err, out); got != want {
			t.Errorf("end of the gateway: got %s, want %s", got, want)
		}
	}
}
