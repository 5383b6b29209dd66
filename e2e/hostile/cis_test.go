package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// shown is the part of an inspection that the checks read.
type shown struct {
	Name, Path      string
	AppArmorProfile string
	Config          struct {
		User, Image  string
		Env          []string
		ExposedPorts map[string]any
		Healthcheck  *struct{ Test []string }
		Labels       map[string]string
	}
	HostConfig struct {
		Privileged, ReadonlyRootfs, PublishAllPorts, AutoRemove                   bool
		Binds, VolumesFrom, CapAdd, CapDrop, SecurityOpt, Links, GroupAdd, DNS    []string
		NetworkMode, IpcMode, PidMode, UTSMode, UsernsMode, CgroupnsMode, Runtime string
		CgroupParent, VolumeDriver                                                string
		Memory, MemorySwap, NanoCPUs, ShmSize                                     int64
		PidsLimit                                                                 *int64
		Devices, DeviceRequests                                                   []any
		DeviceCgroupRules                                                         []string
		PortBindings                                                              map[string]any
		RestartPolicy                                                             struct{ Name string }
		Ulimits                                                                   []struct{ Name string }
		LogConfig                                                                 struct {
			Type   string
			Config map[string]string
		}
		Sysctls map[string]string
	}
	Mounts []struct {
		Type, Source, Destination, Propagation string
		RW                                     bool
	}
	NetworkSettings struct{ Networks map[string]any }
	State           struct{ Running bool }
}

// check is one item of section 5 of the CIS Docker Benchmark, or a related one, with the kinds of
// container that need not meet it and the reasons.
type check struct {
	id, what string
	holds    func(shown) bool
	except   map[string]string
}

// services are images of the user's choice, which change to their own users.
const services = "service"

// onHost is the reason for the network of the listener.
const onHost = "it finds out which packets arrive at the engine's machine"

// fill is the suffix of the name of the container that receives a copied tree.
const fill = "app-fill"

