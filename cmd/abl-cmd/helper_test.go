//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
)

// bin is the folder with the helper under all its names, as in a container.
var bin string

func TestMain(m *testing.M) {
	if _, set := os.LookupEnv(supervises); set {
		supervisingMain()
		return
	}
	if _, set := os.LookupEnv(becomes); set {
		if err := becomeMain(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(withHelper(m.Run))
}

// withHelper builds the helper as it is shipped: static.
func withHelper(run func() int) int {
	dir, err := os.MkdirTemp("", "abl-cmd")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "helper"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	for _, name := range []string{helper.HelperCmd, helper.HelperRun, helper.HelperAgent, helper.HelperACP, helper.HelperBroker, helper.HelperHolder, helper.HelperProbe} {
		if err := os.Symlink("helper", filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	bin = dir
	return run()
}

// helperCommand returns a command of the helper that reads in, as JSON, instead of its usual file.
func helperCommand(t *testing.T, name string, in any, args ...string) *exec.Cmd {
	t.Helper()
	if in == nil {
		return exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(t.TempDir(), "in.json"), string(data))
	return exec.CommandContext(t.Context(), filepath.Join(bin, name), append([]string{"--in", path}, args...)...)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// begin starts a command and returns its output line by line.
func begin(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewScanner(out)
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

func TestHelperIsStatic(t *testing.T) {
	data := read(t, filepath.Join(bin, "helper"))
	if strings.Contains(data, "ld-linux") || strings.Contains(data, "ld-musl") {
		t.Error("helper: got the name of a dynamic loader in it, want none")
	}
	if r := finish(t, exec.Command(filepath.Join(bin, "helper"))); r.code != 2 || !strings.Contains(r.err, `unknown program name "helper"`) {
		t.Errorf("helper under another name: got %+v, want exit code 2 and an unknown program name", r)
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name, args, want string
	}{
		{helper.HelperAgent, "", "takes one argument"},
		{helper.HelperAgent, "/does/not/exist", "no such file"},
		{helper.HelperHolder, "x", `takes no argument "x"`},
		{helper.HelperHolder, "--deadline soon", "invalid value"},
		{helper.HelperHolder, "--listen nowhere", "cannot answer DNS"},
		{helper.HelperBroker, "", helper.Broker},
		{helper.HelperCmd, "", helper.Cmds},
		{helper.HelperProbe, "", "takes look NET, say WORD ADDRESS, listen or await SERVICES"},
		{helper.HelperProbe, "look {", "cannot read the network to probe"},
		{helper.HelperProbe, "say word nowhere", "cannot answer probes"},
	}
	for _, tt := range tests {
		r := finish(t, helperCommand(t, tt.name, nil, strings.Fields(tt.args)...))
		if r.code != 2 || !strings.Contains(r.err, tt.want) {
			t.Errorf("%s %s: got %+v, want %q", tt.name, tt.args, r, tt.want)
		}
	}
}

func TestHolder(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	cmd := helperCommand(t, helper.HelperHolder, nil, "--listen", addr)
	lines := begin(t, cmd)
	for lines.Scan() && lines.Text() != "ready" {
	}
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01")
	reply := make([]byte, 512)
	if n, err := conn.Read(reply); err != nil || n < 12 || reply[3]&15 != 3 {
		t.Errorf("got %x, %v; want NXDOMAIN", reply[:n], err)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("end after an interrupt: got error %v, want none", err)
	}
	if r := finish(t, helperCommand(t, helper.HelperHolder, nil, "--listen", addr, "--deadline", "1")); r.code != 0 {
		t.Errorf("holder past its deadline: got %+v, want exit code 0", r)
	}
}

// One probe finds the server of another.
func TestProbe(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	peer := helperCommand(t, helper.HelperProbe, nil, "say", "hello", at)
	if lines := begin(t, peer); !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("first line of the peer: got %q, want %q", lines.Text(), "ready")
	}
	spec, err := json.Marshal(helper.ProbeNet{Word: "hello", TCP: []string{at}, Peers: []helper.ProbePeer{{At: at, Say: "hello"}}})
	if err != nil {
		t.Fatal(err)
	}
	var found helper.Probed
	r := finish(t, helperCommand(t, helper.HelperProbe, nil, "look", string(spec)))
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 {
		t.Fatalf("probe: got %+v, error %v, want exit code 0 and JSON", r, err)
	}
	if c, _ := found.Proof.Get("peer " + at); !c.OK {
		t.Errorf("check of the peer: got %+v, want ok", c)
	}
	_, port, _ := strings.Cut(at, ":")
	for await, want := range map[string]string{
		`[{"name":"127.0.0.1","port":` + port + `,"timeout_ms":5000}]`:                                              `{"event":"ready",`,
		`[{"name":"127.0.0.1","port":` + port + `,"timeout_ms":5000},{"name":"127.0.0.1","port":1,"timeout_ms":1}]`: `{"event":"failed","name":"127.0.0.1","ms":`,
	} {
		if r := finish(t, helperCommand(t, helper.HelperProbe, nil, "await", await)); r.code != 0 || !strings.HasPrefix(r.out, want) {
			t.Errorf("await %s: got %+v, want exit code 0 and output that begins with %s", await, r, want)
		}
	}
	if c, _ := found.Proof.Get("the host by tcp"); c.OK || c.Got != at+" said the word" {
		t.Errorf("check of the host: got %+v, want a failure with %q", c, at+" said the word")
	}
	peer.Process.Signal(os.Interrupt)
	if err := peer.Wait(); err != nil {
		t.Errorf("end after an interrupt: got error %v, want none", err)
	}
}
