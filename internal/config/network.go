package config

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"abl/internal/nearest"
)

// Registries are the words in network.allow that stand for a package registry:
// its host is the one that the image's own tool names.
var Registries = []string{"go", "npm", "pypi"}

// httpsPort is what a host in network.allow is reached at unless it says more.
const httpsPort = "443"

// checkAllow wants words for registries and exact names of hosts.
func checkAllow(l *Loaded) error {
	for i, entry := range l.Network.Allow {
		if slices.Contains(Registries, entry) {
			continue
		}
		key := "network.allow[" + strconv.Itoa(i) + "]"
		if near := nearest.Word(entry, Registries); near != "" {
			return l.mistake(key, "", "there is no registry %q; did you mean %q?", entry, near)
		}
		if want := notAllowable(entry); want != "" {
			return l.mistake(key, "", "want %s, got %q", want, entry)
		}
	}
	return nil
}

// BuildsHost is the word of network.builds with which a Dockerfile of the project's is
// built on this machine's own network.
const BuildsHost = "host"

// Allowable says whether network.allow may list a host.
func Allowable(entry string) bool { return notAllowable(entry) == "" }

// notAllowable says what is wanted instead of an entry that is no host, or "".
func notAllowable(entry string) string {
	words := strings.Join(Registries, ", ")
	host, port, with := strings.Cut(entry, ":")
	if n, err := strconv.Atoi(port); with && (err != nil || !isPort(n) || port != strconv.Itoa(n)) || len(host) > 253 || !hostName.MatchString(host) {
		return words + " or a host such as registry.example or registry.example:8443"
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case strings.Trim(last, "0123456789") == "":
		return "the name of a host, no address"
	case last == host || last == "localhost":
		return words + " or a host with its domain, such as registry.example"
	}
	return ""
}

// checkCACert keeps those from naming authorities who would gain by it.
func checkCACert(l *Loaded) error {
	file := l.Network.CACert
	if file == "" || path.IsAbs(file) {
		return nil
	}
	if !inside(file) {
		return l.mistake("network.ca_cert", "", "want a path inside the project or an absolute one, got %q", file)
	}
	if dir := writable(l, file); dir != "" {
		return l.mistake("network.ca_cert", "put it elsewhere, .abl/ca.pem say", "%q is in %s, which a role may write", file, dir)
	}
	return nil
}

// AllowedHost gives an entry of network.allow that names a host as host:port.
func AllowedHost(entry string) string {
	if strings.Contains(entry, ":") {
		return entry
	}
	return entry + ":" + httpsPort
}
