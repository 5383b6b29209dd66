package docker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// none is how a check words that there is nothing of a kind.
const none = "none"

// privileges checks what keeps the program from becoming more than it is.
func privileges(box sandbox.Box, f found) sandbox.Proof {
	h, add := f.box.HostConfig, none
	init, pid := fmt.Sprint(!strings.HasPrefix(strings.Join(box.Argv, " "), helper.Bin+"/")), "own"
	if box.Loose {
		init = "true"
		add = "CHOWN DAC_OVERRIDE FOWNER SETGID SETUID"
	}
	if box.Below {
		pid = "of " + box.Reach.Join
	}
	if box.Seals {
		add, init = "NET_ADMIN SETGID SETUID", "false"
	}
	return sandbox.Proof{
		sandbox.Same("privileged", "false", fmt.Sprint(h.Privileged)),
		sandbox.Same("capabilities", "without ALL, with "+add, "without "+caps(h.CapDrop)+", with "+caps(h.CapAdd)),
		sandbox.Same("security options", "no-new-privileges seccomp=abl's", securityOptions(f.box)),
		sandbox.Same("hidden system paths", hidden, hiddenPaths(h)),
		sandbox.Same("root file system", writable(box.Loose), writable(!h.ReadonlyRootfs)),
		sandbox.Same("namespaces", "ipc private, pid "+pid+", uts own, user the engine's, cgroup private", namespaces(h, f.holder)),
		sandbox.Same("further groups", none, list(h.GroupAdd)),
		sandbox.Same("devices", none, devices(h)),
		sandbox.Same("control group", none, list([]string{h.CgroupParent, string(h.Cgroup)})),
		sandbox.Same("init", init, fmt.Sprint(value(h.Init))),
	}
}

func caps(all []string) string {
	var names []string
	for _, c := range all {
		names = append(names, strings.TrimPrefix(strings.ToUpper(c), "CAP_")) // newer engines spell them in full
	}
	return list(names)
}

// list is sorted words without empty ones.
func list(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) == 0 {
		return none
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// securityOptions leaves out what only says more strictly what holds anyhow: the
// spelling of no-new-privileges. Whatever else is there is shown, unconfined above all.
func securityOptions(box container.InspectResponse) string {
	var all []string
	for _, o := range box.HostConfig.SecurityOpt {
		name, value, _ := strings.Cut(strings.Replace(o, "=", ":", 1), ":")
		if name == "no-new-privileges" && (value == "" || value == "true") {
			o = name
		}
		if name == "seccomp" && value == filter() {
			o = "seccomp=abl's"
		}
		all = append(all, o)
	}
	if box.AppArmorProfile == "unconfined" {
		all = append(all, "apparmor=unconfined")
	}
	return list(all)
}

// hidden are paths of the kernel's own file systems that an unhardened box has
// open: a few stand for the engine's whole list.
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

// leftOut checks that nothing is there which abl never asks for.
func leftOut(box sandbox.Box, f found) sandbox.Proof {
	h := f.box.HostConfig
	restart := string(h.RestartPolicy.Name)
	if h.AutoRemove {
		restart += ", removed at its end"
	}
	log, published := h.LogConfig.Config, none
	if box.Publish > 0 {
		published = fmt.Sprintf("%d/tcp at 127.0.0.1:%d", box.Publish, box.Publish)
	}
	return sandbox.Proof{
		sandbox.Same("published ports", published, ports(h)),
		sandbox.Same("links", none, list(h.Links)),
		sandbox.Same("volumes of others", none, list(append(slices.Clone(h.VolumesFrom), h.VolumeDriver))),
		sandbox.Same("restart", string(container.RestartPolicyDisabled), restart),
		sandbox.Same("log", "json-file, 2 of 10m", fmt.Sprintf("%s, %s of %s", h.LogConfig.Type, log["max-file"], log["max-size"])),
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
		all = append(all, "every exposed one")
	}
	return list(all)
}
