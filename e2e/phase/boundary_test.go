package phase

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// What a role's container can see and do, tried from inside by a command of the
// agent. Each line that begins with "BAD" is a hole.
func TestBoundary(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp)
	find := hostProbe(t, toolsImage(p))
	p.Write(".env", "SOME_SECRET=the-secret-of-the-person\n")
	common := []agent.Step{
		run("test $(id -u) != 0 && echo uid ok || echo BAD uid"),
		run("test $(id -g) != 0 && echo gid ok || echo BAD gid"),
		run("echo x > /workspace/specs/new 2>/dev/null && echo BAD specs || echo specs ok"),
		run("echo x >> /workspace/specs/phase1.md && echo BAD spec || echo spec ok"),
		run("cat /workspace/specs/phase1.md | head -1"),
		run("echo x > .git/new 2>/dev/null && echo BAD git || echo git ok"),
		run("mv .git .elsewhere 2>/dev/null && echo BAD git moved || echo git stays"),
		run("git log --format=%s 2>&1; git commit --allow-empty -qm x 2>/dev/null && echo BAD commit || echo no commit"),
		run("touch /etc/x /usr/bin/x /abl/bin/x /abl/in/x 2>/dev/null && echo BAD root || echo root ok"),
		run("find / -name .env -not -path '/proc/*' 2>/dev/null | grep . && echo BAD env || echo env ok"),
		run("grep -rls the-secret-of-the-pers[o]n / --exclude-dir=proc --exclude-dir=sys 2>/dev/null | grep . && echo BAD secret || echo secret ok"),
		run("grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; grep Seccomp: /proc/self/status"),
		run("ls -d /var/run/docker.sock /run/docker.sock 2>/dev/null && echo BAD socket || echo socket ok"),
		write("probe.mjs", find), run("node probe.mjs"),
		run("a=$(date +%s%N); curl -s -m 5 http://example.com/ && echo BAD outside; b=$(date +%s%N); test $(( (b - a) / 1000000 )) -lt 1000 && echo dns fast || echo BAD dns $(( (b - a) / 1000000 )) ms"),
		run("curl -s -m 2 http://1.1.1.1/ >/dev/null && echo BAD route || echo route ok"),
		run("abl-cmd list >/dev/null && echo abl-cmd ok"),
	}
	for _, tool := range []string{"curl", "jq", "node", "python3", "git", "sh"} {
		common = append(common, run("command -v "+tool+" >/dev/null && echo "+tool+" there || echo BAD no "+tool))
	}
	builder := append([]agent.Step{write("server.mjs", server), write("mark-of-the-builder", "x")}, common...)
	builder = append(builder,
		run("ls -d /workspace/tests 2>/dev/null && echo BAD tests || echo tests ok"),
		run("curl -s -m 2 http://app:3000/ && echo BAD app || echo app ok"))
	verifier := append(common,
		run("find / -name 'mark-of-the-builder' -o -name server.mjs -not -path '/proc/*' 2>/dev/null | grep . && echo BAD src || echo src ok"),
		run("test \"$ABL_APP_URL\" = http://app:3000 && curl -sf $ABL_APP_URL/ && echo ' app ok'"),
		run("env | grep -c SECRET; touch /workspace/tests/mine && echo own ok; cat /abl/in/broker.json 2>/dev/null && echo BAD broker || echo broker ok"))
	script(p, builds(builder...), verifies(verifier...))
	if asRoot() { // so that specs and history are the roles' own, and only the mounts keep them
		giveTo(p, guest, guest)
	}
	p.Must(0, "phase", "1")
	for key, more := range map[string][]string{"p1-build-1.1": {"tests ok", "app ok"}, "p1-verify-1.1": {"src ok", "ok app ok", "own ok", "broker ok"}} {
		out := printed(p, key)
		lacks(t, key, out, "BAD")
		wants(t, key, out, append(more, "uid ok", "gid ok", "specs ok", "spec ok", "# Phase 1: Answer", "git ok", "git stays", "no commit", "root ok", "env ok",
			"secret ok", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "socket ok", "addresses tried", "dns fast", "route ok", "abl-cmd ok")...)
	}
	if got := p.Read(".abl/specs/phase1.md"); got != oneSpec {
		t.Errorf("the spec is now %q", got)
	}
	noLeftovers(p)
}

