package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"

	"abl/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// samples are the types of containers that abl creates.
func samples() map[string]sandbox.ContainerConfig {
	limits := sandbox.Limits{Memory: 4 << 30, CPUs: 2, Pids: 512, FileSize: 1 << 30, OpenFile: 4096}
	base := sandbox.ContainerConfig{
		Name: "n", Image: "sha256:abc", User: "1000:1001", Argv: []string{"/abl/bin/abl-run"}, Env: []string{"A=b"},
		Dir: "/workspace/src", Limits: limits,
		Labels: map[string]string{sandbox.LabelProject: "p", sandbox.LabelKind: "role"},
		Tmpfs: []sandbox.Tmpfs{
			{Target: "/tmp", Size: 512 << 20, Inodes: 50000, Mode: "1777", Exec: true},
			{Target: "/home/agent", Size: 256 << 20, Mode: "0700", Owned: true},
		},
	}
	joined, own, egress, none, loose, shell, seals := base, base, base, base, base, base, base
	joined.Reach.Join = "holder"
	joined.Mounts = []sandbox.Mount{
		{What: sandbox.Workspace, Source: "/p/src", Target: "/workspace/src"},
		{What: sandbox.GitDir, Source: "/p/src/.git", Target: "/workspace/src/.git"}, // read-only although not said
		{What: sandbox.Specs, Source: "/p/specs", Target: "/workspace/specs", ReadOnly: true},
		{What: sandbox.CallIn, Source: "/p/in", Target: "/abl/in"},
		{What: sandbox.CallOut, Source: "/p/out", Target: "/abl/out/stdout"},
		{What: sandbox.Empty, Source: "/p/empty", Target: "/workspace/src/sub"},
		{What: sandbox.Tree, Source: "tree", Target: "/app"},
		{What: sandbox.Scratch, Source: "scratch", Target: "/s", ReadOnly: true},
	}
	own.Reach.Endpoints = []sandbox.Endpoint{{Network: "n1", Aliases: []string{"app"}}, {Network: "n2"}}
	egress.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: "out"}}, Resolve: true}
	loose.Loose, loose.User, loose.Argv, loose.Reach.Join, loose.Below = true, "", []string{"-c", "x"}, "holder", true
	seals.Seals, seals.Reach = true, sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: "n1"}}}
	shell.Term, shell.Reach.Join, shell.Argv = true, "holder", []string{"/bin/bash"}
	return map[string]sandbox.ContainerConfig{"joined": joined, "own": own, "egress": egress, "none": none, "loose": loose, "shell": shell, "seals": seals}
}

func TestProfileGolden(t *testing.T) {
	for name, desired := range samples() {
		t.Run(name, func(t *testing.T) {
			config, host, net := profile(desired, sandbox.Info{CPUs: 8})
			for i, o := range host.SecurityOpt {
				host.SecurityOpt[i] = strings.Replace(o, filter(), "seccomp.json", 1)
			}
			got, err := json.MarshalIndent(map[string]any{"config": config, "host": host, "net": net}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "profile-"+name+".json"), append(got, '\n'))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got); run with -update when this is meant:\n%s", path, diff)
	}
}

// These rules apply to every type of container, independent of the golden files.
func TestProfileLaws(t *testing.T) {
	for name, desired := range samples() {
		c, h, n := profile(desired, sandbox.Info{CPUs: 1})
		laws := map[string]bool{
			"drops every capability":         slices.Equal(h.CapDrop, []string{"ALL"}),
			"adds none unless loose":         len(h.CapAdd) == 0 || desired.Loose || desired.Seals,
			"is root to close its network":   (c.User == "0:0") == desired.Seals,
			"is process 1 where it is abl's": *h.Init != (desired.Seals || !desired.Loose && strings.HasPrefix(desired.Argv[0], "/abl/bin/")),
			"filters system calls by abl's":  slices.Contains(h.SecurityOpt, "seccomp="+filter()),
			"takes no new privileges":        slices.Contains(h.SecurityOpt, "no-new-privileges:true"),
			"is not privileged":              !h.Privileged && len(h.Devices) == 0 && len(h.DeviceRequests) == 0,
			"cannot write its root":          h.ReadonlyRootfs || desired.Loose,
			"uses mounts, never binds":       len(h.Binds) == 0 && len(h.VolumesFrom) == 0 && len(h.Mounts) == len(desired.Mounts),
			"publishes nothing":              len(h.PortBindings) == 0 && !h.PublishAllPorts && len(c.ExposedPorts) == 0,
			"has no swap":                    h.MemorySwap == h.Memory,
			"asks for the CPUs there are":    h.NanoCPUs == 1e9,
			"is never restarted or removed":  h.RestartPolicy.Name == "no" && !h.AutoRemove,
			"says its log driver":            h.LogConfig.Type == "json-file" && h.LogConfig.Config["max-size"] == "10m",
			"takes one network at create":    len(n.EndpointsConfig) <= 1,
			"asks a holder for nothing":      desired.Reach.Join == "" || h.DNS == nil && h.Sysctls == nil && c.Hostname == "" && h.ExtraHosts == nil,
			"has IPv6 off of its own":        desired.Reach.Join != "" || h.Sysctls["net.ipv6.conf.all.disable_ipv6"] == "1",
			"asks no resolver of the host":   len(desired.Reach.Endpoints) == 0 || desired.Reach.Resolve || slices.Equal(h.DNS, []string{"127.0.0.1"}),
		}
		for law, holds := range laws {
			if !holds {
				t.Errorf("container %q %s: got false, want true", name, law)
			}
		}
	}
}

