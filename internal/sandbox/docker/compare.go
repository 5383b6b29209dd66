package docker

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// compare compares a container with its specification. It states the expected values independently
// of profile.go, so that it detects mistakes there.
func compare(desired sandbox.ContainerConfig, f found) sandbox.Proof {
	var p sandbox.Proof
	parts := []func(sandbox.ContainerConfig, found) sandbox.Proof{program, privileges, bounds, mountChecks, netChecks, leftOut}
	for _, part := range parts {
		p = append(p, part(desired, f)...)
	}
	return p
}

// program checks the program, its user and its environment.
func program(desired sandbox.ContainerConfig, f found) sandbox.Proof {
	c, health := f.container.Config, "NONE"
	if desired.Loose {
		health = strings.Join(value(value(f.image.Config).Healthcheck).Test, " ")
	}
	return sandbox.Proof{
		sandbox.Same("state", string(sandbox.Created), string(toState(f.container.State))),
		sandbox.Same("image", desired.Image+" "+f.image.ID, c.Image+" "+f.container.Image),
		sandbox.Same("command", commandOf(desired, f), quoted(append([]string{f.container.Path}, f.container.Args...))),
		user(desired, c),
		sandbox.Same("folder", cmp.Or(desired.Dir, value(f.image.Config).WorkingDir), c.WorkingDir),
		environment(desired, f),
		sandbox.Same("terminal", fmt.Sprint(desired.Term), fmt.Sprint(c.Tty || c.AttachStdin)),
		sandbox.Same("standard input", fmt.Sprint(desired.Term || desired.Stdin), fmt.Sprint(c.OpenStdin)),
		labels(desired, c),
		sandbox.Same("health check", health, strings.Join(value(c.Healthcheck).Test, " ")),
	}
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// commandOf returns the expected command. For a loose container, Argv are the arguments of the
// image's entry point.
func commandOf(desired sandbox.ContainerConfig, f found) string {
	if !desired.Loose {
		return quoted(desired.Argv)
	}
	d := value(f.image.Config)
	words := desired.Argv
	if len(words) == 0 {
		words = d.Cmd
	}
	return quoted(append(slices.Clone(d.Entrypoint), words...))
}

func quoted(words []string) string { return fmt.Sprintf("%q", words) }

// user rejects root in any case. Only a service that the user chose may use its image's user.
func user(desired sandbox.ContainerConfig, c *container.Config) sandbox.Check {
	if desired.Loose && desired.User == "" {
		return sandbox.Check{
			Name: "user",
			Want: "the image's user",
			Got:  cmp.Or(c.User, "root"),
			OK:   true,
		}
	}
	if desired.Seals {
		return sandbox.Same("user", "0:0", c.User) // its program switches to the container's user
	}
	check := sandbox.Same("user", desired.User, c.User)
	uid, _, _ := strings.Cut(c.User, ":")
	if strings.Trim(uid, "0") == "" {
		check.Want, check.OK = "not root", false
	}
	return check
}

// environment compares names and values, but shows only names: a value may be a token, and the
// proof is stored.
func environment(desired sandbox.ContainerConfig, f found) sandbox.Check {
	want := pairs(value(f.image.Config).Env)
	maps.Copy(want, pairs(desired.Env))
	got := pairs(f.container.Config.Env)
	names := slices.Sorted(maps.Keys(got))
	for i, name := range names {
		if value, ok := want[name]; ok && value != got[name] {
			names[i] = name + " with a different value"
		}
	}
	meant := slices.Sorted(maps.Keys(want))
	return sandbox.Same("environment", strings.Join(meant, " "), strings.Join(names, " "))
}

// labels checks the specified labels. An image may add more.
func labels(desired sandbox.ContainerConfig, c *container.Config) sandbox.Check {
	got := map[string]string{}
	for key := range desired.Labels {
		got[key] = c.Labels[key]
	}
	return sandbox.Same("labels", paired(desired.Labels, "="), paired(got, "="))
}

// bounds checks the limits.
func bounds(desired sandbox.ContainerConfig, f found) sandbox.Proof {
	l, h := desired.Limits, f.container.HostConfig
	swap := l.Memory
	if l.Memory > 0 && f.info.NoSwapLimit {
		swap = -1 // the engine reports this if the kernel cannot limit swap
	}
	files := []string{"core 0 to 0"}
	for name, most := range map[string]int64{"fsize": l.FileSize, "nofile": l.OpenFile} {
		if most > 0 {
			files = append(files, fmt.Sprintf("%s %d to %d", name, most, most))
		}
	}
	var limits []string
	for _, u := range h.Ulimits {
		limits = append(limits, fmt.Sprintf("%s %d to %d", u.Name, u.Soft, u.Hard))
	}
	const memory, share = "%d, with swap %d", "%.2f, a quota of %d in %d, %d of it in real time"
	return sandbox.Proof{
		sandbox.Same("memory",
			fmt.Sprintf(memory, l.Memory, swap), fmt.Sprintf(memory, h.Memory, h.MemorySwap)),
		sandbox.Same("memory kill", "off false, score 500",
			fmt.Sprintf("off %t, score %d", value(h.OomKillDisable), h.OomScoreAdj)),
		sandbox.Same("shared memory", fmt.Sprint(cmp.Or(desired.Shm, 16<<20)), fmt.Sprint(h.ShmSize)),
		sandbox.Same("processes", fmt.Sprint(l.Pids), fmt.Sprint(max(value(h.PidsLimit), 0))),
		sandbox.Same("cpus", fmt.Sprintf(share, min(l.CPUs, float64(f.info.CPUs)), 0, 0, 0),
			fmt.Sprintf(share, float64(h.NanoCPUs)/1e9, h.CPUQuota, h.CPUPeriod, h.CPURealtimeRuntime)),
		sandbox.Same("limits of files", list(files), list(limits)),
	}
}

// none is the value of a check for an empty list.
const none = "none"

// privileges checks the restrictions of the program's privileges.
func privileges(desired sandbox.ContainerConfig, f found) sandbox.Proof {
	h, add := f.container.HostConfig, none
	init, pid := fmt.Sprint(!strings.HasPrefix(strings.Join(desired.Argv, " "), helper.Bin+"/")), "own"
	if desired.Loose {
		init = "true"
		add = "CHOWN DAC_OVERRIDE FOWNER SETGID SETUID"
	}
	if desired.Below {
		pid = "of " + desired.Reach.Join
	}
	if desired.Seals {
		add, init = "NET_ADMIN SETGID SETUID", "false"
	}
	return sandbox.Proof{
		sandbox.Same("privileged", "false", fmt.Sprint(h.Privileged)),
		sandbox.Same("capabilities", "without ALL, with "+add, "without "+caps(h.CapDrop)+", with "+caps(h.CapAdd)),
		sandbox.Same("security options", wantSecurity(desired, f), securityOptions(f.container)),
		sandbox.Same("hidden system paths", hidden, hiddenPaths(h)),
		sandbox.Same("root file system", writable(desired.Loose), writable(!h.ReadonlyRootfs)),
		sandbox.Same("namespaces", "ipc private, pid "+pid+", uts own, user the engine's, cgroup private",
			namespaces(h, f.holder)),
		sandbox.Same("supplementary groups", none, list(h.GroupAdd)),
		sandbox.Same("devices", none, devices(h)),
		sandbox.Same("control group", none, list([]string{h.CgroupParent, string(h.Cgroup)})),
		sandbox.Same("init", init, fmt.Sprint(value(h.Init))),
	}
}

func caps(all []string) string {
	var names []string
	for _, c := range all {
		names = append(names, strings.TrimPrefix(strings.ToUpper(c), "CAP_")) // newer engines report the full names
	}
	return list(names)
}

// list joins the sorted non-empty words.
func list(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) == 0 {
		return none
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// securityOptions lists all security options. It normalizes no-new-privileges, which engines spell
// differently, and abl's seccomp profile.
func securityOptions(inspected container.InspectResponse) string {
	var all []string
	for _, o := range inspected.HostConfig.SecurityOpt {
		name, value, _ := strings.Cut(strings.Replace(o, "=", ":", 1), ":")
		if name == "no-new-privileges" && (value == "" || value == "true") {
			o = name
		}
		if name == "seccomp" && value == filter() {
			o = "seccomp=abl"
		}
		all = append(all, o)
	}
	if inspected.AppArmorProfile == "unconfined" {
		all = append(all, "apparmor=unconfined")
	}
	return list(all)
}

// hidden describes paths of procfs and sysfs that are accessible in an unhardened container. They
// are a sample of the engine's list.
const hidden = "/proc/kcore and /sys/firmware masked, /proc/sys and /proc/sysrq-trigger read-only"

func hiddenPaths(h *container.HostConfig) string {
	if slices.Contains(h.MaskedPaths, "/proc/kcore") && slices.Contains(h.MaskedPaths, "/sys/firmware") &&
		slices.Contains(h.ReadonlyPaths, "/proc/sys") && slices.Contains(h.ReadonlyPaths, "/proc/sysrq-trigger") {
		return hidden
	}
	return fmt.Sprintf("masked %s, read-only %s", list(h.MaskedPaths), list(h.ReadonlyPaths))
}

func writable(yes bool) string {
	if yes {
		return "read and write"
	}
	return "read-only"
}

func namespaces(h *container.HostConfig, holder *container.InspectResponse) string {
	return fmt.Sprintf("ipc %s, pid %s, uts %s, user %s, cgroup %s", h.IpcMode, cmp.Or(holderOf(h.PidMode, holder), "own"),
		cmp.Or(string(h.UTSMode), "own"), cmp.Or(string(h.UsernsMode), "the engine's"), h.CgroupnsMode)
}

func devices(h *container.HostConfig) string {
	var all []string
	for _, d := range h.Devices {
		all = append(all, d.PathOnHost)
	}
	for _, d := range h.DeviceRequests {
		all = append(all, fmt.Sprint(d.Driver, d.Capabilities))
	}
	return list(append(all, h.DeviceCgroupRules...))
}

// leftOut checks settings that abl never uses.
func leftOut(desired sandbox.ContainerConfig, f found) sandbox.Proof {
	h := f.container.HostConfig
	restart := string(h.RestartPolicy.Name)
	if h.AutoRemove {
		restart += ", auto-remove"
	}
	log, published := h.LogConfig.Config, none
	if desired.Publish > 0 {
		published = fmt.Sprintf("%d/tcp at 127.0.0.1:%d", desired.Publish, desired.Publish)
	}
	return sandbox.Proof{
		sandbox.Same("published ports", published, ports(h)),
		sandbox.Same("links", none, list(h.Links)),
		sandbox.Same("volumes from other containers", none, list(append(slices.Clone(h.VolumesFrom), h.VolumeDriver))),
		sandbox.Same("restart", string(container.RestartPolicyDisabled), restart),
		sandbox.Same("log", "json-file, 2 of 10m",
			fmt.Sprintf("%s, %s of %s", h.LogConfig.Type, log["max-file"], log["max-size"])),
	}
}

func ports(h *container.HostConfig) string {
	var all []string
	for _, port := range slices.Collect(maps.Keys(h.PortBindings)) {
		text := string(port)
		for _, at := range h.PortBindings[port] {
			text += " at " + at.HostIP + ":" + at.HostPort
		}
		all = append(all, text)
	}
	if h.PublishAllPorts {
		all = append(all, "all exposed ports")
	}
	return list(all)
}

// mountChecks compares each mount and finds unexpected ones.
func mountChecks(desired sandbox.ContainerConfig, f found) (p sandbox.Proof) {
	got := map[string]string{}
	for _, m := range f.container.Mounts {
		got[m.Destination] = strings.TrimPrefix(got[m.Destination]+", "+describeMount(m, f), ", ")
	}
	for _, m := range desired.Mounts {
		p = append(p, sandbox.Same("mount "+m.Target, wantMount(m), cmp.Or(got[m.Target], none)))
		delete(got, m.Target)
	}
	for _, target := range slices.Sorted(maps.Keys(got)) {
		_, asked := value(f.image.Config).Volumes[target]
		if !(asked && desired.Loose && anonymous.MatchString(got[target])) {
			p = append(p, sandbox.Same("mount "+target, none, got[target]))
		}
	}
	h := f.container.HostConfig
	return append(p,
		sandbox.Same("binds", none, list(h.Binds)),
		sandbox.Same("tmpfs mounts", paired(tmpfs(desired), ":"), paired(h.Tmpfs, ":")))
}

// anonymous matches a volume that the engine creates because a service's image declares it. The
// engine removes it with the container.
var anonymous = regexp.MustCompile(`^volume [0-9a-f]{64} `)

// wantMount describes a mount of the specification in the format of describeMount.
func wantMount(m sandbox.Mount) string {
	readOnly := m.ReadOnly
	switch m.What {
	case sandbox.Scratch, sandbox.Tree, sandbox.Sockets:
		return fmt.Sprintf("volume %s %s", m.Source, writable(!readOnly))
	case sandbox.GitDir, sandbox.Specs, sandbox.CallIn, sandbox.Empty:
		readOnly = true
	}
	more := ""
	if readOnly {
		more = ", non-recursive"
	}
	return fmt.Sprintf("bind %s %s, rprivate%s", m.Source, writable(!readOnly), more)
}

// shared is the directory with this machine's files in Docker Desktop's virtual machine. Some
// versions report paths with it.
const shared = "/host_mnt"

// describeMount describes a mount of the container.
func describeMount(m container.MountPoint, f found) string {
	if m.Type == mount.TypeVolume {
		text := fmt.Sprintf("volume %s %s", m.Name, writable(m.RW))
		if m.Driver != "local" {
			text += ", driver " + m.Driver
		}
		return text
	}
	source := m.Source
	if !f.info.Local {
		source = strings.TrimPrefix(source, shared)
	}
	text := fmt.Sprintf("%s %s %s, %s", m.Type, source, writable(m.RW), m.Propagation)
	for _, asked := range f.container.HostConfig.Mounts {
		if asked.Target == m.Destination && asked.BindOptions != nil && asked.BindOptions.NonRecursive {
			text += ", non-recursive"
		}
	}
	return text
}

// paired lists settings as name, separator and value.
func paired(all map[string]string, by string) string {
	var words []string
	for name, value := range all {
		words = append(words, name+by+value)
	}
	return list(words)
}

// netChecks compares the network settings. A container that joins a holder has the holder's
// networks, and another program may have connected the holder to more.
func netChecks(desired sandbox.ContainerConfig, f found) (p sandbox.Proof) {
	h, on, outside := f.container.HostConfig, f.container, desired.Reach.Resolve
	sysctls := "net.ipv4.ip_forward=0 net.ipv6.conf.all.disable_ipv6=1"
	if f.holder != nil {
		on, outside = *f.holder, false
		p = sandbox.Proof{
			sandbox.Same("network", "of "+desired.Reach.Join, holderOf(h.NetworkMode, f.holder)),
			sandbox.Same("holder", string(sandbox.Running), string(toState(on.State))),
			sandbox.Same("holder's project", desired.Labels[sandbox.LabelProject], on.Config.Labels[sandbox.LabelProject]),
			sandbox.Same("separate DNS settings", none,
				list(slices.Concat(h.DNS, h.DNSOptions, h.DNSSearch, h.ExtraHosts))),
		}
		if desired.Reach.Through != nil {
			p = append(p, sandbox.Same("holder's networks", networks(desired.Reach.Through), connected(on)))
		}
	} else {
		mode, all := network.NetworkNone, networks(desired.Reach.Endpoints)
		switch {
		case desired.Reach.Host:
			mode, all, sysctls = network.NetworkHost, network.NetworkHost, none
		case len(desired.Reach.Endpoints) > 0:
			mode = desired.Reach.Endpoints[0].Network
		}
		p = sandbox.Proof{
			sandbox.Same("network", mode, string(h.NetworkMode)),
			sandbox.Same("networks", all, connected(on)),
		}
	}
	p = append(p, resolver(outside, desired.Reach.Self, on.HostConfig),
		sandbox.Same("kernel settings", sysctls, paired(on.HostConfig.Sysctls, "=")))
	return append(p, apart(desired, f)...)
}

// holderOf returns "of NAME" for a mode that joins the holder, of which the engine stores the id.
// It returns any other mode unchanged.
func holderOf[M ~string](mode M, holder *container.InspectResponse) string {
	id, joins := strings.CutPrefix(string(mode), "container:")
	if holder != nil && joins && (id == holder.ID || "/"+id == holder.Name) {
		return "of " + strings.TrimPrefix(holder.Name, "/")
	}
	return string(mode)
}

// networks lists networks with the aliases of the container.
func networks(ends []sandbox.Endpoint) string {
	var all []string
	for _, end := range ends {
		all = append(all, known(end.Network, end.Aliases))
	}
	return list(all)
}

// shortID is the length of the short container id, which older engines add as an alias.
const shortID = 12

func known(name string, aliases []string) string {
	if len(aliases) == 0 {
		return name
	}
	aliases = slices.Clone(aliases)
	slices.Sort(aliases)
	return name + "(" + strings.Join(aliases, ",") + ")"
}

// connected lists the networks of a container except "none". It omits the aliases that older
// engines add: the short id and the host name.
func connected(inspected container.InspectResponse) string {
	var all []string
	for name, end := range inspected.NetworkSettings.Networks {
		if name == network.NetworkNone {
			continue
		}
		all = append(all, known(name, slices.DeleteFunc(slices.Clone(end.Aliases), func(alias string) bool {
			return len(alias) == shortID && strings.HasPrefix(inspected.ID, alias) || alias == inspected.Config.Hostname
		})))
	}
	return list(all)
}

func resolver(outside bool, self []string, h *container.HostConfig) sandbox.Check {
	want := "127.0.0.1, search ., options attempts:5 timeout:1"
	if outside {
		want = "none, search none, options none"
	}
	var hosts []string
	for _, name := range self {
		hosts = append(hosts, name+":127.0.0.1")
	}
	want += ", hosts " + list(hosts)
	got := fmt.Sprintf("%s, search %s, options %s, hosts %s",
		list(h.DNS), list(h.DNSSearch), list(h.DNSOptions), list(h.ExtraHosts))
	return sandbox.Same("resolver", want, got)
}

// apart checks that each network is isolated, except for networks that the user named. Only a
// container that resolves outside names may have one network with egress.
func apart(desired sandbox.ContainerConfig, f found) (p sandbox.Proof) {
	foreign := map[string]bool{}
	for _, end := range slices.Concat(desired.Reach.Endpoints, desired.Reach.Through) {
		foreign[end.Network] = end.Foreign
	}
	for _, name := range slices.Sorted(maps.Keys(f.nets)) {
		if foreign[name] {
			continue
		}
		n := f.nets[name]
		want := fmt.Sprintf("%s's, bridge, no IPv6, isolated", desired.Labels[sandbox.LabelProject])
		six := map[bool]string{false: "no IPv6", true: "IPv6"}[n.EnableIPv6]
		got := fmt.Sprintf("%s's, %s, %s, %s", n.Labels[sandbox.LabelProject], n.Driver, six, isolation(n))
		check := sandbox.Same("network "+name, want, got)
		if desired.Reach.Resolve && !check.OK {
			check = sandbox.Same("network "+name, strings.Replace(want, "isolated", "egress", 1), got)
		}
		p = append(p, check)
	}
	return p
}

// isolation describes the isolation of a network from the host and the outside.
func isolation(n network.Inspect) string {
	switch {
	case !n.Internal && n.Options[inhibitIPv4] != "true":
		return "egress"
	case !n.Internal:
		return "egress through foreign routes"
	case n.Options[inhibitIPv4] == "true" || n.Options[gatewayMode] == "isolated":
		return "isolated"
	}
	return "internal, but the host is reachable"
}