// The app sees its tree and nothing else, and answers the Verifier alone.
func TestBoundaryOfTheApp(t *testing.T) {
	lab.Long(t)
	const looks = `import http from 'node:http';
import { execSync } from 'node:child_process';
const sh = (c) => { try { return execSync(c, { encoding: 'utf8', shell: '/bin/sh' }); } catch (e) { return 'ended ' + e.status + ' ' + e.stdout; } };
http.createServer((req, res) => {
  if (req.url === '/') return res.end('ok');
  res.end(sh(decodeURIComponent(req.url.slice(2))));
}).listen(3000, '0.0.0.0');
`
	p := newProject(t, nodeApp)
	find := hostProbe(t, toolsImage(p))
	ask := func(command string) agent.Step {
		return run("curl -s \"http://app:3000/?$(printf %s '" + command + "' | jq -sRr @uri)\"; echo")
	}
	script(p, builds(write("server.mjs", looks), write("probe.mjs", find)), verifies(
		run("python3 -m http.server 9999 >/dev/null 2>&1 & for i in $(seq 100); do curl -s http://127.0.0.1:9999 >/dev/null && echo listens && break; sleep 0.1; done"),
		ask("for at in 127.0.0.1 localhost app $(hostname) $(hostname -i); do curl -s -m 2 http://$at:9999 >/dev/null && echo BAD-verifier; done; echo alone"),
		must(0, "test \"$(curl -s http://app:3000/)\" = ok && curl -s http://app:7070/list | grep -q token"),
		ask("id -u | sed s/^0$/BAD-root/"), ask("ls -A .git | wc -l"), ask("ls -d /workspace/* | tr \"\\n\" \" \""),
		ask("node probe.mjs"),
		ask("curl -s -m 2 http://1.1.1.1 >/dev/null && echo BAD-route; grep CapEff /proc/self/status"),
		must(0, "touch looking; i=0; until test -e go || test $((i=i+1)) -gt 300; do sleep 0.1; done; test -e go"),
		ask("ls -d /workspace/specs /workspace/tests /abl/in/prompt.md /var/run/docker.sock 2>/dev/null | sed s/^/BAD-/; echo seen"),
	))
	asked := 0
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == "verifier" && asked == 0 {
			asked++
			strangers(t, p)
		}
	}, "phase", "1")
	if r.Code != 0 || asked == 0 {
		t.Fatalf("exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	out := printed(p, "p1-verify-1.1")
	lacks(t, "the app", out, "BAD")
	wants(t, "the app", out, "\n0\n", "/workspace/src", "listens", "alone", "addresses tried", "CapEff:\t0000000000000000", "seen")
	noLeftovers(p)
}

// strangers could not reach the app while its Verifier runs: it has no address, and nobody
// can be given one of its network's.
func strangers(t *testing.T, p *lab.Project) {
	t.Helper()
	defer p.Write(".abl/tests/go", "")
	holder := "abl-" + projectID(p) + "-holder-app"
	if is := docker(t, "inspect", "--format", "{{.HostConfig.NetworkMode}}{{range .NetworkSettings.Networks}} {{.IPAddress}}{{end}}", holder); is != "none" {
		t.Errorf("the app's network and address are %q, want none", is)
	}
	if out, err := exec.Command("docker", "network", "connect", "bridge", holder).CombinedOutput(); err == nil {
		t.Errorf("it was given an address: %s", out)
	}
}

func projectID(p *lab.Project) string {
	p.Helper()
	var state struct{ Project string }
	if err := json.Unmarshal([]byte(p.Read(".abl/state.json")), &state); err != nil {
		p.Fatal(err)
	}
	return state.Project
}

// probe looks for a server of the host at every address that it may have: those
// that the host has itself, and all of the networks that the prober is on.
const probe = `import { networkInterfaces } from 'node:os';
const [port, nonce] = ['%d', '%s'];
const at = new Set('%s'.split(' '));
for (const n of Object.values(networkInterfaces()).flat()) {
  if (n.family !== 'IPv4' || n.internal) continue;
  const own = n.address.split('.'), base = own[3] & 0xf0;
  for (let i = 0; i < 16; i++) at.add([own[0], own[1], own[2], base + i].join('.'));
  at.add([own[0], own[1], own[2], 1].join('.'));
}
for (const name of ['host.docker.internal', 'gateway.docker.internal']) at.add(name);
const holes = await Promise.all([...at].map(async (host) => {
  try {
    const r = await fetch('http://' + host + ':' + port + '/', { signal: AbortSignal.timeout(2500) });
    return (await r.text()).includes(nonce) ? ['BAD host ' + host] : [];
  } catch { return []; }
}));
console.log(holes.flat().join('\\n'), at.size + ' addresses tried');
process.exit(0);
`

// hostProbe starts a server of this machine on all its addresses and returns
// the probe for it, which has been seen to find it from a usual container.
func hostProbe(t *testing.T, image string) string {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	nonce := fmt.Sprintf("nonce-%d-%d", os.Getpid(), port)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, nonce) })}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			own = append(own, n.IP.String())
		}
	}
	script := fmt.Sprintf(probe, port, nonce, strings.Join(own, " "))
	file := filepath.Join(t.TempDir(), "probe.mjs")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	out := docker(t, "run", "--rm", "--label", "abl.project=test-phase", "-v", file+":/probe.mjs:ro", image, "node", "/probe.mjs")
	wants(t, "the probe from a usual container", out, "BAD host")
	return script
}
