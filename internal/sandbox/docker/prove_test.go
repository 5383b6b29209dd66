package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"abl/internal/sandbox"
)

// provable creates the networks and volumes of the samples and returns the samples for this lab.
func (l *lab) provable() map[string]sandbox.ContainerConfig {
	l.Helper()
	inner, outer := l.network("inner", false), l.network("outer", true)
	holder := l.container("holder", "block")
	holder.Reach.Endpoints = []sandbox.Endpoint{{Network: inner, Aliases: []string{"app"}}}
	l.start(holder)
	scratch := sandbox.Volume{Name: sandbox.Name(l.project, "scratch"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(l.Context(), scratch))
	src, specs := l.dir(nil), l.dir(nil)
	l.must(os.Mkdir(filepath.Join(src, ".git"), 0o755))
	out := filepath.Join(l.dir(map[string]string{"stdout": ""}), "stdout")
	containers := map[string]sandbox.ContainerConfig{}
	for name, desired := range samples() {
		desired.Name, desired.Image, desired.User, desired.Labels = sandbox.Name(l.project, name), probeImage, l.user, l.labels("role")
		desired.Argv, desired.Mounts, desired.Limits.Memory = []string{"/probe", "exit", "0"}, nil, 64<<20
		if desired.Reach.Join != "" {
			desired.Reach.Join, desired.Reach.Through = holder.Name, holder.Reach.Endpoints
		}
		for i := range desired.Reach.Endpoints {
			desired.Reach.Endpoints[i].Network = inner
		}
		containers[name] = desired
	}
	both := containers["own"]
	both.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: inner, Aliases: []string{"llm", "gateway"}}, {Network: outer}}, Resolve: true}
	containers["own"] = both
	egress := containers["egress"]
	egress.Reach.Endpoints[0].Network = outer
	joined := containers["joined"]
	joined.Mounts = []sandbox.Mount{
		{What: sandbox.Workspace, Source: src, Target: "/workspace/src"},
		{What: sandbox.GitDir, Source: filepath.Join(src, ".git"), Target: "/workspace/src/.git"},
		{What: sandbox.Specs, Source: specs, Target: "/workspace/specs", ReadOnly: true},
		{What: sandbox.CallOut, Source: out, Target: "/abl/out/stdout"},
		{What: sandbox.Scratch, Source: scratch.Name, Target: "/scratch"},
	}
	containers["joined"] = joined
	return containers
}

// Every type of container passes on a real engine. Each check that does not depend only on the
// engine fails for a container with a different setting.
func TestProve(t *testing.T) {
	l := newLab(t)
	for name, desired := range l.provable() {
		_, err := l.Create(t.Context(), desired)
		l.must(err)
		proof, err := l.Prove(t.Context(), desired)
		l.must(err)
		if err := proof.Err(); err != nil || len(proof) < 30 {
			t.Errorf("proof of %s: got %d checks, error %v, want at least 30 and no error", name, len(proof), err)
		}
		l.red(name, desired)
	}
}

// red proves a container that was created with different settings.
func (l *lab) red(name string, made sandbox.ContainerConfig) {
	l.Helper()
	for check, change := range map[string]func(*sandbox.ContainerConfig){
		"image":            func(b *sandbox.ContainerConfig) { b.Image = "sha256:" + strings.Repeat("0", 64) },
		"command":          func(b *sandbox.ContainerConfig) { b.Argv = []string{"/probe", "block"} },
		"user":             func(b *sandbox.ContainerConfig) { b.User, b.Seals = "4711:4711", false },
		"environment":      func(b *sandbox.ContainerConfig) { b.Env = []string{"A=another"} },
		"folder":           func(b *sandbox.ContainerConfig) { b.Dir = "/elsewhere" },
		"terminal":         func(b *sandbox.ContainerConfig) { b.Term = !b.Term },
		"standard input":   func(b *sandbox.ContainerConfig) { b.Stdin, b.Term = !b.Term && !b.Stdin, false },
		"labels":           func(b *sandbox.ContainerConfig) { b.Labels = map[string]string{sandbox.LabelProject: "other"} },
		"capabilities":     func(b *sandbox.ContainerConfig) { b.Seals = !b.Seals },
		"init":             func(b *sandbox.ContainerConfig) { b.Seals = !b.Seals },
		"root file system": func(b *sandbox.ContainerConfig) { b.Loose = !b.Loose },
		"memory":           func(b *sandbox.ContainerConfig) { b.Limits.Memory++ },
		"processes":        func(b *sandbox.ContainerConfig) { b.Limits.Pids = 7 },
		"cpus":             func(b *sandbox.ContainerConfig) { b.Limits.CPUs = 0.25 },
		"limits of files":  func(b *sandbox.ContainerConfig) { b.Limits.FileSize = 1 },
		"tmpfs mounts":     func(b *sandbox.ContainerConfig) { b.Tmpfs = nil },
		"mount /workspace/tests": func(b *sandbox.ContainerConfig) {
			b.Mounts = append(b.Mounts, sandbox.Mount{What: sandbox.Workspace, Source: "/x", Target: "/workspace/tests"})
		},
	} {
		meant := made
		change(&meant)
		if meant.Image != made.Image {
			if _, err := l.Prove(l.Context(), meant); err == nil {
				l.Errorf("proof of %s with a missing image: got no error, want one", name)
			}
			continue
		}
		proof, err := l.Prove(l.Context(), meant)
		l.must(err)
		if c, ok := proof.Get(check); !ok || c.OK || !errors.Is(proof.Err(), sandbox.ErrUnproven) {
			l.Errorf("check %q of %s: got %+v, error %v, want it to fail", check, name, c, proof.Err())
		}
	}
}

