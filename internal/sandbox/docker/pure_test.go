package docker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	gocmp "github.com/google/go-cmp/cmp"

	"abl/internal/sandbox"
)

// addresses returns addresses in the format of net.InterfaceAddrs.
func addresses(list ...string) (out []net.Addr) {
	for _, s := range list {
		at, in, err := net.ParseCIDR(s)
		if err != nil {
			panic(err)
		}
		out = append(out, &net.IPNet{IP: at, Mask: in.Mask})
	}
	return out
}

func TestSubnetsAvoidThisMachine(t *testing.T) {
	// Of the four in this pool, one has an address, and two lie in a larger network.
	taken := addresses("fe80::1/64", "10.9.0.1/28", "10.9.0.33/27", "10.8.0.1/24", "10.0.0.7/8")
	got, err := subnets("10.9.0.0/26", "n", taken)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[10.9.0.16/28]" {
		t.Errorf("free subnets: got %v, want [10.9.0.16/28]", got)
	}
	if got, err := subnets("10.9.0.0/28", "n", addresses("10.9.0.8/30")); err != nil || len(got) > 0 {
		t.Errorf("subnets of a full pool: got %v, error %v, want none", got, err)
	}
	for _, pool := range []string{"", "x", "10.9.0.0/29", "fd00::/64", "10.0.0.0/7"} {
		if _, err := subnets(pool, "n", nil); err == nil {
			t.Errorf("subnets of pool %q: got no error, want one", pool)
		}
	}
}

// A sweep removes only a few objects in parallel.
func TestSweepsAFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []stored
		var want []string
		for i := range 30 {
			all, want = append(all, stored{fmt.Sprintf("%02d", i), "id"}), append(want, fmt.Sprintf("%02d", i))
		}
		var now, most atomic.Int32
		removed, err := removeAll(t.Context(), "box", all, func(context.Context, string) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		if err != nil || !slices.Equal(removed, want) {
			t.Errorf("removed containers: got %q, error %v, want %q", removed, err, want)
		}
		if most.Load() != 8 {
			t.Errorf("parallel removals: got %d, want 8", most.Load())
		}
	})
}

// Every subnet is in the pool and does not overlap with a used one.
func FuzzSubnets(f *testing.F) {
	f.Add("10.213.0.0/16", "abl-p1", "10.213.0.0/24")
	f.Add("192.168.7.77/26", "", "192.168.0.0/16")
	f.Fuzz(func(t *testing.T, pool, name, used string) {
		taken, err := netip.ParsePrefix(used)
		if err != nil {
			return
		}
		whole, err := netip.ParsePrefix(pool)
		got, serr := subnets(pool, name, []net.Addr{text(used)})
		if serr != nil {
			return
		}
		seen := map[netip.Prefix]bool{}
		for _, p := range got {
			if err != nil || seen[p] || p.Bits() != slice || p != p.Masked() || !whole.Contains(p.Addr()) || taken.Bits() >= whole.Bits() && taken.Overlaps(p) {
				t.Fatalf("subnets of pool %q with %q in use: got %v, want a new and free one of the pool",
					pool, used, p)
			}
			seen[p] = true
		}
	})
}

// text is the text of an address.
type text string

func (text) Network() string  { return "" }
func (t text) String() string { return string(t) }

