package docker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"

	"abl/internal/sandbox"
)

// Info asks the engine what it is, once: it does not change its nature under a client.
func (e *conn) Info(ctx context.Context) (sandbox.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return *e.info, nil
	}
	raw, err := get(ctx, e, func(ctx context.Context, _ struct{}) (system.Info, error) { return e.api.Info(ctx) }, struct{}{})
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("cannot ask the engine what it is: %w", err)
	}
	info := describe(raw, e.api.ClientVersion(), e.host, thisMachine())
	e.info = &info
	return info, nil
}

// machine is how a host names itself.
type machine struct{ os, name, kernel string }

// thisMachine leaves empty what cannot be read, which equals no engine's answer.
func thisMachine() machine {
	name, _ := os.Hostname()
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return machine{os: runtime.GOOS, name: name, kernel: strings.TrimSpace(string(kernel))}
}

func describe(raw system.Info, api, host string, here machine) sandbox.Info {
	return sandbox.Info{
		Version: raw.ServerVersion, API: api, OS: raw.OSType, Arch: raw.Architecture, ID: raw.ID,
		Rootless: hasSecurity(raw, "rootless"), UserNS: hasSecurity(raw, "userns"),
		Podman: slices.Contains(raw.Plugins.Log, "k8s-file"), // which is its own way to keep logs
		Local:  isLocal(raw, host, here), Host: host, DataDir: raw.DockerRootDir,
		CPUs: raw.NCPU, NoSwapLimit: !raw.SwapLimit,
	}
}

// hasSecurity reads the engine's list, whose entries look like "name=seccomp,profile=default".
func hasSecurity(raw system.Info, name string) bool {
	return slices.ContainsFunc(raw.SecurityOptions, func(option string) bool {
		return slices.Contains(strings.Split(option, ","), "name="+name)
	})
}

// isLocal tells an engine whose files are this machine's from one behind a
// socket that leads elsewhere: a virtual machine has another kernel, and a
// container that was handed the socket has another host name.
func isLocal(raw system.Info, host string, here machine) bool {
	return here.os == "linux" && raw.OSType == "linux" && strings.HasPrefix(host, "unix://") &&
		here.name != "" && raw.Name == here.name && here.kernel != "" && raw.KernelVersion == here.kernel &&
		!strings.Contains(raw.OperatingSystem, "Docker Desktop")
}

func older(api, than string) bool { return versions.LessThan(api, than) }
