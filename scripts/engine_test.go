// Package scripts_test runs the scripts of this folder on a simulated machine: their fixed paths
// lead to a temporary folder, and fake programs replace apt-get, dockerd and others.
package scripts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain makes this program run as the fake dockerd or the fake curl.
func TestMain(m *testing.M) {
	switch os.Getenv("FAKE_PROGRAM") {
	case "dockerd":
		os.Exit(fakeDockerd(os.Getenv("SOCKET")))
	case "curl":
		os.Exit(fakeCurl(os.Getenv("SOCKET")))
	}
	os.Exit(m.Run())
}

// fakeDockerd responds to pings until it is killed or a timeout is reached.
func fakeDockerd(socket string) int {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.AfterFunc(time.Minute, func() { os.Exit(0) })
	fmt.Fprintln(os.Stderr, http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "OK") })))
	return 1
}

func fakeCurl(socket string) int {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://localhost/_ping")
	if err != nil {
		return 7
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return 1
	}
	return 0
}

// machine is the simulated machine.
type machine struct {
	t   *testing.T
	dir string
	env []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{
		"bin", "new", "proc", "run/docker/containerd", "run/docker/netns", "log", "lock",
		"lib/network/files", "home",
	} {
		if err := os.MkdirAll(m.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.write("os-release", "ID=debian\n")
	m.write("comm", "bash\n")
	m.program("bin/id", "echo 0")
	m.program("bin/curl", "FAKE_PROGRAM=curl exec "+self)
	m.program("bin/iptables", "true")
	m.program("new/dockerd", "echo started >>"+m.path("starts")+"\necho $$ >"+m.path("pid")+"\n"+
		"FAKE_PROGRAM=dockerd exec "+self)
	m.program("bin/apt-get", "echo \"$*\" >>"+m.path("apt")+"\ncase $* in *install*docker.io*) cp "+m.path("new/dockerd")+" "+m.path("bin")+";; esac")
	m.env = []string{
		"PATH=" + m.path("bin") + ":/usr/bin:/bin", "HOME=" + m.path("home"),
		"SOCKET=" + m.path("run/docker.sock"),
	}
	m.write("engine.sh", m.script())
	t.Cleanup(m.stop)
	return m
}

// script returns engine.sh with the paths of the simulated machine.
func (m *machine) script() string {
	m.t.Helper()
	raw, err := os.ReadFile("engine.sh")
	if err != nil {
		m.t.Fatal(err)
	}
	text := string(raw)
	for old, replaced := range map[string]string{
		"/var/run/": m.path("run") + "/", "/var/log": m.path("log"), "/var/lock": m.path("lock"), "/var/lib/docker": m.path("lib"),
		"/etc/os-release": m.path("os-release"), "/proc/1/comm": m.path("comm"), "/proc/[0-9]*": m.path("proc") + "/[0-9]*",
		"/run/systemd/system": m.path("no-systemd"), "/sys/module/apparmor/parameters/enabled": m.path("no-apparmor"),
		"patience=60": "patience=20",
	} {
		if !strings.Contains(text, old) {
			m.t.Fatalf("engine.sh no longer contains %q, so the test would change the real machine", old)
		}
		text = strings.ReplaceAll(text, old, replaced)
	}
	return text
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) program(name, body string) { m.write(name, "#!/bin/sh\n"+body+"\n") }

func (m *machine) read(name string) string {
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return string(text)
}

// run returns the script's output and its exit code. It returns when the output is closed, so it
// would wait for an engine that inherited the output.
func (m *machine) run(env ...string) (string, int) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "bash", m.path("engine.sh"))
	cmd.Env = append(m.env, env...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		m.t.Error(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// stop kills the fake dockerd that this machine started, by its pid.
func (m *machine) stop() {
	pid, err := strconv.Atoi(strings.TrimSpace(m.read("pid")))
	if err != nil {
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		m.t.Error(err)
	}
}

func TestEngineIsInstalledAndStartedOnce(t *testing.T) {
	m := newMachine(t)
	m.write("run/docker.pid", "1")
	out, code := m.run()
	if code != 0 || !strings.Contains(out, "installing docker.io") || !strings.Contains(out, "removing the leftover") {
		t.Fatalf("got exit %d, output %q, log %q, want 0, an installation and a removed leftover", code, out,
			m.read("log/abl-dockerd.log"))
	}
	if again, code := m.run(); code != 0 || again != "" {
		t.Errorf("second run: got exit %d, output %q, want 0 and no output", code, again)
	}
	if got := m.read("starts"); got != "started\n" {
		t.Errorf("got starts %q, want one", got)
	}
	pid := strings.TrimSpace(m.read("pid"))
	for _, fd := range descriptors(t, pid) {
		if strings.Contains(fd, "abl-engine.lock") || strings.Contains(fd, "engine.sh") {
			t.Errorf("descriptors of the engine: got %s, want none of the script", fd)
		}
	}
	session, err := sessionOf(pid)
	if err != nil || strconv.Itoa(session) != pid {
		t.Errorf("session of the engine: got %d, error %v, want its own, %s", session, err, pid)
	}
}

// A dockerd that was killed at the wrong moment panics because of its network database at every
// start.
func TestBrokenNetworkDatabaseIsMoved(t *testing.T) {
	m := newMachine(t)
	database := "lib/network/files/local-kv.db"
	m.write(database, "torn")
	m.write("run/docker/netns/0123456789ab", "")
	m.program("new/dockerd", "if [ -e "+m.path(database)+" ]; then echo 'panic: index out of range'; echo "+
		"github.com/docker/libnetwork.New; exit 2; fi\n"+
		strings.TrimPrefix(m.read("new/dockerd"), "#!/bin/sh\n"))
	out, code := m.run()
	if code != 0 || !strings.Contains(out, "panics over its network database") {
		t.Errorf("got exit %d, output %q, want 0 and the database moved", code, out)
	}
	if _, err := os.Lstat(m.path("run/docker/netns/0123456789ab")); err == nil {
		t.Error("namespace of the previous engine: got a file, want it removed")
	}
	if kept := m.read(database + ".broken"); kept != "torn" {
		t.Errorf("got database %q, want it unchanged", kept)
	}
}

func descriptors(t *testing.T, pid string) []string {
	t.Helper()
	found, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, f := range found {
		if target, err := os.Readlink(f); err == nil {
			targets = append(targets, target)
		}
	}
	return targets
}

// sessionOf reads the session id from /proc.
func sessionOf(pid string) (int, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 4 {
		return 0, errors.New("short stat")
	}
	return strconv.Atoi(fields[3])
}

func TestConcurrentRunsStartOneEngine(t *testing.T) {
	m := newMachine(t)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if out, code := m.run(); code != 0 {
				t.Errorf("got exit %d, output %q, want 0", code, out)
			}
		})
	}
	both.Wait()
	if got := m.read("starts"); got != "started\n" {
		t.Errorf("got starts %q, want one", got)
	}
}

