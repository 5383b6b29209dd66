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

	"abl/internal/sandbox"
)

// mountChecks compares each mount, and finds those that nobody intended.
func mountChecks(box sandbox.Box, f found) (p sandbox.Proof) {
	got := map[string]string{}
	for _, m := range f.box.Mounts {
		got[m.Destination] = strings.TrimPrefix(got[m.Destination]+", "+describeMount(m, f.box.HostConfig), ", ")
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
		sandbox.Same("memory mounts", tmpfsWant(box), tmpfsGot(h.Tmpfs)))
}

// anonymous is a volume that the engine makes for a service whose image asks
// for one; it goes with its box.
var anonymous = regexp.MustCompile(`^volume [0-9a-f]{64} `)

// wantMount words a mount as describeMount words the engine's record of it.
func wantMount(m sandbox.Mount) string {
	readOnly := m.ReadOnly
	switch m.What {
	case sandbox.Scratch, sandbox.Tree:
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

func describeMount(m container.MountPoint, h *container.HostConfig) string {
	if m.Type == mount.TypeVolume {
		text := fmt.Sprintf("volume %s %s", m.Name, writable(m.RW))
		if m.Driver != "local" {
			text += ", driver " + m.Driver
		}
		return text
	}
	text := fmt.Sprintf("%s %s %s, %s", m.Type, m.Source, writable(m.RW), m.Propagation)
	for _, asked := range h.Mounts {
		if asked.Target == m.Destination && asked.BindOptions != nil && asked.BindOptions.NonRecursive {
			text += ", nothing mounted below it"
		}
	}
	return text
}

func tmpfsWant(box sandbox.Box) string {
	var all []string
	for _, t := range box.Tmpfs {
		all = append(all, t.Target+":"+tmpfsOptions(t, box.User))
	}
	return list(all)
}

func tmpfsGot(mounts map[string]string) string {
	var all []string
	for target, options := range mounts {
		all = append(all, target+":"+options)
	}
	return list(all)
}
