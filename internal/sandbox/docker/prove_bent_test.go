package docker

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"

	"abl/internal/sandbox"
)

// Prove rejects a container that a real engine created with a weakened profile.
func TestProveRefusesAWeakerProfile(t *testing.T) {
	l := newLab(t)
	desired := l.provable()["joined"]
	info, err := l.Info(t.Context())
	l.must(err)
	for name, c := range map[string]struct {
		check string
		bend  func(*container.Config, *container.HostConfig)
	}{
		"privileged":         {"privileged", func(_ *container.Config, h *container.HostConfig) { h.Privileged = true }},
		"capabilities-added": {"capabilities", func(_ *container.Config, h *container.HostConfig) { h.CapAdd = []string{"SYS_ADMIN"} }},
		"capabilities-kept":  {"capabilities", func(_ *container.Config, h *container.HostConfig) { h.CapDrop = nil }},
		"no-filter-of-calls": {"security options", func(_ *container.Config, h *container.HostConfig) {
			h.SecurityOpt = append(h.SecurityOpt, "seccomp=unconfined")
		}},
		"new-privileges":        {"security options", func(_ *container.Config, h *container.HostConfig) { h.SecurityOpt = h.SecurityOpt[1:] }},
		"a-writable-root":       {"root file system", func(_ *container.Config, h *container.HostConfig) { h.ReadonlyRootfs = false }},
		"the-hosts-processes":   {"namespaces", func(_ *container.Config, h *container.HostConfig) { h.PidMode = "host" }},
		"the-hosts-memory":      {"namespaces", func(_ *container.Config, h *container.HostConfig) { h.IpcMode = "host" }},
		"the-hosts-network":     {"network", func(_ *container.Config, h *container.HostConfig) { h.NetworkMode = "host" }},
		"root":                  {"user", func(c *container.Config, _ *container.HostConfig) { c.User = "0:0" }},
		"root-by-default":       {"user", func(c *container.Config, _ *container.HostConfig) { c.User = "" }},
		"memory-without-end":    {"memory", func(_ *container.Config, h *container.HostConfig) { h.Memory, h.MemorySwap = 0, 0 }},
		"processes-without-end": {"processes", func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = nil }},
		"the-engines-socket": {"mount /run/docker.sock", func(_ *container.Config, h *container.HostConfig) {
			h.Binds = []string{"/var/run/docker.sock:/run/docker.sock"}
		}},
		"a-device": {"devices", func(_ *container.Config, h *container.HostConfig) {
			h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/full", PathInContainer: "/dev/x", CgroupPermissions: "r"}}
		}},
		"a-published-port": {"published ports", func(_ *container.Config, h *container.HostConfig) { h.NetworkMode, h.PublishAllPorts = "none", true }},
		"a-key":            {"environment", func(c *container.Config, _ *container.HostConfig) { c.Env = append(c.Env, "KEY=swordfish") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := l.in(t)
			config, host, net := profile(desired, info)
			c.bend(&config, &host)
			l.must(l.Remove(t.Context(), desired.Name))
			_, err := l.api.ContainerCreate(t.Context(), &config, &host, &net, nil, desired.Name)
			l.must(err)
			proof, err := l.Prove(t.Context(), desired)
			l.must(err)
			if found, ok := proof.Get(c.check); !ok || found.OK || !errors.Is(proof.Err(), sandbox.ErrUnproven) {
				t.Errorf("got %+v, %v, want the check %q to fail", found, proof.Err(), c.check)
			}
		})
	}
}
