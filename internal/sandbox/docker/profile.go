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
	hostname    = "box"    // neutral: a role learns nothing from its own name
	shm         = 16 << 20 // bytes unless a box says more; /dev/shm is writable even under a read-only root
	oomScore    = 500      // when the host runs out of memory boxes die before its services
	stopSeconds = 5        // between SIGTERM and SIGKILL when the engine itself shuts down
)

// looseCaps is what official service images need to become their own user.
var looseCaps = []string{"CHOWN", "SETUID", "SETGID", "DAC_OVERRIDE", "FOWNER"}

// sealCaps is what a holder needs to close its network namespace and to become
// another user, upon which it has none.
var sealCaps = []string{"NET_ADMIN", "SETUID", "SETGID"}

const root = "0:0"

// allowed are the system calls that a box may make, and no others, whatever the
// engine's own filter says. The names are those that Docker's engine 28 allows to
// programs without a capability, as far as 64-bit machines have them, less ptrace,
// process_vm_readv and process_vm_writev and a few that no box needs; a new
// namespace, a 32-bit program and a socket to the machine below are refused.
//
//go:embed seccomp.json
var allowed []byte

// filter is allowed as an engine takes them.
var filter = sync.OnceValue(func() string {
	var b bytes.Buffer
	if err := json.Compact(&b, allowed); err != nil {
		return "internal error: " + err.Error() // which no engine takes
	}
	return b.String()
})

// profile is the hardening that every box gets, and all that a box asks for.
func profile(box sandbox.Box, info sandbox.Info) (container.Config, container.HostConfig, network.NetworkingConfig) {
	host := hardened(box)
	if unlabelled(box, info) {
		host.SecurityOpt = append(host.SecurityOpt, labelDisable)
	}
	host.Resources = resources(box.Limits, info)
	host.Mounts = mounts(box.Mounts)
	host.Tmpfs = tmpfs(box)
	reach(&host, box)
	config := config(box)
	if box.Publish > 0 {
		port := nat.Port(fmt.Sprintf("%d/tcp", box.Publish))
		host.PortBindings = nat.PortMap{port: {{HostIP: "127.0.0.1", HostPort: port.Port()}}}
		config.ExposedPorts = nat.PortSet{port: {}}
	}
	if box.Reach.Join == "" {
		config.Hostname = hostname // a joined box has its holder's, and may not ask for one
	}
	return config, host, endpoints(box.Reach)
}

// labelDisable takes a container out of SELinux's confinement, which would keep it from the files of the
// project that are mounted into it and from the sockets that two containers share. The other way, a new
// label for the user's files (z), would change these.
const labelDisable = "label=disable"

// unlabelled reports whether a box runs outside of SELinux's confinement. A service shares no files.
func unlabelled(box sandbox.Box, info sandbox.Info) bool { return info.SELinux && !box.Loose }

func config(box sandbox.Box) container.Config {
	c := container.Config{
		Image: box.Image, User: box.User, Env: box.Env, WorkingDir: box.Dir, Labels: box.Labels,
		StopSignal: "SIGTERM", StopTimeout: new(stopSeconds),
		Tty: box.Term, OpenStdin: box.Term || box.Stdin, StdinOnce: box.Term,
		AttachStdin: box.Term, AttachStdout: box.Term, AttachStderr: box.Term,
	}
	if box.Seals {
		c.User = root
	}
	if box.Loose {
		c.Cmd = box.Argv // the image's own entry point prepares the service
		return c
	}
	c.Entrypoint = box.Argv // with one of ours the engine leaves the image's command away
	c.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	return c
}

