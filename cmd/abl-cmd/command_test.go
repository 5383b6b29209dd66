//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
)

const phase1 = "# Phase 1: Hello\n\n## Context\n\nA greeting.\n\n## Contracts\n\n- GET / → 200 hello\n- GET /x → 404\n"

// role is the CmdSpec of a role with a spec of two contracts.
func role(t *testing.T, name string) helper.CmdSpec {
	t.Helper()
	specs := t.TempDir()
	write(t, filepath.Join(specs, "phase1.md"), phase1)
	return helper.CmdSpec{Role: name, Phase: 1, Iteration: 2, Specs: specs, Dir: t.TempDir(), Commands: []helper.Command{
		{Name: "health_check", Description: "lint and types", Command: "echo out; echo err >&2; exit 3"},
		{Name: "cat", Description: "copies", Command: "cat; pwd"},
		{Name: "slow", Command: "echo started; sleep 1000; :", TimeoutMS: 2000},
		{Name: "start", Command: "sleep 1000", Background: true},
	}}
}

func TestCommandsHere(t *testing.T) {
	spec := role(t, "builder")
	const noSpec = "abl-cmd: get-spec needs the number of a phase: one of [1]\n"
	tests := []struct {
		args, stdin string
		want        result
	}{
		{"health_check", "", result{3, "out\n", "err\n"}},
		{"cat", "data", result{0, "data" + spec.Dir + "\n", ""}},
		{"slow", "", result{124, "started\n", "abl-cmd: slow was stopped after 2s\n"}},
		{"start", "", result{2, "", "abl-cmd: start starts the system in the background, which works only in the app's container\n"}},
		{"restart", "", result{2, "", "abl-cmd: restart works only where abl runs the app\n"}},
		{"lint", "", result{2, "", `abl-cmd: unknown command "lint"; abl-cmd list shows the commands` + "\n"}},
		{"cat /etc/passwd", "", result{2, "", `abl-cmd: cat takes no arguments, but got "/etc/passwd"; nothing was run` + "\n"}},
		{"list x", "", result{2, "", `abl-cmd: list takes no arguments, but got "x"; nothing was run` + "\n"}},
		{"get-spec 1", "", result{0, phase1 + "\n[the contracts of phase 1 and their ids]\nP1.C1 (line 9): GET / → 200 hello\nP1.C2 (line 10): GET /x → 404\n", ""}},
		{"get-spec 2", "", result{2, "", noSpec}},
		{"get-spec ../1", "", result{2, "", noSpec}},
		{"get-spec", "", result{2, "", noSpec}},
		{"list", "", result{0, "health_check  lint and types\ncat           copies\nslow          \nstart         \n" +
			"get-spec N    print the spec of phase N, and the ids of its contracts\ncheck         list the files that this call still has to write\n", ""}},
	}
	for _, tt := range tests {
		cmd := helperCommand(t, helper.HelperCmd, spec, strings.Fields(tt.args)...)
		cmd.Stdin = strings.NewReader(tt.stdin)
		if got := finish(t, cmd); got != tt.want {
			t.Errorf("%s: got  %+v\nwant %+v", tt.args, got, tt.want)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		if r := finish(t, helperCommand(t, helper.HelperCmd, spec, args...)); r.code != 0 || !strings.Contains(r.out, "Usage:") || !strings.Contains(r.out, "health_check") {
			t.Errorf("abl-cmd %v: got %+v, want exit code 0, the usage and health_check", args, r)
		}
	}
}

func TestCheckBuilder(t *testing.T) {
	spec := role(t, "builder")
	check := func(want result) {
		t.Helper()
		if got := finish(t, helperCommand(t, helper.HelperCmd, spec, "check")); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	const note = "note: run abl-cmd health_check last; it must exit with 0\n"
	missing := result{1, "missing: the run report of this call, builder_reports/phase1_v2_<time>.md\n" + note, ""}
	check(missing)
	write(t, filepath.Join(spec.Dir, "builder_reports/phase1_v1_20260101T000000Z.md"), "the iteration before")
	write(t, filepath.Join(spec.Dir, "builder_reports/phase1_v2_20260101T000001Z.md"), "")
	check(missing)
	write(t, filepath.Join(spec.Dir, "builder_reports/phase1_v2_20260101T000001Z.md"), "report")
	check(result{0, note + "ok: nothing is missing\n", ""})
}

// app is a tiny web server, in the language that the test machine surely has.
const app = `package main
import ("fmt"; "net/http"; "os")
func main() {
	fmt.Println("SOURCE-CANARY")
	n := 0
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { n++; fmt.Fprint(w, n) })
	fmt.Println(http.ListenAndServe(os.Args[1], nil))
}`

// A Verifier's abl-cmd, a broker and a real app, each its own process.
func TestCommandsAtTheBroker(t *testing.T) {
	dir := t.TempDir()
	source := write(t, filepath.Join(dir, "main.go"), app)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "app"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	port, appPort := freePort(t), freePort(t)
	events := write(t, filepath.Join(dir, "events"), "")
	log := write(t, filepath.Join(dir, "log"), "")
	commands := []helper.Command{
		{Name: "hidden", Command: "cat main.go; exit 3", TimeoutMS: 60000},
		{Name: "shown", Command: "cat; pwd", Shown: true, TimeoutMS: 60000},
	}
	broker := helperCommand(t, helper.HelperBroker, helper.BrokerSpec{
		Token: "secret", Port: port, Dir: dir, Events: events, Log: log, Commands: commands,
		App:      &helper.App{Command: fmt.Sprintf("./app :%d", appPort), Port: appPort, Path: "/", TimeoutMS: 60000},
		Deadline: time.Now().Add(time.Hour).Unix(),
	})
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, events, `"event":"ready"`)

	spec := role(t, "verifier")
	spec.URL, spec.Token = fmt.Sprintf("http://%s:%d", ownAddress(t), port), "secret"
	spec.Commands = []helper.Command{{Name: "hidden"}, {Name: "shown", Shown: true}, {Name: "forged"}}
	tests := []struct {
		args string
		want result
	}{
		{"hidden", result{3, "", ""}},
		{"shown", result{0, "data" + dir + "\n", ""}},
		{"forged", result{2, "", "abl-cmd: there is no command \"forged\"; the declared commands are: hidden, shown\n"}},
		{"restart", result{0, "", ""}},
	}
	for _, tt := range tests {
		cmd := helperCommand(t, helper.HelperCmd, spec, tt.args)
		cmd.Stdin = strings.NewReader("data")
		cmd.Env = append(os.Environ(), "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1")
		if got := finish(t, cmd); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.args, got, tt.want)
		}
	}
	spec.Token = "wrong"
	if got := finish(t, helperCommand(t, helper.HelperCmd, spec, "hidden")); got.code != 2 || got.out != "" {
		t.Errorf("hidden with a wrong token: got %+v, want exit code 2 and no output", got)
	}
	spec.URL = "http://127.0.0.1:1"
	if got := finish(t, helperCommand(t, helper.HelperCmd, spec, "hidden")); got.code != 126 || !strings.Contains(got.err, "cannot reach the broker") {
		t.Errorf("hidden without a broker: got %+v, want exit code 126 and %q", got, "cannot reach the broker")
	}
	broker.Process.Signal(os.Interrupt)
	if err := broker.Wait(); err != nil {
		t.Errorf("end of the broker: got error %v, want none", err)
	}
	if text := read(t, log); strings.Count(text, "SOURCE-CANARY") != 3 { // two starts and the source that hidden printed
		t.Errorf("log: got %q, want %q three times", text, "SOURCE-CANARY")
	}
}

// ownAddress returns an address for which a proxy of the environment would be used.
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Fatal("the machine has no network address")
	return ""
}

// await reads a growing file until a line has the words.
func await(t *testing.T, path, words string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for line := ""; ; {
		part, err := r.ReadString('\n')
		line += part
		if err == io.EOF {
			time.Sleep(time.Millisecond)
			continue
		}
		var ev helper.Event
		if err != nil || json.Unmarshal([]byte(line), &ev) != nil {
			t.Fatalf("event: got %q, error %v, want JSON", line, err)
		}
		if strings.Contains(line, words) {
			return
		}
		if ev.Event == "failed" {
			t.Fatalf("event: got %s, want one with %q", line, words)
		}
		line = ""
	}
}