// Another program may connect a holder to another network, or create another container with the
// name.
func TestProveFindsForeignChanges(t *testing.T) {
	l := newLab(t)
	containers := l.provable()
	joined, none := containers["joined"], containers["none"]
	for _, b := range []sandbox.ContainerConfig{joined, none} {
		_, err := l.Create(t.Context(), b)
		l.must(err)
	}
	outer := sandbox.Name(l.project, "outer")
	l.must(l.api.NetworkConnect(t.Context(), outer, joined.Reach.Join, nil))
	proof, err := l.Prove(t.Context(), joined)
	l.must(err)
	for _, name := range []string{"holder's networks", "network " + outer} {
		if c, ok := proof.Get(name); !ok || c.OK {
			t.Errorf("check %q of a holder with egress: got %+v, want it to fail", name, c)
		}
	}
	joined.Name = none.Name
	proof, err = l.Prove(t.Context(), joined)
	l.must(err)
	if c, _ := proof.Get("network"); c.OK {
		t.Errorf("network of a container without one: got %+v, want a failed check", c)
	}
	gone := l.container("gone", "exit", "0")
	if _, err := l.Prove(t.Context(), gone); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("proof of a missing container: got error %v, want %v", err, sandbox.ErrNotFound)
	}
}

// asMade is an engine's description of a correct joined container.
func asMade(desired sandbox.ContainerConfig) found {
	config, host, _ := profile(desired, sandbox.Info{CPUs: 4})
	host.NetworkMode = "container:dbf0123456789abc"
	host.MaskedPaths, host.ReadonlyPaths = []string{"/proc/kcore", "/sys/firmware"}, []string{"/proc/sys", "/proc/sysrq-trigger"}
	var standard image.InspectResponse
	if err := json.Unmarshal([]byte(`{"Id":"sha256:abc","Config":{"Env":["PATH=/bin"]}}`), &standard); err != nil {
		panic(err)
	}
	var points []container.MountPoint
	for _, m := range host.Mounts {
		p := container.MountPoint{Type: m.Type, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly, Propagation: "rprivate"}
		if m.Type == mount.TypeVolume {
			p.Name, p.Source, p.Driver, p.Propagation = m.Source, "/var/lib/x/"+m.Source, "local", ""
		}
		points = append(points, p)
	}
	config.Env = append([]string{"PATH=/bin"}, config.Env...)
	_, holder, _ := profile(sandbox.ContainerConfig{Reach: sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: "n"}}}}, sandbox.Info{})
	return found{
		info: sandbox.Info{CPUs: 4},
		container: container.InspectResponse{Config: &config, Mounts: points, NetworkSettings: &container.NetworkSettings{},
			ContainerJSONBase: &container.ContainerJSONBase{ID: "boxid", Image: "sha256:abc", Path: desired.Argv[0], Args: desired.Argv[1:], HostConfig: &host, State: &container.State{}}},
		image: standard,
		holder: &container.InspectResponse{
			ContainerJSONBase: &container.ContainerJSONBase{ID: "dbf0123456789abc", Name: "/holder", HostConfig: &holder, State: &container.State{Running: true, StartedAt: "2026-11-21T09:00:00Z"}},
			Config:            &container.Config{Hostname: "box", Labels: map[string]string{sandbox.LabelProject: "p"}},
			NetworkSettings:   &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{"n": {Aliases: []string{"dbf012345678", "box", "db"}}}},
		},
		nets: map[string]network.Inspect{"n": {Name: "n", Driver: "bridge", Internal: true, Options: map[string]string{inhibitIPv4: "true"}, Labels: map[string]string{sandbox.LabelProject: "p"}}},
	}
}