func hardened(box sandbox.Box) container.HostConfig {
	// The engine's init reaps zombies, which count as processes, and passes SIGTERM
	// on. abl's own programs do so themselves: other programs of a role could read
	// and write the memory of the engine's, and a holder's would keep its rights.
	ours := strings.HasPrefix(strings.Join(box.Argv, " "), helper.Bin+"/")
	h := container.HostConfig{
		Init:           new(box.Loose || !box.Seals && !ours),
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + filter()},
		ReadonlyRootfs: !box.Loose,
		IpcMode:        container.IPCModePrivate,
		CgroupnsMode:   container.CgroupnsModePrivate,
		ShmSize:        cmp.Or(box.Shm, shm),
		OomScoreAdj:    oomScore,
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		// Set although it is the default: a machine's daemon.json may say otherwise.
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "2"}},
	}
	if box.Loose {
		h.CapAdd = looseCaps
	}
	if box.Seals {
		h.CapAdd = sealCaps
	}
	return h
}

func resources(l sandbox.Limits, info sandbox.Info) container.Resources {
	r := container.Resources{
		Memory: l.Memory, MemorySwap: l.Memory, // alone, Memory allows as much swap again
		NanoCPUs: int64(min(l.CPUs, float64(info.CPUs)) * 1e9), // an engine refuses to give more than there are
		Ulimits:  []*container.Ulimit{{Name: "core"}},
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

// reach sets where a box can connect to. A shared namespace brings its DNS and
// settings along, and the engine refuses to have them set again.
func reach(h *container.HostConfig, box sandbox.Box) {
	r := box.Reach
	switch {
	case r.Join != "":
		h.NetworkMode = container.NetworkMode("container:" + r.Join)
		if box.Below {
			h.PidMode = container.PidMode(h.NetworkMode)
		}
		return
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

// isolateDNS keeps the engine from asking the host's resolver on a box's
// behalf (CVE-2024-29018). Names of boxes on the same networks resolve all the same, and
// are asked for again when a packet is lost, as happens under load.
func isolateDNS(h *container.HostConfig) {
	h.DNS = []string{"127.0.0.1"}
	h.DNSOptions = []string{"timeout:1", "attempts:5"}
	h.DNSSearch = []string{"."}
}

// endpoints names the first network: before API 1.44 an engine takes one at create.
func endpoints(r sandbox.Reach) network.NetworkingConfig {
	if len(r.Endpoints) == 0 {
		return network.NetworkingConfig{}
	}
	first := r.Endpoints[0]
	return network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		first.Network: {Aliases: first.Aliases},
	}}
}

// mounts never becomes HostConfig.Binds: those make a missing source as root
// on the host, and a colon in a path breaks them.
func mounts(all []sandbox.Mount) (out []mount.Mount) {
	for _, m := range all {
		to := mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target}
		to.ReadOnly = m.ReadOnly || alwaysReadOnly(m.What)
		if m.What.IsVolume() {
			to.Type = mount.TypeVolume
			// An image's files stay out of it, but a door has the mode of the image's.
			to.VolumeOptions = &mount.VolumeOptions{NoCopy: m.What != sandbox.Door}
		} else {
			// Read-only does not reach the file systems mounted below the source, so they are left out.
			to.BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: to.ReadOnly}
		}
		out = append(out, to)
	}
	return out
}

// alwaysReadOnly holds whatever a caller forgot to say.
func alwaysReadOnly(w sandbox.What) bool {
	switch w {
	case sandbox.GitDir, sandbox.Specs, sandbox.CallIn, sandbox.Empty:
		return true
	}
	return false
}

// tmpfs gives each target its options in the form of mount(8).
func tmpfs(box sandbox.Box) map[string]string {
	if len(box.Tmpfs) == 0 {
		return nil
	}
	out := make(map[string]string, len(box.Tmpfs))
	for _, t := range box.Tmpfs {
		out[t.Target] = tmpfsOptions(t, box.User)
	}
	return out
}

func tmpfsOptions(t sandbox.Tmpfs, user string) string {
	o := "rw,nosuid,nodev,noexec"
	if t.Exec {
		o = "rw,nosuid,nodev,exec" // the engine's own default is noexec
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
