package environment

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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

// npm reads one address.
func npm(words string) (toolHosts, error) {
	host, err := hostOf(strings.TrimSpace(words))
	if err != nil {
		return toolHosts{}, fmt.Errorf("npm's registry %w", err)
	}
	return toolHosts{Hosts: []string{host}}, nil
}

// pip reads "--index-url … (default ADDRESS)" and the lines of `pip config list`.
// An index may have the packages themselves on another host, which pip does not
// know before it asks: that one is refused, and listed with the line to add.
func pip(words string) (toolHosts, error) {
	var e toolHosts
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
			host, err := hostOf(address)
			if err != nil {
				return toolHosts{}, fmt.Errorf("pip's index %w", err)
			}
			e.Hosts = append(e.Hosts, host)
		}
	}
	if len(e.Hosts) == 0 {
		return toolHosts{}, errors.New("pip does not say which index it uses: name the host itself")
	}
	return e, nil
}

// golang reads GOPROXY and GOSUMDB, a line each.
func golang(words string) (toolHosts, error) {
	proxies, rest, _ := strings.Cut(words, "\n")
	sums, _, _ := strings.Cut(rest, "\n")
	var e toolHosts
	direct := false
	for _, entry := range strings.FieldsFunc(strings.TrimSpace(proxies), func(r rune) bool { return r == ',' || r == '|' }) {
		if entry = strings.TrimSpace(entry); entry == "off" || strings.HasPrefix(entry, "file://") {
			continue
		}
		if entry == "direct" {
			direct = true
			continue
		}
		host, err := hostOf(entry)
		if err != nil {
			return toolHosts{}, fmt.Errorf("Go's module proxy %w", err)
		}
		e.Hosts = append(e.Hosts, host)
	}
	if len(e.Hosts) == 0 {
		return toolHosts{}, errors.New("GOPROXY names no proxy, so that modules come from hosts of their own: name these hosts themselves")
	}
	if direct {
		e.Notes = append(e.Notes, "GOPROXY ends in direct: a module that the proxy lacks comes from a host of its own, which has to be in network.allow, too")
	}
	host, err := sumHost(sums)
	if err != nil {
		return toolHosts{}, err
	}
	if host != "" {
		e.Hosts = append(e.Hosts, host)
	}
	return e, nil
}

// sumHost reads GOSUMDB: "off", a name, or a name with its key and perhaps an address.
func sumHost(line string) (string, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] == "off" {
		return "", nil
	}
	name, _, _ := strings.Cut(fields[0], "+")
	address := "https://" + name
	if len(fields) > 1 {
		address = fields[1]
	}
	host, err := hostOf(address)
	if err != nil {
		return "", fmt.Errorf("Go's checksum database %w", err)
	}
	return host, nil
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9_-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`)

const longestName = 253

// hostOf gives an https address as "host:port". Errors go on from the name of what
// the address is, and show no more of it than its host.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsAny(address, " \t\r\n") || u.Host == "" || strings.HasSuffix(u.Host, ":") {
		return "", errors.New("is no address that could be read: name the host itself")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return "", fmt.Errorf("is the bare address %s: the gateway goes to public hosts by their name", host)
	}
	if len(host) > longestName || !hostName.MatchString(host) {
		return "", errors.New("has a host that could not be read: name the host itself")
	}
	if u.Scheme != "https" {
		return "", fmt.Errorf("at %s is not https, and nothing else passes the gateway", host)
	}
	port := u.Port()
	if port == "" {
		return host + ":443", nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("has a port that could not be read: name the host itself")
	}
	return host + ":" + strings.TrimLeft(port, "0"), nil
}