func checks() []check {
	none := map[string]string{}
	const never = "the container that receives a copied tree is never started"
	image := map[string]string{
		services: "an official image starts as root, becomes its own user and writes its own root",
		fill:     never,
	}
	root := map[string]string{
		services: image[services],
		"holder": "it closes its network namespace, then changes to a user without capabilities",
	}
	caps := map[string]string{services: image[services], "holder": root["holder"], fill: never}
	below := map[string]string{services: "its processes share the holder's PID namespace and end with it"}
	joined := func(s shown) bool { return strings.HasPrefix(s.HostConfig.NetworkMode, "container:") }
	option := func(s shown, want string) bool { return slices.Contains(s.HostConfig.SecurityOpt, want) }
	return []check{
		{
			"5.1",
			"AppArmor is not switched off",
			func(s shown) bool { return !option(s, "apparmor=unconfined") && s.AppArmorProfile != "unconfined" },
			none,
		},
		{
			"5.2",
			"SELinux is not switched off",
			func(s shown) bool { return !option(s, "label=disable") && !option(s, "label:disable") },
			none,
		},
		{"5.3", "no capabilities", func(s shown) bool {
			return slices.Equal(s.HostConfig.CapDrop, []string{"ALL"}) && len(s.HostConfig.CapAdd) == 0
		}, caps},
		{"5.3 holder", "a holder can only close its network and change its user, and write only to its socket folder", func(s shown) bool {
			add := strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(s.HostConfig.CapAdd)), " "), "CAP_", "")
			sockets := len(s.Mounts) == 0 || len(s.Mounts) == 1 && s.Mounts[0].Destination == "/abl/sockets"
			return s.Config.Labels["abl.kind"] != "holder" || sockets &&
				(add == "NET_ADMIN SETGID SETUID" || add == "" && s.HostConfig.NetworkMode == "none")
		}, none},
		{"5.3 service", "at most five capabilities", func(s shown) bool {
			return slices.Equal(s.HostConfig.CapDrop, []string{"ALL"}) && len(s.HostConfig.CapAdd) <= 5 &&
				!slices.Contains(s.HostConfig.CapAdd, "NET_RAW") && !slices.Contains(s.HostConfig.CapAdd, "SYS_ADMIN")
		}, none},
		{"5.4", "it is not privileged", func(s shown) bool { return !s.HostConfig.Privileged }, none},
		{"5.5", "no sensitive directory of the host is mounted", func(s shown) bool { return !mounts(s, sensitive) }, none},
		{
			"5.7",
			"no port is mapped",
			func(s shown) bool { return len(s.HostConfig.PortBindings) == 0 && !s.HostConfig.PublishAllPorts },
			none,
		},
		{
			"5.9",
			"the host's network is not shared",
			func(s shown) bool { return s.HostConfig.NetworkMode != "host" },
			map[string]string{"listener": onHost},
		},
		{"5.9 listener", "the listener has no mount and only its own program", func(s shown) bool {
			return s.Config.Labels["abl.kind"] != "listener" || len(s.Mounts) == 0 && s.Path == "/abl/bin/abl-probe"
		}, none},
		{"5.10", "memory is limited", func(s shown) bool { return s.HostConfig.Memory > 0 }, none},
		{
			"5.10 swap",
			"swap is disabled",
			func(s shown) bool { return s.HostConfig.Memory > 0 && s.HostConfig.MemorySwap == s.HostConfig.Memory },
			none,
		},
		{"5.11", "CPU is limited", func(s shown) bool { return s.HostConfig.NanoCPUs > 0 }, none},
		{"5.12", "the root is read-only", func(s shown) bool { return s.HostConfig.ReadonlyRootfs }, image},
		{
			"5.13",
			"traffic is bound to no interface of the host",
			func(s shown) bool { return len(s.HostConfig.PortBindings) == 0 },
			none,
		},
		{"5.14", "it is never restarted", func(s shown) bool {
			return s.HostConfig.RestartPolicy.Name == "no" || s.HostConfig.RestartPolicy.Name == ""
		}, none},
		{"5.15", "the host's processes are not shared", func(s shown) bool { return s.HostConfig.PidMode == "" }, below},
		{
			"5.16",
			"the host's shared memory is not shared",
			func(s shown) bool { return s.HostConfig.IpcMode == "private" },
			none,
		},
		{"5.17", "no device of the host", func(s shown) bool {
			return len(s.HostConfig.Devices)+len(s.HostConfig.DeviceRequests)+len(s.HostConfig.DeviceCgroupRules) == 0
		}, none},
		{"5.18", "limits are set: no core files", func(s shown) bool {
			return slices.ContainsFunc(s.HostConfig.Ulimits, func(u struct{ Name string }) bool { return u.Name == "core" })
		}, none},
		{"5.19", "no mount is shared with the host", func(s shown) bool {
			for _, m := range s.Mounts {
				if m.Propagation != "" && m.Propagation != "rprivate" && m.Propagation != "private" {
					return false
				}
			}
			return true
		}, none},
		{"5.20", "the host's name is not shared", func(s shown) bool { return s.HostConfig.UTSMode == "" }, none},
		{"5.21", "the seccomp profile is abl's", func(s shown) bool {
			return slices.ContainsFunc(s.HostConfig.SecurityOpt, func(o string) bool {
				return strings.HasPrefix(o, `seccomp={"defaultAction":"SCMP_ACT_ERRNO"`) && !strings.Contains(o, `"ptrace"`)
			})
		}, none},
		{"5.23", "it does not run as root", func(s shown) bool {
			return s.Config.User != "" && !strings.HasPrefix(s.Config.User, "0") && s.Config.User != "root"
		}, root},
		{
			"5.24",
			"it has a private control group",
			func(s shown) bool { return s.HostConfig.CgroupParent == "" && s.HostConfig.CgroupnsMode == "private" },
			none,
		},
		{
			"5.25",
			"no new privileges",
			func(s shown) bool { return option(s, "no-new-privileges:true") || option(s, "no-new-privileges") },
			none,
		},
		{"5.26", "no health check of an image runs", func(s shown) bool {
			return s.Config.Healthcheck != nil && slices.Equal(s.Config.Healthcheck.Test, []string{"NONE"})
		}, map[string]string{services: "an official image may have one, which runs in its container", fill: never}},
		{"5.27", "the image is named exactly", func(s shown) bool {
			return !strings.HasSuffix(s.Config.Image, ":latest") && strings.Contains(s.Config.Image, ":")
		}, none},
		{
			"5.28",
			"processes are limited",
			func(s shown) bool { return s.HostConfig.PidsLimit != nil && *s.HostConfig.PidsLimit > 0 },
			none,
		},
		{"5.29", "the engine's default bridge is not used", func(s shown) bool {
			_, usual := s.NetworkSettings.Networks["bridge"]
			return !usual && s.HostConfig.NetworkMode != "bridge" && s.HostConfig.NetworkMode != "default"
		}, none},
		{"5.30", "the host's user namespace is not requested", func(s shown) bool { return s.HostConfig.UsernsMode == "" }, none},
		{
			"5.31",
			"the engine's socket is not mounted",
			func(s shown) bool { return !mounts(s, "docker.sock", "containerd", "podman.sock") },
			none,
		},
		{
			"log",
			"its log cannot fill the disk",
			func(s shown) bool { return s.HostConfig.LogConfig.Config["max-size"] != "" },
			none,
		},
		{
			"shm",
			"its shared memory is small",
			func(s shown) bool { return s.HostConfig.ShmSize > 0 && s.HostConfig.ShmSize <= 64<<20 },
			none,
		},
		{"binds", "it uses mounts, not bind paths", func(s shown) bool {
			return len(s.HostConfig.Binds)+len(s.HostConfig.VolumesFrom)+len(s.HostConfig.Links) == 0
		}, none},
		{"groups", "no additional group", func(s shown) bool { return len(s.HostConfig.GroupAdd) == 0 }, none},
		{"dns", "no DNS server of the host is used", func(s shown) bool {
			return joined(s) || s.HostConfig.NetworkMode == "none" || slices.Equal(s.HostConfig.DNS, []string{"127.0.0.1"})
		}, map[string]string{"gateway": "it finds the provider by its name"}},
		{
			"ipv6",
			"no IPv6",
			func(s shown) bool { return joined(s) || s.HostConfig.Sysctls["net.ipv6.conf.all.disable_ipv6"] == "1" },
			map[string]string{"listener": onHost},
		},
		{"label", "it is labelled with its owner and its end of life", func(s shown) bool {
			return s.Config.Labels["abl.project"] != "" && s.Config.Labels["abl.kind"] != "" &&
				s.Config.Labels["abl.deadline"] != ""
		}, none},
		{"own", "only files of the project are mounted, and only the role's own are writable", ownMounts, none},
	}
}

