package docker

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

const (
	hostname    = "box"    // tells the role nothing
	shm         = 16 << 20 // default size in bytes; /dev/shm is writable even with a read-only root
	oomScore    = 500      // if the host runs out of memory, the kernel kills containers before services
	stopSeconds = 5        // between SIGTERM and SIGKILL when the engine itself shuts down
)

// looseCaps are the capabilities that official service images need to switch to their user.
var looseCaps = []string{"CHOWN", "SETUID", "SETGID", "DAC_OVERRIDE", "FOWNER"}

// sealCaps are the capabilities that a holder needs to close its network namespace and to switch to
// another user. Then it drops them.
var sealCaps = []string{"NET_ADMIN", "SETUID", "SETGID"}

const root = "0:0"

// allowed is the seccomp profile of all containers, independent of the engine's default. It allows
// the 64-bit system calls that Docker 28 allows to programs without capabilities, except for
// ptrace, process_vm_readv, process_vm_writev and a few that no container needs. It rejects new
// namespaces, 32-bit programs and vsock sockets.
//
//go:embed seccomp.json
var allowed []byte

// filter returns allowed in the form that engines accept.
var filter = sync.OnceValue(func() string {
	var b bytes.Buffer
	if err := json.Compact(&b, allowed); err != nil {
		return "internal error: " + err.Error() // the engine rejects it
	}
	return b.String()
})

// profile returns the engine's settings for a container: the hardening and everything in its
// specification.
func profile(desired sandbox.ContainerConfig, info sandbox.Info) (container.Config, container.HostConfig, network.NetworkingConfig) {
	host := hardened(desired)
	if unlabelled(desired, info) {
		host.SecurityOpt = append(host.SecurityOpt, labelDisable)
	}
	host.Resources = resources(desired.Limits, info)
	host.Mounts = mounts(desired.Mounts)
	host.Tmpfs = tmpfs(desired)
	reach(&host, desired)
	config := config(desired)
	if desired.Publish > 0 {
		port := nat.Port(fmt.Sprintf("%d/tcp", desired.Publish))
		host.PortBindings = nat.PortMap{port: {{HostIP: "127.0.0.1", HostPort: port.Port()}}}
		config.ExposedPorts = nat.PortSet{port: {}}
	}
	if desired.Reach.Join == "" {
		config.Hostname = hostname // the engine rejects a host name with Join
	}
	return config, host, endpoints(desired.Reach)
}

// labelDisable disables SELinux for a container. SELinux would deny access to the mounted files of
// the project and to the sockets that two containers share. The alternative, relabelling (z), would
// change the user's files.
const labelDisable = "label=disable"

// unlabelled reports whether a container runs without SELinux. A service shares no files and keeps
// it.
func unlabelled(desired sandbox.ContainerConfig, info sandbox.Info) bool {
	return info.SELinux && !desired.Loose
}

func config(desired sandbox.ContainerConfig) container.Config {
	c := container.Config{
		Image:        desired.Image,
		User:         desired.User,
		Env:          desired.Env,
		WorkingDir:   desired.Dir,
		Labels:       desired.Labels,
		StopSignal:   "SIGTERM",
		StopTimeout:  new(stopSeconds),
		Tty:          desired.Term,
		OpenStdin:    desired.Term || desired.Stdin,
		StdinOnce:    desired.Term,
		AttachStdin:  desired.Term,
		AttachStdout: desired.Term,
		AttachStderr: desired.Term,
	}
	if desired.Seals {
		c.User = root
	}
	if desired.Loose {
		c.Cmd = desired.Argv // the image's entry point prepares the service
		return c
	}
	c.Entrypoint = desired.Argv // with an entry point the engine ignores the image's command
	c.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	return c
}

// hardened returns the restrictions of a container.
func hardened(desired sandbox.ContainerConfig) container.HostConfig {
	// The engine's init reaps zombies, which count as processes, and forwards SIGTERM.
	// abl's own programs do that without it: other programs of a role could access the
	// memory of the engine's init, and that of a holder would keep its capabilities.
	ours := strings.HasPrefix(strings.Join(desired.Argv, " "), helper.Bin+"/")
	h := container.HostConfig{
		Init:           new(desired.Loose || !desired.Seals && !ours),
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + filter()},
		ReadonlyRootfs: !desired.Loose,
		IpcMode:        container.IPCModePrivate,
		CgroupnsMode:   container.CgroupnsModePrivate,
		ShmSize:        cmp.Or(desired.Shm, shm),
		OomScoreAdj:    oomScore,
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		// The default, which a daemon.json may override.
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "2"}},
	}
	if desired.Loose {
		h.CapAdd = looseCaps
	}
	if desired.Seals {
		h.CapAdd = sealCaps
	}
	return h
}

