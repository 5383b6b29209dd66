package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

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