func TestNoEnginePossible(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*machine)
		env     string
		says    string
		apt     bool
	}{
		"not root": {func(m *machine) { m.program("bin/id", "echo 1000") }, "A=", "not root", false},
		"another system": {
			func(m *machine) { m.write("os-release", "ID=fedora\nID_LIKE=\"rhel\"\n") },
			"A=",
			"neither Debian nor Ubuntu",
			false,
		},
		"named engine": {func(*machine) {}, "DOCKER_HOST=unix:///away.sock", "DOCKER_HOST", false},
		"apt fails": {
			func(m *machine) { m.program("bin/apt-get", "echo asked >>"+m.path("apt")+"; echo no mirror; exit 100") },
			"A=",
			"no mirror",
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.prepare(m)
			out, code := m.run(c.env)
			if code != 7 || !strings.Contains(out, c.says) || !strings.Contains(out, "do one of these") {
				t.Errorf("got exit %d, output %q, want 7 and %q", code, out, c.says)
			}
			if asked := m.read("apt") != ""; asked != c.apt || m.read("starts") != "" {
				t.Errorf("got call of apt-get %t, engine starts %q, want %t and none", asked, m.read("starts"), c.apt)
			}
		})
	}
}

// The script waits for a running dockerd that does not respond yet, and starts no second one.
func TestStartingDockerdIsNotStartedAgain(t *testing.T) {
	m := newMachine(t)
	m.write("engine.sh", strings.Replace(m.script(), "patience=20", "patience=1", 1))
	m.program("bin/dockerd", "echo started >>"+m.path("starts"))
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(m.path("proc/4711/ns"), 0o755),
		os.Symlink(own, m.path("proc/4711/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	m.write("proc/4711/comm", "dockerd\n")
	out, code := m.run()
	if code != 7 || !strings.Contains(out, "pid 4711") || m.read("starts") != "" {
		t.Errorf("got exit %d, output %q, starts %q, want 7, pid 4711 and no start", code, out, m.read("starts"))
	}
}