// resources returns the limits of a container.
func resources(l sandbox.Limits, info sandbox.Info) container.Resources {
	r := container.Resources{
		Memory:     l.Memory,
		MemorySwap: l.Memory,                                     // without MemorySwap the same amount of swap is allowed
		NanoCPUs:   int64(min(l.CPUs, float64(info.CPUs)) * 1e9), // the engine rejects more CPUs than it has
		Ulimits:    []*container.Ulimit{{Name: "core"}},
	}
	if l.Pids > 0 {
		r.PidsLimit = &l.Pids
	}
	if l.FileSize > 0 {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "fsize", Soft: l.FileSize, Hard: l.FileSize})
	}
	if l.OpenFile > 0 {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "nofile", Soft: l.OpenFile, Hard: l.OpenFile})
	}
	return r
}

// reach sets the network settings. A joined namespace brings its DNS and sysctls, and the engine
// rejects other ones.
func reach(h *container.HostConfig, desired sandbox.ContainerConfig) {
	r := desired.Reach
	switch {
	case r.Join != "":
		h.NetworkMode = container.NetworkMode("container:" + r.Join)
		if desired.Below {
			h.PidMode = container.PidMode(h.NetworkMode)
		}
		return
	case r.Host:
		h.NetworkMode = network.NetworkHost
		isolateDNS(h)
		return // the engine rejects sysctls
	case len(r.Endpoints) == 0:
		h.NetworkMode = network.NetworkNone
	default:
		h.NetworkMode = container.NetworkMode(r.Endpoints[0].Network)
	}
	if !r.Resolve {
		isolateDNS(h)
	}
	for _, name := range r.Self {
		h.ExtraHosts = append(h.ExtraHosts, name+":127.0.0.1")
	}
	h.Sysctls = map[string]string{"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv4.ip_forward": "0"}
}

// isolateDNS prevents the engine from forwarding DNS queries to the host's resolver
// (CVE-2024-29018). Names of containers on the same networks still resolve, with retries for
// packets that are lost under load.
func isolateDNS(h *container.HostConfig) {
	h.DNS = []string{"127.0.0.1"}
	h.DNSOptions = []string{"timeout:1", "attempts:5"}
	h.DNSSearch = []string{"."}
}

// endpoints returns the first network. Before API 1.44 an engine accepts only one at creation.
func endpoints(r sandbox.Reach) network.NetworkingConfig {
	if len(r.Endpoints) == 0 {
		return network.NetworkingConfig{}
	}
	first := r.Endpoints[0]
	return network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		first.Network: {Aliases: first.Aliases},
	}}
}

// mounts does not use HostConfig.Binds: the engine would create a missing source as root on the
// host, and a path could not contain a colon.
func mounts(all []sandbox.Mount) (out []mount.Mount) {
	for _, m := range all {
		to := mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target}
		to.ReadOnly = m.ReadOnly || alwaysReadOnly(m.What)
		if m.What.IsVolume() {
			to.Type = mount.TypeVolume
			// Do not copy the image's files, except for a proxy socket's volume, which gets the
			// mode of the image's directory.
			to.VolumeOptions = &mount.VolumeOptions{NoCopy: m.What != sandbox.Sockets}
		} else {
			// Read-only does not apply to file systems below the source, so do not mount them.
			to.BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: to.ReadOnly}
		}
		out = append(out, to)
	}
	return out
}

// alwaysReadOnly reports whether a mount is read-only even if the caller forgot to say so.
func alwaysReadOnly(w sandbox.What) bool {
	switch w {
	case sandbox.GitDir, sandbox.Specs, sandbox.CallIn, sandbox.Empty:
		return true
	}
	return false
}

// tmpfs returns the mount options by target.
func tmpfs(desired sandbox.ContainerConfig) map[string]string {
	if len(desired.Tmpfs) == 0 {
		return nil
	}
	out := make(map[string]string, len(desired.Tmpfs))
	for _, t := range desired.Tmpfs {
		out[t.Target] = tmpfsOptions(t, desired.User)
	}
	return out
}

func tmpfsOptions(t sandbox.Tmpfs, user string) string {
	o := "rw,nosuid,nodev,noexec"
	if t.Exec {
		o = "rw,nosuid,nodev,exec" // the engine's default is noexec
	}
	if t.Size > 0 {
		o += fmt.Sprintf(",size=%d", t.Size)
	}
	if t.Inodes > 0 {
		o += fmt.Sprintf(",nr_inodes=%d", t.Inodes)
	}
	if t.Mode != "" {
		o += ",mode=" + t.Mode
	}
	if uid, gid, ok := strings.Cut(user, ":"); ok && t.Owned {
		o += ",uid=" + uid + ",gid=" + gid
	}
	return o
}
