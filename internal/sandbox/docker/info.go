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

// Info asks the engine what it is, once: it does not change its nature under a client.
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
		return sandbox.Info{}, fmt.Errorf("cannot ask the engine what it is: %w", err)
	}
	info := describe(raw, e.api.ClientVersion(), e.host, thisMachine())
	info.BuildKit = e.buildKit
	e.info = &info
	return info, nil
}

// badInfo begins the client's error about a reply that it cannot decode, whose cause it drops.
const badInfo = "Error reading remote info"

// machine is how a host names itself.
type machine struct {
	os, name, kernel string
	contained        bool // it is a container, by the marks that engines leave there
}

// thisMachine leaves empty what cannot be told.
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
		Version: raw.ServerVersion, API: api, OS: raw.OSType, Arch: raw.Architecture, ID: raw.ID,
		Rootless: hasSecurity(raw, "rootless"), UserNS: hasSecurity(raw, "userns"),
		SELinux: hasSecurity(raw, "selinux"),
		Podman:  slices.Contains(raw.Plugins.Log, "k8s-file"), // which is its own way to keep logs
		Local:   isLocal(raw, host, here), Near: isNear(raw, host, here), Contained: here.contained,
		Host: host, DataDir: raw.DockerRootDir,
		CPUs: raw.NCPU, NoSwapLimit: !raw.SwapLimit, Apart: apart,
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

// isNear leaves out an engine on another machine, and that of the machine on which abl
// is in a container that was handed the socket.
func isNear(raw system.Info, host string, here machine) bool {
	inVM := !here.contained && raw.KernelVersion != here.kernel
	return strings.HasPrefix(host, "unix://") && here.name != "" && (raw.Name == here.name || inVM)
}
