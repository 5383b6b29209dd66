package boundary

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// outsiders are names that no container may resolve: a public one, and those by which containers
// find their host.
var outsiders = []string{"example.com", "host.docker.internal", "gateway.docker.internal"}

// silenceMS is the minimum time that a probe waits for a response. The engine's machine responds in far
// less than a millisecond. On a busy machine the probe measures the response time of a peer and
// waits many times longer.
const silenceMS = 5

// holderDNS is the resolver in the container's own network namespace, which always responds.
const holderDNS = "127.0.0.1:53"

// discard is an unused port, for packets that must be refused before they are sent.
const discard = "9"

// Inside returns what the probe in a container must find, derived from the container's description.
// env is its environment by the engine's record, files are the names in helper.In, and absent are
// paths that must not exist.
func Inside(container sandbox.ContainerConfig, env map[string]string, files, absent []string) helper.ProbeSpec {
	spec := helper.ProbeSpec{
		User:    container.User,
		Env:     digests(env),
		Folders: map[string][]string{helper.In: files},
		Sealed:  []string{"/", helper.Bin},
	}
	for _, folder := range []string{path.Dir(helper.Src), path.Dir(helper.Out)} {
		if names := below(folder, container.Mounts); len(names) > 0 {
			spec.Folders[folder] = names
			spec.Sealed = append(spec.Sealed, folder)
		}
	}
	for _, m := range container.Mounts {
		spec.Mounts = append(spec.Mounts, helper.ProbeMount{Target: m.Target, ReadOnly: m.ReadOnly})
		if m.ReadOnly {
			spec.Sealed = append(spec.Sealed, m.Target)
		}
	}
	for _, t := range container.Tmpfs {
		spec.Mounts = append(spec.Mounts, helper.ProbeMount{Target: t.Target, Memory: true, Exec: t.Exec})
	}
	for _, p := range absent {
		if !covered(p, container) {
			spec.Absent = append(spec.Absent, p)
		}
	}
	return spec
}

// digests replaces the values with digests, and adds the variables that the engine sets.
func digests(env map[string]string) map[string]string {
	all := map[string]string{"PATH": "", "HOSTNAME": "", "HOME": "", "TERM": ""}
	for name, value := range env {
		all[name] = helper.Digest(value)
	}
	return all
}

// below returns the names of mounts in a folder.
func below(folder string, mounts []sandbox.Mount) (names []string) {
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(m.Target, folder+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// covered reports whether a path is in a place that the container can write to, where its own program
// may have created it.
func covered(p string, container sandbox.ContainerConfig) bool {
	in := func(target string) bool { return p == target || strings.HasPrefix(p, target+"/") }
	return slices.ContainsFunc(container.Mounts, func(m sandbox.Mount) bool { return in(m.Target) }) ||
		slices.ContainsFunc(container.Tmpfs, func(t sandbox.Tmpfs) bool { return in(t.Target) })
}

// Identify adds the device and inode of each mount's source on this machine.
func Identify(spec *helper.ProbeSpec, mounts []sandbox.Mount) error {
	for i, m := range mounts {
		if m.What.IsVolume() {
			continue
		}
		var st unix.Stat_t
		if err := unix.Lstat(m.Source, &st); err != nil {
			return fmt.Errorf("cannot look at %q: %w", m.Source, err)
		}
		spec.Mounts[i].Device, spec.Mounts[i].Inode = uint64(st.Dev), st.Ino
	}
	return nil
}

// Net returns what a probe must find of the network. b is nil if no listener could be started and the
// user allows that.
func Net(b *HostServer, weak bool) *helper.ProbeNet {
	n := &helper.ProbeNet{
		Names:  outsiders,
		Peers:  []helper.ProbePeer{{At: holderDNS}},
		WaitMS: silenceMS,
		Weak:   weak,
		Shout:  discard,
	}
	if b != nil {
		n.Word, n.TCP, n.UDP, n.Port, n.Asks, n.Shout = b.Word, b.At(b.TCP), b.At(b.UDP), b.TCP, b.UDP, b.UDP
	}
	return n
}

// Missing returns the names of the checks that a probe's report lacks.
func Missing(spec helper.ProbeSpec, found sandbox.Proof) (names []string) {
	for _, name := range spec.Checks() {
		if _, ok := found.Get(name); !ok {
			names = append(names, name)
		}
	}
	return names
}
