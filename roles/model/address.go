package model

import (
	"fmt"
	"net"
	"net/url"
)

// address checks the address that a person gives instead of the provider's own.
// The key goes there, so it has to be encrypted or stay on this machine.
func address(raw, name string) (string, error) {
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s is no address such as https://host/path", name)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%s must be a plain address, without user, query or fragment", name)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("%s would send the key to %s unencrypted: use https", name, u.Hostname())
	}
	return u.String(), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
