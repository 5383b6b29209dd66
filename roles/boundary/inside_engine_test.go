package boundary

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/images"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/testing/lab"
)

// look is a container like a role's, started by hand, with the expected findings of the probe.
type look struct {
	*testing.T
	Prober
	image, dir string
	server     *HostServer
	spec       helper.ProbeSpec
	flags      []string // of docker run
	agent      string   // its output, "" if it was not started
}

const guest = "4711:4711"

func newLook(t *testing.T) *look {
	p := onEngine(t)
	l := &look{T: t, Prober: p, dir: t.TempDir()}
	eng := p.Engine.(*docker.Engine)
	m := &images.Maker{Engine: eng, Env: lab.Env(t)}
	var err error
	if l.image, err = m.Ensure(t.Context(), images.Want{Agent: "tools"}); err != nil {
		t.Fatal(err)
	}
	r := &prober{Prober: p, words: map[string]string{}}
	container := HostContainer(r.container("listener", sandbox.Reach{}, helper.HelperProbe))
	line, err := r.run(t.Context(), container)
	if err == nil {
		l.server, err = ReadHostServer(eng, container.Name, line)
	}
	if err != nil {
		t.Fatal(err)
	}
	reach := sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: r.name("inner")}}}
	open := r.container("open", reach, helper.HelperHolder) // a holder that does not close its network
	if err := r.start(t.Context(), "inner", false, r.holder("holder", reach), open); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.sweep(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	l.layOut()
	return l
}

// layOut creates the folders and the spec of a good container.
func (l *look) layOut() {
	for _, name := range []string{"src/.git", "specs", "in", "other"} {
		if err := os.MkdirAll(filepath.Join(l.dir, name), 0o755); err != nil {
			l.Fatal(err)
		}
	}
	run := helper.RunSpec{Argv: []string{"/bin/sh", "-c", "echo ran"}, Dir: helper.Src, Stdout: helper.Out, Stderr: helper.Err, Probe: helper.Probe}
	data, err := json.Marshal(run)
	if err != nil {
		l.Fatal(err)
	}
	for name, text := range map[string]string{"in/run.json": string(data), "in/probe.json": "", "stdout": "", "stderr": "", "src/.git/config": "x", "specs/phase1.md": "x"} {
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			l.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // regardless of the umask, so that only mounts protect it
			l.Fatal(err)
		}
	}
	for _, name := range []string{"src", "src/.git", "specs"} {
		if err := os.Chmod(filepath.Join(l.dir, name), 0o777); err != nil {
			l.Fatal(err)
		}
	}
	container := sandbox.ContainerConfig{
		User: guest, Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}},
		Mounts: []sandbox.Mount{
			{What: sandbox.Workspace, Source: filepath.Join(l.dir, "src"), Target: helper.Src},
			{What: sandbox.GitDir, Source: filepath.Join(l.dir, "src/.git"), Target: helper.Src + "/.git", ReadOnly: true},
			{What: sandbox.Specs, Source: filepath.Join(l.dir, "specs"), Target: helper.Specs, ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(l.dir, "in"), Target: helper.In, ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(l.dir, "stdout"), Target: helper.Out},
			{What: sandbox.CallOut, Source: filepath.Join(l.dir, "stderr"), Target: helper.Err},
		},
	}
	l.spec = Inside(container, map[string]string{"KEY": "token", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, []string{"run.json", "probe.json"}, []string{helper.Tests, "/abl/secret"})
	l.spec.Env["LANG"] = "" // set by the image
	if err := Identify(&l.spec, container.Mounts); err != nil {
		l.Fatal(err)
	}
	l.spec.Net = Net(l.server, false)
	if data, err = json.Marshal(l.spec); err == nil {
		err = os.WriteFile(filepath.Join(l.dir, "in/probe.json"), data, 0o644)
	}
	if err != nil {
		l.Fatal(err)
	}
	l.flags = []string{
		"--network=container:abl-" + l.ID + "-holder", "--user=" + guest, "--cap-drop=ALL", "--security-opt=no-new-privileges:true",
		"--security-opt=seccomp=../../internal/sandbox/docker/seccomp.json",
		"--read-only", "--env=KEY=token", "--tmpfs=/tmp:rw,nosuid,nodev,noexec", l.bind("src", helper.Src, false), l.bind("src/.git", helper.Src+"/.git", true),
		l.bind("specs", helper.Specs, true), l.bind("in", helper.In, true), l.bind("stdout", helper.Out, false), l.bind("stderr", helper.Err, false),
	}
}

func (l *look) bind(source, target string, readOnly bool) string {
	flag := fmt.Sprintf("--mount=type=bind,source=%s,target=%s", filepath.Join(l.dir, source), target)
	if readOnly {
		flag += ",readonly,bind-nonrecursive"
	}
	return flag
}

// run starts the container with changed flags and returns the findings of its probe.
func (l *look) run(name, from string, to ...string) sandbox.Proof {
	l.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, "stdout"), nil, 0o666); err != nil {
		l.Fatal(err)
	}
	flags := slices.Clone(l.flags)
	if from != "" {
		flags = slices.DeleteFunc(flags, func(f string) bool { return strings.HasPrefix(f, from) })
	}
	args := append([]string{"run", "--rm", "--label=abl.project=" + l.ID, "--workdir=" + helper.Src}, append(flags, to...)...)
	out, err := exec.Command("docker", append(args, l.image, helper.Bin+"/"+helper.HelperRun, helper.Run)...).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	var found helper.Probed
	if jerr := json.Unmarshal([]byte(line), &found); jerr != nil || len(found.Proof) == 0 {
		l.Fatalf("%s: got output %q, error %v, probe error %v, want a proof", name, out, err, found.Error)
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "stdout"))
	if err != nil {
		l.Fatal(err)
	}
	l.agent = string(text)
	return found.Proof
}

