package archtest

import "strings"

// layers say what the packages of this module may import of one another, the
// first line that fits a package counting: cmd, then orchestrator, then roles and
// images, then internal. A name ending in /... stands for the packages below it
// and itself.
var layers = []struct{ pkg, may string }{
	{"cmd/...", "..."},
	{"e2e/...", "..."},
	{"internal/testing/...", "..."}, // in no program
	{"orchestrator/...", "orchestrator/... roles/... images internal/... prompts"},
	{"roles/...", "roles/... images internal/... prompts"},
	{"images", "internal/..."},
	{"internal/...", "internal/..."},
	{"prompts", ""},
	{".", ""},
}

// adapters stand before what is not ours. Workflows and roles reach them through
// interfaces of their own; programs and the environment put them together, and
// what git ignores is a parser without effects.
var adapters = []struct{ pkg, by string }{
	{"internal/git/ignore", "internal/git/... orchestrator/codecommit/..."},
	{"internal/sandbox/docker/...", "roles/environment"},
	{"internal/git/...", "internal/git/..."},
	{"internal/gateway/meter", "internal/gateway/... roles/..."}, // reads answers, and has no effects
	{"internal/gateway/...", "internal/gateway/... roles/environment"},
	{"internal/broker", ""},
}

// homes are the modules of others, each with the one place that may import it:
// there it can be replaced, and there its quirks are known. "test" is any test
// and the packages that exist for tests.
var homes = []struct{ module, home string }{
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
	{"github.com/google/go-cmp/...", "test"},
	{"github.com/rogpeppe/go-internal/diff", "cmd/internal/view"},
	{"github.com/rogpeppe/go-internal/...", "test"},
	{"github.com/creack/pty", "test"},
	{"google.golang.org/genai/...", "roles/model"},
	{"github.com/openai/openai-go/...", "roles/model"},
	{"golang.org/x/net/http/httpproxy", "internal/gateway"},
	{"golang.org/x/net/...", "cmd/abl-cmd"},
	{"github.com/google/nftables/...", "cmd/abl-cmd"},
	{"github.com/mdlayher/netlink", "cmd/abl-cmd"},
	{"github.com/moby/patternmatcher/...", "images"},
	{"github.com/moby/sys/mountinfo", "cmd/abl-cmd/internal/probe"},
	{"golang.org/x/...", "..."},
}

// support is what is there for tests alone.
const support = "e2e/... internal/testing/..."

// workflows decide and delegate; they import no module of others at all.
const workflows = "orchestrator/... cmd/internal/scaffold"

// mayImport judges an import within the module. A test may put any packages
// together.
func (f file) mayImport(own string) bool {
	if f.test {
		return true
	}
	if fits(own, "internal/testing/...") && own != "internal/testing/failpoint" { // it is in no program
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

// mayUse judges the import of a module of others.
func (f file) mayUse(name string) bool {
	if !f.test && fits(f.dir, workflows) {
		return false
	}
	for _, h := range homes {
		if fits(name, h.module) {
			return fits(f.dir, h.home) || h.home == "test" && (f.test || fits(f.dir, support))
		}
	}
	return false
}

// fits says whether a path is one of the names in list.
func fits(name, list string) bool {
	for pattern := range strings.FieldsSeq(list) {
		below, many := strings.CutSuffix(pattern, "...")
		if name == pattern || many && (below == "" || strings.HasPrefix(name+"/", below)) {
			return true
		}
	}
	return false
}
