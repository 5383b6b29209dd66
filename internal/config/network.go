package config

import (
	"slices"
	"strconv"
	"strings"

	"abl/internal/wording"
)

// Registries are the words in network.allow that stand for a package registry:
// its host is the one that the image's own tool names.
var Registries = []string{"go", "npm", "pypi"}

// httpsPort is what a host in network.allow is reached at unless it says more.
const httpsPort = "443"

// checkAllow wants words for registries and exact names of hosts.
func checkAllow(l *Loaded) error {
	for i, entry := range l.Network.Allow {
		key := "network.allow[" + strconv.Itoa(i) + "]"
		if near := wording.Near(entry, Registries); near != "" && near != entry {
			return l.mistake(key, "", "there is no registry %q; did you mean %q?", entry, near)
		}
		if !slices.Contains(Registries, entry) && !Allowable(entry) {
			return l.mistake(key, "", "want %s, or the name of a host with its domain, such as registry.example or registry.example:8443, got %q", strings.Join(Registries, ", "), entry)
		}
	}
	return nil
}

// BuildsHost is the word of network.builds with which a Dockerfile of the project's is
// built on this machine's own network.
const BuildsHost = "host"

// hostName is that of a host with its domain, which no address is.
var hostName = like(`([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]*[a-z]([a-z0-9-]*[a-z0-9])?`)

// Allowable says whether network.allow may list a host, with a port or without.
func Allowable(entry string) bool {
	host, port, with := strings.Cut(entry, ":")
	return len(host) <= 253 && hostName(host) && !strings.HasSuffix(host, ".localhost") &&
		(!with || like(`[1-9][0-9]*`)(port) && number(1, maxPort)(port))
}

// AllowedHost gives an entry of network.allow that names a host as host:port.
func AllowedHost(entry string) string {
	if strings.Contains(entry, ":") {
		return entry
	}
	return entry + ":" + httpsPort
}
