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
	"golang.org/x/sys/unix"

	"abl/internal/sandbox"
)

// Info returns the engine's description. It asks the engine once.
func (e *conn) Info(ctx context.Context) (sandbox.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return *e.info, nil
	}
	ask := func(ctx context.Context, _ struct{}) (system.Info, error) {
		info, err := e.api.Info(ctx)
		if err != nil && strings.Contains(err.Error(), badInfo) {
			err = fmt.Errorf("%w: %w", errDoubtful, err)
		}
		return info, err
	}
	raw, err := get(ctx, e, ask, struct{}{})
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("cannot get the engine's description: %w", err)
	}
	info := describe(raw, e.api.ClientVersion(), e.host, thisMachine())
	info.BuildKit = e.buildKit
	e.info = &info
	return info, nil
}

// badInfo begins the client's error for a response that it cannot decode. The client drops the
// cause.
const badInfo = "Error reading remote info"

// machine describes this host.
type machine struct {
	os, name, kernel string
	contained        bool // a container, according to files that engines create
}

// thisMachine describes this host as far as it is known.
func thisMachine() machine {
	m := machine{os: runtime.GOOS}
	m.name, _ = os.Hostname()
	var kernel unix.Utsname
	if !portable && unix.Uname(&kernel) == nil {
		m.kernel = unix.ByteSliceToString(kernel.Release[:])
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		_, err := os.Lstat(mark)
		m.contained = m.contained || err == nil
	}
	return m
}

func describe(raw system.Info, api, host string, here machine) sandbox.Info {
	apart := sandbox.IsolatedGateway
	if versions.LessThan(api, gatewayModes) {
		apart = sandbox.NoAddress
	}
	return sandbox.Info{
		Version:     raw.ServerVersion,
		API:         api,
		OS:          raw.OSType,
		Arch:        raw.Architecture,
		ID:          raw.ID,
		Rootless:    hasSecurity(raw, "rootless"),
		UserNS:      hasSecurity(raw, "userns"),
		SELinux:     hasSecurity(raw, "selinux"),
		Podman:      slices.Contains(raw.Plugins.Log, "k8s-file"), // only Podman has this log driver
		Local:       isLocal(raw, host, here),
		Near:        isNear(raw, host, here),
		Contained:   here.contained,
		Host:        host,
		DataDir:     raw.DockerRootDir,
		CPUs:        raw.NCPU,
		NoSwapLimit: !raw.SwapLimit,
		Apart:       apart,
	}
}

// hasSecurity searches the engine's list, whose entries look like "name=seccomp,profile=default".
func hasSecurity(raw system.Info, name string) bool {
	return slices.ContainsFunc(raw.SecurityOptions, func(option string) bool {
		return slices.Contains(strings.Split(option, ","), "name="+name)
	})
}

// isLocal reports whether the engine runs on this machine, so that it sees the same files. An
// engine in a virtual machine has another kernel, and for abl in a container with the socket the
// host name differs.
func isLocal(raw system.Info, host string, here machine) bool {
	return here.os == "linux" && raw.OSType == "linux" && strings.HasPrefix(host, "unix://") &&
		here.name != "" && raw.Name == here.name && here.kernel != "" && raw.KernelVersion == here.kernel &&
		!strings.Contains(raw.OperatingSystem, "Docker Desktop")
}

// isNear reports whether the engine runs on this machine or in a VM on it. It returns false for an
// engine on another machine, and if abl runs in a container with the socket.
func isNear(raw system.Info, host string, here machine) bool {
	inVM := !here.contained && raw.KernelVersion != here.kernel
	return strings.HasPrefix(host, "unix://") && here.name != "" && (raw.Name == here.name || inVM)
}
