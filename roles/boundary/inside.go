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

// Names of the outside that no box may resolve: one that everybody can, and
// those by which containers know their host.
var outsiders = []string{"example.com", "host.docker.internal", "gateway.docker.internal"}

// silenceMS is the least time for which a probe listens to silence. An answer of
// this machine takes the kernel far less than one, and a busy machine shows in
// the time that a peer takes, which counts many times over.
const silenceMS = 5

// holderDNS is the resolver in a box's own network namespace: whatever else
// there is, it answers.
const holderDNS = "127.0.0.1:53"

// discard is the port of nobody, for what has to be refused before it is sent.
const discard = "9"

// Inside is what a probe has to find in a box: the box's own intent in the words
// of the program that looks around in it. env is the environment by the engine's
// record of the box; files are all that the call finds in helper.In; absent are
// paths where nothing may be.
func Inside(box sandbox.Box, env map[string]string, files, absent []string) helper.ProbeSpec {
	spec := helper.ProbeSpec{
		User: box.User, Env: digests(env), Folders: map[string][]string{helper.In: files}, Sealed: []string{"/", helper.Bin},
	}
	for _, folder := range []string{path.Dir(helper.Src), path.Dir(helper.Out)} {
		if names := below(folder, box.Mounts); len(names) > 0 {
			spec.Folders[folder] = names
			spec.Sealed = append(spec.Sealed, folder)
		}
	}
	for _, m := range box.Mounts {
		spec.Mounts = append(spec.Mounts, helper.ProbeMount{Target: m.Target, ReadOnly: m.ReadOnly})
		if m.ReadOnly {
			spec.Sealed = append(spec.Sealed, m.Target)
		}
	}
	for _, t := range box.Tmpfs {
		spec.Mounts = append(spec.Mounts, helper.ProbeMount{Target: t.Target, Memory: true, Exec: t.Exec})
	}
	for _, p := range absent {
		if !covered(p, box) {
			spec.Absent = append(spec.Absent, p)
		}
	}
	return spec
}

// digests stand for the values; the engine adds a few variables of its own.
func digests(env map[string]string) map[string]string {
	all := map[string]string{"PATH": "", "HOSTNAME": "", "HOME": "", "TERM": ""}
	for name, value := range env {
		all[name] = helper.Digest(value)
	}
	return all
}

// below are the names of what is mounted in a folder.
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

// covered says that a path lies in what the box may write: there its own program
// may have put anything.
func covered(p string, box sandbox.Box) bool {
	in := func(target string) bool { return p == target || strings.HasPrefix(p, target+"/") }
	return slices.ContainsFunc(box.Mounts, func(m sandbox.Mount) bool { return in(m.Target) }) ||
		slices.ContainsFunc(box.Tmpfs, func(t sandbox.Tmpfs) bool { return in(t.Target) })
}

// Identify adds which very directory or file each mount from this machine is.
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

// Net is what a probe has to find of the network. Without a server, because the
// engine is on another machine, this machine cannot be listened for.
func Net(b *HostServer, weak bool) *helper.ProbeNet {
	n := &helper.ProbeNet{Names: outsiders, Peers: []helper.ProbePeer{{At: holderDNS}}, WaitMS: silenceMS, Weak: weak, Shout: discard}
	if b != nil {
		n.Word, n.TCP, n.UDP, n.Port, n.Asks, n.Shout = b.Word, b.At(b.Port), b.At(b.Asks), b.Port, b.Asks, b.Asks
	}
	return n
}

// Missing names what a probe was asked for and did not answer: one that says
// nothing proves nothing.
func Missing(spec helper.ProbeSpec, found sandbox.Proof) (names []string) {
	for _, name := range spec.Checks() {
		if _, ok := found.Get(name); !ok {
			names = append(names, name)
		}
	}
	return names
}