// Each case is a deviation that an engine could have caused, and the check that detects it.
func TestCompare(t *testing.T) {
	desired := samples()["joined"]
	desired.Reach.Through = []sandbox.Endpoint{{Network: "n", Aliases: []string{"db"}}}
	yes, pids, swap := true, int64(-1), int64(4711)
	host := func(change func(*container.HostConfig)) func(*found) {
		return func(f *found) { change(f.container.HostConfig) }
	}
	cases := []struct {
		check  string
		change func(*found)
	}{
		{"", func(*found) {}},
		{"state", func(f *found) { f.container.State.StartedAt = "2026-11-21T09:00:00Z" }},
		{"image", func(f *found) { f.image.ID = "sha256:def" }},
		{"command", func(f *found) { f.container.Args = []string{"sh"} }},
		{"user", func(f *found) { f.container.Config.User = "0:0" }},
		{"user", func(f *found) { f.container.Config.User = "" }},
		{"environment", func(f *found) { f.container.Config.Env = append(f.container.Config.Env, "GEMINI_API_KEY=k") }},
		{"environment", func(f *found) { f.container.Config.Env = []string{"PATH=/bin", "A=c"} }},
		{"folder", func(f *found) { f.container.Config.WorkingDir = "/" }},
		{"terminal", func(f *found) { f.container.Config.Tty = true }},
		{"standard input", func(f *found) { f.container.Config.OpenStdin = true }},
		{"labels", func(f *found) { f.container.Config.Labels = nil }},
		{"health check", func(f *found) { f.container.Config.Healthcheck = &container.HealthConfig{Test: []string{"CMD", "x"}} }},
		{"privileged", host(func(h *container.HostConfig) { h.Privileged = true })},
		{"capabilities", host(func(h *container.HostConfig) { h.CapAdd = []string{"CAP_NET_RAW"} })},
		{"capabilities", host(func(h *container.HostConfig) { h.CapDrop = nil })},
		{"security options", host(func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "seccomp=unconfined") })},
		{"security options", host(func(h *container.HostConfig) {
			h.SecurityOpt = []string{"no-new-privileges:false", "seccomp=" + filter()}
		})},
		{"security options", host(func(h *container.HostConfig) { h.SecurityOpt = h.SecurityOpt[:1] })},
		{"security options", host(func(h *container.HostConfig) {
			h.SecurityOpt = []string{"no-new-privileges:true", "seccomp=" + strings.Replace(filter(), `"pwrite64"`, `"ptrace"`, 1)}
		})},
		{"security options", func(f *found) { f.container.AppArmorProfile = "unconfined" }},
		{"hidden system paths", host(func(h *container.HostConfig) { h.MaskedPaths = nil })},
		{"hidden system paths", host(func(h *container.HostConfig) { h.ReadonlyPaths = []string{"/proc/sys"} })},
		{"root file system", host(func(h *container.HostConfig) { h.ReadonlyRootfs = false })},
		{"namespaces", host(func(h *container.HostConfig) { h.PidMode = "host" })},
		{"namespaces", host(func(h *container.HostConfig) { h.IpcMode = "host" })},
		{"namespaces", host(func(h *container.HostConfig) { h.UTSMode = "host" })},
		{"namespaces", host(func(h *container.HostConfig) { h.UsernsMode = "host" })},
		{"namespaces", host(func(h *container.HostConfig) { h.CgroupnsMode = "host" })},
		{"supplementary groups", host(func(h *container.HostConfig) { h.GroupAdd = []string{"docker"} })},
		{"devices", host(func(h *container.HostConfig) { h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/kvm"}} })},
		{"devices", host(func(h *container.HostConfig) { h.DeviceCgroupRules = []string{"a *:* rwm"} })},
		{"devices", host(func(h *container.HostConfig) { h.DeviceRequests = []container.DeviceRequest{{Driver: "gpu"}} })},
		{"control group", host(func(h *container.HostConfig) { h.CgroupParent = "/" })},
		{"init", host(func(h *container.HostConfig) { h.Init = &yes })},
		{"memory", host(func(h *container.HostConfig) { h.MemorySwap = swap })},
		{"memory", host(func(h *container.HostConfig) { h.MemorySwap = -1 })},
		{"memory kill", host(func(h *container.HostConfig) { h.OomKillDisable = &yes })},
		{"shared memory", host(func(h *container.HostConfig) { h.ShmSize = 64 << 20 })},
		{"processes", host(func(h *container.HostConfig) { h.PidsLimit = &pids })},
		{"processes", host(func(h *container.HostConfig) { h.PidsLimit = nil })},
		{"cpus", host(func(h *container.HostConfig) { h.NanoCPUs = 0 })},
		{"cpus", host(func(h *container.HostConfig) { h.CPUQuota = 5 })},
		{"limits of files", host(func(h *container.HostConfig) { h.Ulimits = h.Ulimits[:1] })},
		{"limits of files", host(func(h *container.HostConfig) {
			h.Ulimits = []*container.Ulimit{{Name: "core"}, {Name: "fsize", Soft: 1, Hard: 1 << 30}}
		})},
		{"mount /workspace/src", func(f *found) { f.container.Mounts[0].Source = "/p" }},
		{"mount /workspace/src", func(f *found) { f.container.Mounts[0].Propagation = "rshared" }},
		{"mount /workspace/src", func(f *found) { f.container.Mounts = f.container.Mounts[1:] }},
		{"mount /workspace/src", func(f *found) { f.container.Mounts = append(f.container.Mounts, f.container.Mounts[0]) }},
		{"mount /workspace/src/.git", func(f *found) { f.container.Mounts[1].RW = true }},
		{"mount /workspace/specs", func(f *found) { f.container.Mounts[2].RW = true }},
		{"mount /workspace/specs", host(func(h *container.HostConfig) { h.Mounts[2].BindOptions.NonRecursive = false })},
		{"mount /abl/out/stdout", func(f *found) { f.container.Mounts[4].Source = "/p/other" }},
		{"mount /app", func(f *found) { f.container.Mounts[6].Name = "other" }},
		{"mount /app", func(f *found) { f.container.Mounts[6].Driver = "nfs" }},
		{"mount /s", func(f *found) { f.container.Mounts[7].RW = true }},
		{"mount /var/run/docker.sock", func(f *found) {
			f.container.Mounts = append(f.container.Mounts, container.MountPoint{Type: "bind", Source: "/var/run/docker.sock", Destination: "/var/run/docker.sock", RW: true})
		}},
		{"mount /data", func(f *found) {
			f.container.Mounts = append(f.container.Mounts, container.MountPoint{Type: "volume", Name: strings.Repeat("a", 64), Driver: "local", Destination: "/data", RW: true})
		}},
		{"binds", host(func(h *container.HostConfig) { h.Binds = []string{"/:/host"} })},
		{"tmpfs mounts", host(func(h *container.HostConfig) { h.Tmpfs["/tmp"] = "rw" })},
		{"tmpfs mounts", host(func(h *container.HostConfig) { h.Tmpfs["/more"] = "rw" })},
		{"network", host(func(h *container.HostConfig) { h.NetworkMode = "host" })},
		{"network", host(func(h *container.HostConfig) { h.NetworkMode = "container:other" })},
		{"holder", func(f *found) { f.holder.State.Running = false }},
		{"holder's project", func(f *found) { f.holder.Config.Labels = nil }},
		{"holder's networks", func(f *found) { f.holder.NetworkSettings.Networks["bridge"] = &network.EndpointSettings{} }},
		{"holder's networks", func(f *found) { f.holder.NetworkSettings.Networks["n"].Aliases = []string{"app"} }},
		{"separate DNS settings", host(func(h *container.HostConfig) { h.ExtraHosts = []string{"a:1.1.1.1"} })},
		{"resolver", func(f *found) { f.holder.HostConfig.DNS = nil }},
		{"resolver", func(f *found) { f.holder.HostConfig.ExtraHosts = []string{"host:host-gateway"} }},
		{"kernel settings", func(f *found) { f.holder.HostConfig.Sysctls = nil }},
		{"network n", func(f *found) {
			f.nets["n"] = network.Inspect{Driver: "bridge", Internal: true, Labels: f.nets["n"].Labels}
		}},
		{"network n", func(f *found) { n := f.nets["n"]; n.EnableIPv6 = true; f.nets["n"] = n }},
		{"network n", func(f *found) { n := f.nets["n"]; n.Internal = false; f.nets["n"] = n }},
		{"network n", func(f *found) { n := f.nets["n"]; n.Labels = nil; f.nets["n"] = n }},
		{"published ports", host(func(h *container.HostConfig) { h.PortBindings = nat.PortMap{"80/tcp": nil} })},
		{"published ports", host(func(h *container.HostConfig) { h.PublishAllPorts = true })},
		{"links", host(func(h *container.HostConfig) { h.Links = []string{"a:b"} })},
		{"volumes from other containers", host(func(h *container.HostConfig) { h.VolumesFrom = []string{"a"} })},
		{"restart", host(func(h *container.HostConfig) { h.RestartPolicy.Name = "always" })},
		{"restart", host(func(h *container.HostConfig) { h.AutoRemove = true })},
		{"log", host(func(h *container.HostConfig) { h.LogConfig.Type = "journald" })},
	}
	for i, c := range cases {
		f := asMade(desired)
		c.change(&f)
		proof := compare(desired, f)
		var failed []string
		for _, bad := range proof.Failed() {
			failed = append(failed, bad.Name)
		}
		if got := strings.Join(failed, ", "); got != c.check {
			t.Errorf("case %d: got failed checks %q, want %q: %v", i, got, c.check, proof.Err())
		}
	}
}

// A proof contains no value of the environment, which may be a token.
func TestProofOmitsValues(t *testing.T) {
	desired := samples()["joined"]
	desired.Env = []string{"TOKEN=the-secret"}
	f := asMade(desired)
	f.container.Config.Env = []string{"PATH=/bin", "TOKEN=another-secret"}
	text, err := json.Marshal(compare(desired, f))
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "TOKEN with a different value") {
		t.Errorf("proof: got %s, error %v, want %q and no value", text, err, "TOKEN with a different value")
	}
}