const sensitive = "/etc /usr /bin /boot /dev /lib /proc /sys /root /var/run /run"

func mounts(s shown, what ...string) bool {
	for _, m := range s.Mounts {
		for _, w := range strings.Fields(strings.Join(what, " ")) {
			if m.Type == "bind" && (m.Source == w || strings.HasPrefix(m.Source, w+"/") ||
				strings.Contains(m.Source, w) && !strings.HasPrefix(w, "/")) {
				return true
			}
		}
	}
	return false
}

// writable lists the places that a container may write to through a mount.
var writable = []string{"/workspace/src", "/workspace/tests", "/abl/out/", "/abl/app", "/s"}

func ownMounts(s shown) bool {
	for _, m := range s.Mounts {
		if m.Type == "bind" && !strings.HasPrefix(m.Source, os.TempDir()) {
			return false
		}
		if m.RW && (strings.HasSuffix(m.Destination, "/.git") || strings.Contains(m.Destination, "specs") ||
			!slices.ContainsFunc(writable, func(w string) bool { return strings.HasPrefix(m.Destination, w) })) &&
			m.Type == "bind" {
			return false
		}
	}
	return true
}

// Every container of phases with all features meets the benchmark.
func TestContainersMeetCISBenchmark(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	image := s.service(t)
	s.Write(".abl/config.yaml", basic+usual+`
network: {allow: [npm]}
verifier_commands: {seed: {command: "true", description: "nothing"}}
app:
  command: node server.mjs
  port: 3000
  copy: tar
  ready: {path: /}
  services: {db: {image: "`+image+`", ready: {port: 4000}}}
`)
	s.script(s.byGemini("builder", nil), s.byGemini("verifier", nil))
	s.startProvider(t)
	s.play(0, "--agent", "gemini")
	s.shells(t)
	kinds, failed := map[string]int{}, map[string]bool{}
	for _, b := range s.watcher.seen() {
		kinds[b.Kind]++
		for _, doc := range b.shown {
			var is shown
			if err := json.Unmarshal(doc, &is); err != nil {
				t.Fatal(err)
			}
			for _, c := range checks() {
				_, kind := c.except[b.Kind]
				if !kind && !(c.except[fill] != "" && strings.HasSuffix(b.Name, "-"+fill)) && !c.holds(is) {
					failed[fmt.Sprintf("%s (%s): %s: not true that %s", b.Name, b.Kind, c.id, c.what)] = true
				}
			}
		}
	}
	for what := range failed {
		t.Errorf("failed check: got %s, want none", what)
	}
	for _, kind := range []string{"role", "app", "holder", "listener", "gateway", services, "helper", "replay", "witness", "shell"} {
		if kinds[kind] == 0 {
			t.Errorf("containers of kind %s: got none, want one or more: %v", kind, kinds)
		}
	}
	t.Logf("%d checks of %v", len(checks()), kinds)
}

