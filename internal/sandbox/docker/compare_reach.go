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

	"abl/internal/sandbox"
)

// mountChecks compares each mount, and finds those that nobody intended.
func mountChecks(box sandbox.Box, f found) (p sandbox.Proof) {
	got := map[string]string{}
	for _, m := range f.box.Mounts {
		got[m.Destination] = strings.TrimPrefix(got[m.Destination]+", "+describeMount(m, f), ", ")
	}
	for _, m := range box.Mounts {
		p = append(p, sandbox.Same("mount "+m.Target, wantMount(m), cmp.Or(got[m.Target], none)))
		delete(got, m.Target)
	}
	for _, target := range slices.Sorted(maps.Keys(got)) {
		if _, asked := value(f.image.Config).Volumes[target]; !(asked && box.Loose && anonymous.MatchString(got[target])) {
			p = append(p, sandbox.Same("mount "+target, none, got[target]))
		}
	}
	h := f.box.HostConfig
	return append(p,
		sandbox.Same("mounts of the old form", none, list(h.Binds)),
		sandbox.Same("memory mounts", paired(tmpfs(box), ":"), paired(h.Tmpfs, ":")))
}

// anonymous is a volume that the engine makes for a service whose image asks
// for one; it goes with its box.
var anonymous = regexp.MustCompile(`^volume [0-9a-f]{64} `)

// wantMount words a mount as describeMount words the engine's record of it.
func wantMount(m sandbox.Mount) string {
	readOnly := m.ReadOnly
	switch m.What {
	case sandbox.Scratch, sandbox.Tree, sandbox.Door:
		return fmt.Sprintf("volume %s %s", m.Source, writable(!readOnly))
	case sandbox.GitDir, sandbox.Specs, sandbox.CallIn, sandbox.Empty:
		readOnly = true
	}
	more := ""
	if readOnly {
		more = ", nothing mounted below it"
	}
	return fmt.Sprintf("bind %s %s, rprivate%s", m.Source, writable(!readOnly), more)
}

// shared is where Docker Desktop's virtual machine has this machine's files, and how
// some of its versions begin their paths.
const shared = "/host_mnt"

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
	for _, asked := range f.box.HostConfig.Mounts {
		if asked.Target == m.Destination && asked.BindOptions != nil && asked.BindOptions.NonRecursive {
			text += ", nothing mounted below it"
		}
	}
	return text
}

// paired words settings by their names.
func paired(all map[string]string, by string) string {
	var words []string
	for name, value := range all {
		words = append(words, name+by+value)
	}
	return list(words)
}

// netChecks compares where a box can connect to. A joined box has its holder's
// reach, so that is looked at each time: somebody may have connected it to more.
func netChecks(box sandbox.Box, f found) (p sandbox.Proof) {
	h, on, outside := f.box.HostConfig, f.box, box.Reach.Resolve
	if f.holder != nil {
		on, outside = *f.holder, false
		p = sandbox.Proof{
			sandbox.Same("network", "of "+box.Reach.Join, holderOf(h.NetworkMode, f.holder)),
			sandbox.Same("holder", string(sandbox.Running), string(toState(on.State))),
			sandbox.Same("holder's project", box.Labels[sandbox.LabelProject], on.Config.Labels[sandbox.LabelProject]),
			sandbox.Same("name servers of its own", none, list(slices.Concat(h.DNS, h.DNSOptions, h.DNSSearch, h.ExtraHosts))),
		}
		if box.Reach.Through != nil {
			p = append(p, sandbox.Same("holder's networks", networks(box.Reach.Through), connected(on)))
		}
	} else {
		mode := network.NetworkNone
		if len(box.Reach.Endpoints) > 0 {
			mode = box.Reach.Endpoints[0].Network
		}
		p = sandbox.Proof{
			sandbox.Same("network", mode, string(h.NetworkMode)),
			sandbox.Same("networks", networks(box.Reach.Endpoints), connected(on)),
		}
	}
	p = append(p, resolver(outside, box.Reach.Self, on.HostConfig),
		sandbox.Same("kernel settings", "net.ipv4.ip_forward=0 net.ipv6.conf.all.disable_ipv6=1", paired(on.HostConfig.Sysctls, "=")))
	return append(p, apart(box, f)...)
}

// holderOf words a mode of joining by the holder's name, although the engine keeps its
// id; any other mode is said as it is.
func holderOf[M ~string](mode M, holder *container.InspectResponse) string {
	id, joins := strings.CutPrefix(string(mode), "container:")
	if holder != nil && joins && (id == holder.ID || "/"+id == holder.Name) {
		return "of " + strings.TrimPrefix(holder.Name, "/")
	}
	return string(mode)
}

// networks words networks with the names by which a box is known there.
func networks(ends []sandbox.Endpoint) string {
	var all []string
	for _, end := range ends {
		all = append(all, known(end.Network, end.Aliases))
	}
	return list(all)
}

// shortID is how long the form of an id is that older engines make a name of.
const shortID = 12

func known(name string, aliases []string) string {
	if len(aliases) == 0 {
		return name
	}
	aliases = slices.Clone(aliases)
	slices.Sort(aliases)
	return name + "(" + strings.Join(aliases, ",") + ")"
}

// connected are the networks that a box is on, without the one that is none and
// without the names that older engines add: its id and its host name.
func connected(box container.InspectResponse) string {
	var all []string
	for name, end := range box.NetworkSettings.Networks {
		if name == network.NetworkNone {
			continue
		}
		all = append(all, known(name, slices.DeleteFunc(slices.Clone(end.Aliases), func(alias string) bool {
			return len(alias) == shortID && strings.HasPrefix(box.ID, alias) || alias == box.Config.Hostname
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
	got := fmt.Sprintf("%s, search %s, options %s, hosts %s", list(h.DNS), list(h.DNSSearch), list(h.DNSOptions), list(h.ExtraHosts))
	return sandbox.Same("resolver", want, got)
}

// apart checks that each network is isolated. Only a box that may resolve
// outside names is meant to have a way out, and only that or one that the person
// named may be otherwise.
func apart(box sandbox.Box, f found) (p sandbox.Proof) {
	foreign := map[string]bool{}
	for _, end := range slices.Concat(box.Reach.Endpoints, box.Reach.Through) {
		foreign[end.Network] = end.Foreign
	}
	for _, name := range slices.Sorted(maps.Keys(f.nets)) {
		if foreign[name] {
			continue
		}
		n := f.nets[name]
		want := fmt.Sprintf("%s's, bridge, no IPv6, isolated", box.Labels[sandbox.LabelProject])
		got := fmt.Sprintf("%s's, %s, %s, %s", n.Labels[sandbox.LabelProject], n.Driver, map[bool]string{false: "no IPv6", true: "IPv6"}[n.EnableIPv6], isolation(n))
		check := sandbox.Same("network "+name, want, got)
		if box.Reach.Resolve && !check.OK {
			check = sandbox.Same("network "+name, strings.Replace(want, "isolated", "a way out", 1), got)
		}
		p = append(p, check)
	}
	return p
}

// isolation words how far a network keeps its boxes from the host and the world.
func isolation(n network.Inspect) string {
	switch {
	case !n.Internal && n.Options[inhibitIPv4] != "true":
		return "a way out"
	case !n.Internal:
		return "a way out by routes of others"
	case n.Options[inhibitIPv4] == "true" || n.Options[gatewayMode] == "isolated":
		return "isolated"
	}
	return "internal, the host in reach"
}