// A container like a role's passes. The expected check finds each weaker one before another program
// starts in it.
func TestProbeFindsWeakerSettings(t *testing.T) {
	lab.Long(t)
	l := newLook(t)
	if p := l.run("as meant", ""); p.Err() != nil || l.agent != "ran\n" {
		t.Fatalf("as meant: got error %v, agent output %q, want no error and %q", p.Err(), l.agent, "ran\n")
	}
	if c := l.server.Arrived(t.Context()); !c.OK {
		t.Errorf("datagrams to this machine as meant: got %s, want 0", c.Got)
	}
	if p := l.run("open", "--network", "--network=container:abl-"+l.ID+"-open"); p.Err() == nil || l.server.Arrived(t.Context()).OK {
		t.Errorf("open network: got failed checks %v, want some and a datagram, else the closed one proves nothing",
			p.Failed())
	}
	wide := "abl-" + l.ID + "-wide"
	if out, err := exec.Command("docker", "network", "create", "--internal", "--label=abl.project="+l.ID, wide).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mount := func(source string) string { return strings.TrimSuffix(l.bind(source, "", false), ",target=") + "," }
	for name, c := range map[string]struct {
		from string
		to   []string
		want []string
	}{
		"specs that can be written":  {mount("specs"), []string{l.bind("specs", helper.Specs, false)}, []string{"mount /workspace/specs inside", "writing in /workspace/specs"}},
		"history that can":           {mount("src/.git"), []string{l.bind("src/.git", helper.Src+"/.git", false)}, []string{"mount /workspace/src/.git inside", "writing in /workspace/src/.git"}},
		"no history over the source": {mount("src/.git"), nil, []string{"mount /workspace/src/.git inside", "writing in /workspace/src/.git"}},
		"the call's own folder":      {mount("in"), []string{l.bind("in", helper.In, false)}, []string{"writing in /abl/in"}},
		"another source":             {mount("src"), []string{l.bind("other", helper.Src, false)}, []string{"identity of /workspace/src"}},
		"the other side":             {"", []string{l.bind("other", helper.Tests, true)}, []string{"other mounts", "all in /workspace", "what must be absent"}},
		"the engine's socket":        {"", []string{"--volume=/var/run/docker.sock:/var/run/docker.sock"}, []string{"other mounts", "sockets of engines"}},
		"a folder of the host":       {"", []string{"--volume=/:/host:ro"}, []string{"other mounts"}},
		"memory that runs programs":  {"--tmpfs", []string{"--tmpfs=/tmp:rw,nosuid,nodev,exec"}, []string{"mount /tmp inside"}},
		"root":                       {"--user", []string{"--user=0:0"}, []string{"user inside", "group inside"}},
		"another group":              {"", []string{"--group-add=0"}, []string{"supplementary groups inside"}},
		"capabilities":               {"--cap-drop", nil, []string{"capabilities inside"}},
		"new privileges":             {"--security-opt=no-new", nil, []string{"no new privileges"}},
		"every system call":          {"--security-opt=seccomp", []string{"--security-opt=seccomp=unconfined"}, []string{"system calls filtered", "system calls refused"}},
		"the engine's own filter":    {"--security-opt=seccomp", nil, []string{"system calls refused"}},
		"the engine's init":          {"", []string{"--init"}, []string{"memory of process 1"}},
		"processes of the host":      {"", []string{"--pid=host"}, []string{"processes of others"}},
		"a device":                   {"", []string{"--device=/dev/null:/dev/more"}, []string{"other devices"}},
		"another variable":           {"", []string{"--env=GEMINI_API_KEY=x"}, []string{"environment inside"}},
		"another token":              {"--env", []string{"--env=KEY=x"}, []string{"environment inside"}},
		"a root to write in":         {"--read-only", nil, []string{"/ inside"}},
		"an ordinary network":        {"--network", []string{"--network=bridge"}, []string{"the host by tcp", "the host by udp", "datagrams beyond its networks", "next hops that answer", "resolver inside", "peer 127.0.0.1:53"}},
		"a network that is open":     {"--network", []string{"--network=container:abl-" + l.ID + "-open"}, []string{"datagrams beyond its networks"}},
		"an internal network":        {"--network", []string{"--network=" + wide}, []string{"the host by tcp", "datagrams beyond its networks", "resolver inside"}},
		"the host's network":         {"--network", []string{"--network=host"}, []string{"the host by tcp"}},
		"a name of the host":         {"--network", []string{"--network=" + wide, "--add-host=host.docker.internal:192.0.2.1"}, []string{"name host.docker.internal"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := *l
			l.T = t // so that the subtest reports its failures
			p := l.run(name, c.from, c.to...)
			for _, check := range c.want {
				if found, ok := p.Get(check); !ok || found.OK {
					t.Errorf("got %+v, want the check %q to fail", found, check)
				}
			}
			if l.agent != "" {
				t.Errorf("agent's output: got %q, want none before a failed proof", l.agent)
			}
		})
	}
}