func TestDescribe(t *testing.T) {
	here := machine{os: "linux", name: "vm", kernel: "6.1"}
	raw := func(change func(*system.Info)) system.Info {
		i := system.Info{OSType: "linux", Name: "vm", KernelVersion: "6.1", OperatingSystem: "Debian", SecurityOptions: []string{"name=seccomp,profile=default"}}
		change(&i)
		return i
	}
	const socket = "unix:///var/run/docker.sock"
	cases := map[string]struct {
		raw   system.Info
		host  string
		here  machine
		local bool
		mode  string
		away  bool // on another machine
	}{
		"this-machine":      {raw: raw(func(*system.Info) {}), host: socket, here: here, local: true},
		"over-TCP":          {raw: raw(func(*system.Info) {}), host: "tcp://127.0.0.1:2375", here: here, away: true},
		"a-virtual-machine": {raw: raw(func(i *system.Info) { i.KernelVersion = "5" }), host: socket, here: here},
		"from-a-container":  {raw: raw(func(i *system.Info) { i.Name = "host" }), host: socket, here: here, away: true},
		"from-a-marked-one": {raw: raw(func(i *system.Info) { i.Name, i.KernelVersion = "host", "5" }), host: socket, here: machine{os: "linux", name: "vm", kernel: "6.1", contained: true}, away: true},
		"beside-abl":        {raw: raw(func(*system.Info) {}), host: socket, here: machine{os: "linux", name: "vm", kernel: "6.1", contained: true}, local: true},
		"portable":          {raw: raw(func(*system.Info) {}), host: socket, here: machine{os: "linux", name: "vm"}},
		"of-a-Mac":          {raw: raw(func(i *system.Info) { i.Name = "docker-desktop" }), host: socket, here: machine{os: "darwin", name: "mac"}},
		"Docker-Desktop":    {raw: raw(func(i *system.Info) { i.OperatingSystem = "Docker Desktop" }), host: socket, here: here},
		"from-a-Mac":        {raw: raw(func(*system.Info) {}), host: socket, here: machine{os: "darwin", name: "vm", kernel: "6.1"}},
		"nothing-known":     {raw: raw(func(i *system.Info) { i.Name, i.KernelVersion = "", "" }), host: socket, here: machine{os: "linux"}, away: true},
		"rootless": {raw: raw(func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=rootless", "name=cgroupns") }),
			host: socket, here: here, local: true, mode: "rootless"},
		"Podman": {raw: raw(func(i *system.Info) { i.Plugins.Log = []string{"k8s-file", "journald"} }), host: socket, here: here, local: true, mode: "podman"},
		"remapped": {raw: raw(func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=userns") }),
			host: socket, here: here, local: true, mode: "userns"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := describe(c.raw, "1.41", c.host, c.here)
			if got.Local != c.local || got.Near == c.away || got.Rootless != (c.mode == "rootless") || got.UserNS != (c.mode == "userns") || got.Podman != (c.mode == "podman") {
				t.Errorf("got %+v, want local %t, near %t, mode %q", got, c.local, !c.away, c.mode)
			}
		})
	}
}

func TestToState(t *testing.T) {
	const never, once = "0001-01-01T00:00:00Z", "2026-11-21T09:00:00.5Z"
	cases := []struct {
		raw  container.State
		want sandbox.State
	}{
		{container.State{Status: "created", StartedAt: never}, sandbox.Created},
		{container.State{Status: "exited", StartedAt: never, ExitCode: 127}, sandbox.Created}, // its command could not be started
		{container.State{Status: "created", StartedAt: ""}, sandbox.Created},
		{container.State{Status: "running", Running: true, StartedAt: once}, sandbox.Running},
		{container.State{Status: "paused", Running: true, Paused: true, StartedAt: once}, sandbox.Running},
		{container.State{Status: "exited", StartedAt: once}, sandbox.Exited},
		{container.State{Status: "dead", Dead: true, StartedAt: once}, sandbox.Exited},
		{container.State{Status: "removing", StartedAt: once}, sandbox.Exited},
	}
	for _, c := range cases {
		if got := toState(&c.raw); got != c.want {
			t.Errorf("state of %+v: got %s, want %s", c.raw, got, c.want)
		}
	}
}

func TestOverlayable(t *testing.T) {
	for path, ok := range map[string]bool{"/a/b": true, "/a b": true, "/a,b": false, "/a:b": false, `/a\b`: false, "a": false, "/a/../b": false, "": false} {
		if err := overlayable(path); (err == nil) != ok {
			t.Errorf("path %q: got error %v, want it accepted: %v", path, err, ok)
		}
	}
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := func(pairs ...string) func(string) string {
		all := map[string]string{"DOCKER_CONFIG": dir, "HOME": dir}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return func(key string) string { return all[key] }
	}
	cases := []struct {
		config    string
		env       func(string) string
		want, err string
	}{
		{`{}`, env(), "unix:///var/run/docker.sock", ""},
		{`{"currentContext":"default"}`, env(), "unix:///var/run/docker.sock", ""},
		{`{"currentContext":"far"}`, env(), "tcp://far.example:2376", ""},
		{`{"currentContext":"gone"}`, env("DOCKER_CONTEXT", "far"), "tcp://far.example:2376", ""},
		{`{"currentContext":"far"}`, env("DOCKER_CONTEXT", "default"), "unix:///var/run/docker.sock", ""},
		{`{"currentContext":"far"}`, env("DOCKER_HOST", "tcp://near.example:1"), "tcp://near.example:1", ""},
		{`{"currentContext":"gone"}`, env(), "", `cannot use Docker context "gone"`},
		{`{`, env(), "", "cannot read Docker's configuration"},
		{`{}`, env("DOCKER_HOST", "tcp://x:1", "DOCKER_CERT_PATH", dir), "", "DOCKER_CERT_PATH"},
	}
	folder := fmt.Sprintf("%x", sha256.Sum256([]byte("far"))) // so the store names it
	write("contexts/meta/"+folder+"/meta.json", `{"Name":"far","Endpoints":{"docker":{"Host":"tcp://far.example:2376"}}}`)
	for _, c := range cases {
		write("config.json", c.config)
		at, err := locate(c.env)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got error %v, want %q", c.config, err, c.err)
			}
		} else if err != nil || at.Host != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.config, at.Host, err, c.want)
		}
	}
}

func TestNetworkOptions(t *testing.T) {
	subnet := netip.MustParsePrefix("10.213.0.16/28")
	for _, c := range []struct {
		api    string
		egress bool
		want   map[string]string
	}{
		{"1.41", false, map[string]string{inhibitIPv4: "true"}},
		{"1.47", false, map[string]string{inhibitIPv4: "true"}},
		{"1.48", false, map[string]string{gatewayMode: "isolated"}},
		{"1.51", false, map[string]string{gatewayMode: "isolated"}},
		{"1.41", true, nil},
		{"1.51", true, nil},
	} {
		n := sandbox.Network{Name: "n", Egress: c.egress}
		got := networkOptions(n, describe(system.Info{}, c.api, "", machine{}).Apart, subnet)
		if diff := gocmp.Diff(c.want, got.Options); diff != "" || got.Internal == c.egress || *got.EnableIPv6 || got.IPAM.Config[0].Subnet != subnet.String() {
			t.Errorf("API %s, egress %v: got %+v, want options %v, internal %v, subnet %s and no IPv6",
				c.api, c.egress, got, c.want, !c.egress, subnet)
		}
	}
}

// Docker Desktop reports this machine's paths with the prefix of its virtual machine.
func TestSharedPaths(t *testing.T) {
	m := container.MountPoint{Type: "bind", Source: "/host_mnt/Users/me", RW: true, Propagation: "rprivate"}
	inspected := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{}}}
	for local, want := range map[bool]string{false: "bind /Users/me read and write, rprivate", true: "bind /host_mnt/Users/me read and write, rprivate"} {
		if got := describeMount(m, found{info: sandbox.Info{Local: local}, container: inspected}); got != want {
			t.Errorf("local %t: got %s, want %s", local, got, want)
		}
	}
}