// The checks can fail: a plain container of the engine passes few.
func TestBenchmarkFailsForAPlainContainer(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	id := docker(t, "create", "--label", "abl.project=test-hostile", "--label", "abl.kind=listener", "--privileged", "-v", "/etc:/etc2:shared",
		"-p", "80", "--pid", "host", "--ipc", "host", "--uts", "host",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--security-opt", "label=disable", "--restart", "always", "--device", "/dev/null",
		"-v", engineSocket+":/s", "--userns", "host", "--cgroupns", "host", "--link", s.linked(t), "--group-add", "1", "--shm-size", "1g", "--health-cmd", "true", s.toolsImage(), "true")
	t.Cleanup(func() { docker(t, "rm", "-f", id) })
	var is shown
	if err := json.Unmarshal(inspect(id), &is); err != nil {
		t.Fatal(err)
	}
	for _, c := range checks() {
		switch c.id {
		case "5.9", "5.27", "5.3 holder": // they need two networks, the tag "latest", and a holder
		default:
			if c.holds(is) {
				t.Errorf("%s (%s) for a container without defences: got a pass, want a failure", c.id, c.what)
			}
		}
	}
}

// linked starts a container for links.
func (s *scene) linked(t *testing.T) string {
	t.Helper()
	id := docker(t, "run", "-d", "--label", "abl.project=test-hostile", s.toolsImage(), "sleep", "600")
	t.Cleanup(func() { docker(t, "rm", "-f", id) })
	return id + ":other"
}

// service returns an image that starts as root and writes to its root file system.
func (s *scene) service(t *testing.T) string {
	t.Helper()
	image := "abl-test-hostile-db:" + strings.ToLower(t.Name())
	p := lab.Project{TB: t, Dir: t.TempDir()}
	p.Write("db.mjs", lab.File(t, "apps/database.mjs"))
	p.Write("Dockerfile", "FROM "+s.toolsImage()+"\nUSER 0\nCOPY db.mjs /db.mjs\nCMD [\"node\", \"/db.mjs\"]\n")
	docker(t, "build", "-q", "--label", "abl.project=test-hostile", "-t", image, p.Dir)
	t.Cleanup(func() { docker(t, "rmi", "-f", image) })
	return image
}

// shells opens a user's shell in each role's container and leaves it.
func (s *scene) shells(t *testing.T) {
	t.Helper()
	for _, role := range []string{"builder", "verifier"} {
		master, slave := terminal(t)
		cmd := s.command("shell", role, "--phase", "1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		slave.Close()
		if _, err := master.WriteString("exit\n"); err != nil {
			t.Fatal(err)
		}
		out := make(chan string)
		go func() {
			var b strings.Builder
			for buf := make([]byte, 1024); ; {
				n, err := master.Read(buf)
				b.Write(buf[:n])
				if err != nil {
					out <- b.String()
					return
				}
			}
		}()
		if err := cmd.Wait(); err != nil {
			t.Errorf("abl shell %s: got error %v, want none: %s", role, err, <-out)
			continue
		}
		<-out
	}
	if left := s.Left(); left != "" {
		t.Errorf("left after abl shell: got %s, want nothing", left)
	}
}