func TestTmpfsOptions(t *testing.T) {
	cases := map[string]sandbox.Tmpfs{
		"rw,nosuid,nodev,noexec":                       {Target: "/t", Owned: false},
		"rw,nosuid,nodev,exec,size=1,nr_inodes=2":      {Target: "/t", Size: 1, Inodes: 2, Exec: true},
		"rw,nosuid,nodev,noexec,mode=0700,uid=5,gid=6": {Target: "/t", Mode: "0700", Owned: true},
	}
	for want, in := range cases {
		if got := tmpfsOptions(in, "5:6"); got != want {
			t.Errorf("options of %+v: got %q, want %q", in, got, want)
		}
	}
}

// The filter is a list of names without dangerous system calls and those that need a capability.
func TestFilterAllowsNothingDangerous(t *testing.T) {
	var f struct {
		DefaultAction string
		ArchMap       []struct{ SubArchitectures []string }
		Syscalls      []struct {
			Action   string
			Names    []string
			Args     []any
			Includes map[string]any
		}
	}
	if err := json.Unmarshal([]byte(filter()), &f); err != nil || f.DefaultAction != "SCMP_ACT_ERRNO" || len(f.ArchMap) != 2 {
		t.Fatalf("filter: got %+v, error %v, want SCMP_ACT_ERRNO by default and 2 architectures", f, err)
	}
	all := map[string]bool{}
	for _, rule := range f.Syscalls {
		for _, name := range rule.Names {
			all[name] = all[name] || rule.Action == "SCMP_ACT_ALLOW" && len(rule.Args) == 0
		}
		if len(rule.Includes) > 0 {
			t.Errorf("rule of the filter: got %+v, want one for all containers", rule)
		}
	}
	for _, name := range strings.Fields(`ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd io_uring_setup io_uring_enter
		io_uring_register userfaultfd bpf perf_event_open keyctl add_key request_key mount umount2 mount_setattr move_mount open_tree fsopen fsmount
		pivot_root chroot unshare setns clone clone3 open_by_handle_at name_to_handle_at fanotify_init kexec_load init_module finit_module
		delete_module reboot swapon acct syslog sethostname settimeofday clock_settime iopl ioperm modify_ldt lookup_dcookie quotactl socket
		personality sched_setaffinity sched_setattr sched_setparam sched_setscheduler setpriority ioprio_set prlimit64 io_setup io_submit`) {
		if all[name] {
			t.Errorf("system call %s: got allowed, want refused", name)
		}
	}
	if len(all) < 250 || !all["execve"] || !all["openat"] {
		t.Errorf("system calls: got %d names, execve %v, openat %v, want at least 250 with both",
			len(all), all["execve"], all["openat"])
	}
}

// On an engine with SELinux all containers except services run without it, and Prove expects that.
func TestSELinux(t *testing.T) {
	for name, c := range map[string]struct {
		selinux, loose, want bool
	}{
		"off": {false, false, false}, "on": {true, false, true}, "a service": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			desired := sandbox.ContainerConfig{Name: "b", Image: "i", Loose: c.loose}
			_, host, _ := profile(desired, sandbox.Info{SELinux: c.selinux})
			if got := slices.Contains(host.SecurityOpt, "label=disable"); got != c.want {
				t.Errorf("label=disable: got %t, want %t", got, c.want)
			}
			f := found{container: container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &host}}}
			f.info.SELinux = c.selinux
			if got, want := securityOptions(f.container), wantSecurity(desired, f); got != want {
				t.Errorf("security options: got %q, want %q", got, want)
			}
		})
	}
	if !describe(system.Info{SecurityOptions: []string{"name=seccomp,profile=default", "name=selinux"}}, "1.41", "", machine{}).SELinux {
		t.Error("SELinux in the engine's list: got false, want true")
	}
}