// A service keeps the settings that its image needs, and no others.
func TestCompareLoose(t *testing.T) {
	desired := samples()["loose"]
	f := asMade(desired)
	f.image.Config.Volumes, f.image.Config.Entrypoint = map[string]struct{}{"/data": {}}, []string{"/entry"}
	f.container.Path, f.container.Args = "/entry", desired.Argv
	f.holder.Config.Labels[sandbox.LabelProject] = desired.Labels[sandbox.LabelProject]
	volume := container.MountPoint{Type: "volume", Name: strings.Repeat("a", 64), Driver: "local", Destination: "/data", RW: true}
	f.container.Mounts = append(f.container.Mounts, volume)
	if err := compare(desired, f).Err(); err != nil {
		t.Error(err)
	}
	alone := desired
	alone.Below = false
	if compare(alone, f).Err() == nil {
		t.Error("proof with another container's processes: got no error, want one")
	}
	volume.Name, volume.Destination = "named", "/data"
	f.container.Mounts = []container.MountPoint{volume}
	if compare(desired, f).Err() == nil {
		t.Error("proof with a named volume: got no error, want one")
	}
	f.container.Mounts = nil
	f.container.HostConfig.CapAdd = append(f.container.HostConfig.CapAdd, "SYS_ADMIN")
	if compare(desired, f).Err() == nil {
		t.Error("proof with another capability: got no error, want one")
	}
}

func TestProofErr(t *testing.T) {
	ok, bad, weak := sandbox.Same("a", "1", "1"), sandbox.Same("b", "1", "2"), sandbox.Check{Name: "c", Weak: true}
	for _, c := range []struct {
		proof sandbox.Proof
		want  string
	}{
		{sandbox.Proof{ok}, "<nil>"},
		{sandbox.Proof{ok, weak}, "<nil>"},
		{nil, "the boundary is not proven: nothing was checked"},
		{sandbox.Proof{ok, bad}, `the boundary is not proven: b is "2", want "1"`},
		{sandbox.Proof{sandbox.Same("d", "", "x")}, "the boundary is not proven: d: got x, want none"},
		{sandbox.Proof{bad, ok, bad, weak}, `the boundary is not proven: b is "2", want "1"; also failed: b`},
	} {
		if got := fmt.Sprint(c.proof.Err()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
