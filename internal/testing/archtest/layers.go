package archtest

import "strings"

// layers lists which packages of this module each package may import. The first matching line
// counts. A name with /... matches the package and all packages below it.
var layers = []struct{ pkg, may string }{
	{"cmd/...", "..."},
	{"e2e/...", "..."},
	{"internal/testing/...", "..."}, // not in any program
	{"orchestrator/...", "orchestrator/... roles/... images internal/... prompts"},
	{"roles/...", "roles/... images internal/... prompts"},
	{"images", "internal/..."},
	{"internal/...", "internal/..."},
	{"prompts", ""},
	{".", ""},
}

// adapters wrap the external systems. Workflows and roles use them through their own interfaces,
// and commands and the environment connect them. The parser of ignore files has no side effects,
// so others may use it.
var adapters = []struct{ pkg, by string }{
	{"internal/git/ignore", "internal/git/... orchestrator/codecommit/..."},
	{"internal/sandbox/docker/...", "roles/environment"},
	{"internal/git/...", "internal/git/..."},
	{"internal/gateway/meter", "internal/gateway/... roles/..."}, // parses responses, without side effects
	{"internal/gateway/...", "internal/gateway/... roles/environment roles/model"},
	{"internal/broker", ""},
}

// importers lists the third-party modules with the one package that may import each: there it can
// be replaced, and its quirks are known there. "test" means tests and the packages that support
// them.
var importers = []struct{ module, by string }{
	{"github.com/docker/...", "internal/sandbox/docker/..."},
	{"github.com/containerd/...", "internal/sandbox/docker/..."},
	{"github.com/opencontainers/...", "internal/sandbox/docker/..."},
	{"github.com/distribution/reference", "internal/sandbox/docker/..."},
	{"google.golang.org/grpc/...", "internal/sandbox/docker/..."},
	{"google.golang.org/protobuf/...", "internal/sandbox/docker/..."},
	{"github.com/go-git/...", "internal/git/..."},
	{"github.com/gocarina/gocsv", "internal/ledger"},
	{"github.com/urfave/cli/...", "cmd/internal/cli"},
	{"github.com/joho/godotenv", "internal/config"},
	{"github.com/gofrs/flock", "internal/hostfs"},
	{"go.yaml.in/yaml/...", "internal/yamlfile"},
	{"github.com/compose-spec/compose-go/...", "internal/detect"},
	{"github.com/BurntSushi/toml", "internal/detect"},
	{"github.com/moby/buildkit/frontend/dockerfile/...", "internal/detect"},
	{"github.com/google/go-cmp/...", "test"},
	{"github.com/rogpeppe/go-internal/diff", "cmd/internal/view"},
	{"github.com/rogpeppe/go-internal/...", "test"},
	{"github.com/creack/pty", "test"},
	{"golang.org/x/net/http/httpproxy", "internal/gateway"},
	{"golang.org/x/net/...", "cmd/abl-cmd"},
	{"github.com/google/nftables/...", "cmd/abl-cmd"},
	{"github.com/mdlayher/netlink", "cmd/abl-cmd"},
	{"github.com/moby/patternmatcher/...", "images"},
	{"github.com/moby/sys/mountinfo", "cmd/abl-cmd/internal/probe"},
	{"golang.org/x/...", "..."},
}

// support lists the packages that only tests use.
const support = "e2e/... internal/testing/..."

// workflows lists the packages that import no third-party module.
const workflows = "orchestrator/... cmd/internal/scaffold"

// mayImport reports whether the file may import a package of this module. A test may import every
// package.
func (f file) mayImport(own string) bool {
	if f.test {
		return true
	}
	if fits(own, "internal/testing/...") && own != "internal/testing/failpoint" && own != "internal/testing/modelserver" { // not in any program
		return fits(f.dir, support)
	}
	for _, a := range adapters {
		if fits(own, a.pkg) {
			return fits(f.dir, a.pkg+" "+a.by+" cmd/... "+support)
		}
	}
	for _, l := range layers {
		if fits(f.dir, l.pkg) {
			return fits(own, l.may)
		}
	}
	return false
}

// mayUse reports whether the file may import a third-party module.
func (f file) mayUse(name string) bool {
	if !f.test && fits(f.dir, workflows) {
		return false
	}
	for _, h := range importers {
		if fits(name, h.module) {
			return fits(f.dir, h.by) || h.by == "test" && (f.test || fits(f.dir, support))
		}
	}
	return false
}

// fits reports whether a path matches one of the patterns in list.
func fits(name, list string) bool {
	for pattern := range strings.FieldsSeq(list) {
		below, many := strings.CutSuffix(pattern, "...")
		if name == pattern || many && (below == "" || strings.HasPrefix(name+"/", below)) {
			return true
		}
	}
	return false
}
