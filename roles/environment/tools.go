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
	parse  func(words string) (toolHosts, error)
}

// tools by their word in network.allow.
var tools = map[string]tool{
	"npm": {
		name:   "npm",
		script: `command -v npm >/dev/null 2>&1 || exit 127; exec npm config get registry 2>/dev/null`,
		env:    []string{"npm_config_update_notifier=false"},
		parse:  npm,
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
	},
	"go": {
		name:   "go",
		script: `command -v go >/dev/null 2>&1 || exit 127; exec go env GOPROXY GOSUMDB 2>/dev/null`,
		env:    []string{"GOTOOLCHAIN=local"},
		parse:  golang,
	},
}

// add takes a host from an address; what is whose it is. Errors show no more of an
// address than its host.
func (e *toolHosts) add(what, address string) error {
	host, err := hostOf(address)
	if err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	e.Hosts = append(e.Hosts, host)
	return nil
}

// npm reads one address.
func npm(words string) (e toolHosts, err error) {
	return e, e.add("npm's registry", strings.TrimSpace(words))
}

// pip reads "--index-url … (default ADDRESS)" and the lines of `pip config list`.
// An index may have the packages themselves on another host, which pip does not
// know before it asks: that one is refused, and listed with the line to add.
func pip(words string) (e toolHosts, err error) {
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
			if err := e.add("pip's index", address); err != nil {
				return toolHosts{}, err
			}
		}
	}
	if len(e.Hosts) == 0 {
		return e, errors.New("pip does not say which index it uses: name the host itself")
	}
	return e, nil
}

// golang reads GOPROXY and GOSUMDB, a line each. GOSUMDB is "off", a name, or a name
// with its key and perhaps an address.
func golang(words string) (e toolHosts, err error) {
	proxies, rest, _ := strings.Cut(words, "\n")
	for _, entry := range strings.FieldsFunc(proxies, func(r rune) bool { return strings.ContainsRune(",| \t\r", r) }) {
		switch {
		case entry == "off", strings.HasPrefix(entry, "file://"):
		case entry == "direct":
			e.Notes = []string{"GOPROXY ends in direct: a module that the proxy lacks comes from a host of its own, which has to be in network.allow, too"}
		default:
			if err := e.add("Go's module proxy", entry); err != nil {
				return toolHosts{}, err
			}
		}
	}
	if len(e.Hosts) == 0 {
		return toolHosts{}, errors.New("GOPROXY names no proxy, so that modules come from hosts of their own: name these hosts themselves")
	}
	sums, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(sums)
	if len(fields) == 0 || fields[0] == "off" {
		return e, nil
	}
	name, _, _ := strings.Cut(fields[0], "+")
	address := "https://" + name
	if len(fields) > 1 {
		address = fields[1]
	}
	if err := e.add("Go's checksum database", address); err != nil {
		return toolHosts{}, err
	}
	return e, nil
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
