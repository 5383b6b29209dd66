package environment

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"abl/internal/config"
)

// tool is how a package manager is asked for its registry, and how its answer is
// read. The image is the person's, but what it says is taken for anybody's words.
type tool struct {
	name   string
	script string // prints the answer; exits with 127 when the tool is missing
	env    []string
	parse  func(words string) []registry
	none   string // what it is when there is none
}

// registry is an address by which a tool goes out, and what it is to it.
type registry struct{ what, address string }

// fixed are the hosts of the words in network.allow whose tools do not say where they go.
var fixed = map[string][]string{
	"crates": {"index.crates.io:443", "static.crates.io:443"},
	"maven":  {"repo.maven.apache.org:443"},
}

// tools by their word in network.allow.
var tools = map[string]tool{
	"npm": {
		name:   "npm",
		script: `command -v npm >/dev/null 2>&1 || exit 127; exec npm config get registry 2>/dev/null`,
		env:    []string{"npm_config_update_notifier=false"},
		parse:  func(words string) []registry { return []registry{{"npm's registry", strings.TrimSpace(words)}} },
	},
	"pypi": {
		name: "pip",
		// The help says which index is the default, with all settings in effect.
		script: `pip=
for p in pip3 pip 'python3 -m pip'; do $p --version >/dev/null 2>&1 && pip=$p && break; done
[ -n "$pip" ] || exit 127
$pip install --help 2>/dev/null && $pip config list 2>/dev/null`,
		env:   []string{"COLUMNS=9999", "PIP_DISABLE_PIP_VERSION_CHECK=1"},
		parse: pip,
		none:  "pip does not say which index it uses: name the host itself",
	},
	"go": {
		name:   "go",
		script: `command -v go >/dev/null 2>&1 || exit 127; exec go env GOPROXY GOSUMDB 2>/dev/null`,
		env:    []string{"GOTOOLCHAIN=local"},
		parse:  golang,
		none:   "GOPROXY names no proxy, so that modules come from hosts of their own: name these hosts themselves",
	},
}

// hosts are those of the registries that a tool names, as "host:port". Errors show no
// more of an address than its host.
func (t tool) hosts(words string) (all []string, err error) {
	for _, r := range t.parse(words) {
		host, err := hostOf(r.address)
		if err != nil {
			return nil, fmt.Errorf("%s %w", r.what, err)
		}
		all = append(all, host)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New(t.none)
	case len(all) > mostHosts:
		return nil, fmt.Errorf("it names %d hosts: name those that you want", len(all))
	}
	return all, nil
}

// pip reads "--index-url … (default ADDRESS)" and the lines of `pip config list`.
// An index may have the packages themselves on another host, which pip does not
// know before it asks: that one is refused, and listed with the line to add.
func pip(words string) (all []registry) {
	for line := range strings.Lines(words) {
		var found []string
		if _, after, ok := strings.Cut(line, "--index-url <url>"); ok {
			_, after, _ = strings.Cut(after, "(default ")
			address, _, _ := strings.Cut(after, ")")
			found = []string{address}
		} else if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasSuffix(key, ".extra-index-url") {
			found = strings.Fields(strings.ReplaceAll(strings.Trim(value, `'"`), `\n`, " "))
		}
		for _, address := range found {
			all = append(all, registry{"pip's index", address})
		}
	}
	return all
}

// golang reads GOPROXY and GOSUMDB, a line each. GOSUMDB is "off", a name, or a name
// with its key and perhaps an address.
func golang(words string) (all []registry) {
	proxies, rest, _ := strings.Cut(words, "\n")
	for _, entry := range strings.FieldsFunc(proxies, func(r rune) bool { return strings.ContainsRune(",| \t\r", r) }) {
		if entry != "off" && entry != "direct" && !strings.HasPrefix(entry, "file://") {
			all = append(all, registry{"Go's module proxy", entry})
		}
	}
	line, _, _ := strings.Cut(rest, "\n")
	sums := strings.Fields(line)
	if len(all) == 0 || len(sums) == 0 || sums[0] == "off" {
		return all
	}
	name, _, _ := strings.Cut(sums[0], "+")
	return append(all, registry{"Go's checksum database", append(sums[1:], "https://"+name)[0]})
}

// hostOf gives an https address as "host:port". Errors go on from the name of what
// the address is.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsAny(address, " \t\r\n") || u.Host == "" {
		return "", errors.New("is no address that could be read: name the host itself")
	}
	if bare, err := netip.ParseAddr(u.Hostname()); err == nil {
		return "", fmt.Errorf("is the bare address %s: the gateway goes to public hosts by their name", bare)
	}
	host := config.AllowedHost(strings.ToLower(u.Host))
	if !config.Allowable(host) {
		return "", errors.New("has a host or a port that could not be read: name the host itself")
	}
	if u.Scheme != "https" {
		return "", fmt.Errorf("at %s is not https, and nothing else passes the gateway", strings.ToLower(u.Hostname()))
	}
	return host, nil
}
