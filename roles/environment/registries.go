package environment

import (
	"slices"

	"abl/internal/config"
)

// registries are the hosts of the words in network.allow. A mirror is named by its own host.
var registries = map[string][]string{
	"crates": {"index.crates.io:443", "static.crates.io:443"},
	"go":     {"proxy.golang.org:443", "sum.golang.org:443"},
	"maven":  {"repo.maven.apache.org:443"},
	"npm":    {"registry.npmjs.org:443"},
	"pypi":   {"files.pythonhosted.org:443", "pypi.org:443"},
}

// allowedHosts turns network.allow, which config has checked, into hosts, sorted.
func allowedHosts(allow []string) (hosts []string) {
	for _, entry := range allow {
		if known, is := registries[entry]; is {
			hosts = append(hosts, known...)
		} else {
			hosts = append(hosts, config.AllowedHost(entry))
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
