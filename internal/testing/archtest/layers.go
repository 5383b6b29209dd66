package archtest

import "strings"

// values are what every layer above may speak about: words, parsers and files
// of a project.
const values = "orchestrator/audit orchestrator/dirs orchestrator/event orchestrator/ledger orchestrator/project " +
	"orchestrator/evidence orchestrator/pricelist orchestrator/prices orchestrator/spec orchestrator/state orchestrator/sweep orchestrator/tap orchestrator/verdict"

// layers say what the packages of this module may import of one another, the
// first line that fits a package counting. A name ending in /... stands for the
// packages below it and itself. Arrows point down: an adapter is in no line but
// those of programs and of whole runs, so workflows reach it only through
// interfaces of their own.
var layers = []struct{ pkg, may string }{
	{"cmd/...", "..."},
	{"e2e/...", "..."},
	{"internal/testing/...", "..."},

	// Workflows.
	{"orchestrator", values + " roles/... internal/... prompts images"},
	{"orchestrator/scaffold", values + " . internal/... prompts"},
	// What git ignores is a parser without effects, though it stands with git's adapter.
	{"orchestrator/codecommit/...", values + " orchestrator/codecommit/... orchestrator/workspace/ignore roles/... internal/... prompts images"},
	{"orchestrator/learner", values + " roles/... internal/... prompts"},
	{"orchestrator/report/...", values + " orchestrator/report/... internal/... prompts"},

	// Roles. The APIs of models are an adapter among them.
	{"roles/model/...", values + " roles/model/... internal/..."},
	{"roles", values + " roles/... internal/... prompts images"},
	// The environment puts adapters together for them.
	{"roles/environment", values + " roles/... internal/... prompts images orchestrator/gateway/..."},
	{"roles/...", values + " roles/... internal/... prompts"},

	// Adapters, which never import each other.
	{"internal/sandbox/docker/...", values + " internal/sandbox/docker/... internal/..."},
	{"orchestrator/workspace/...", values + " orchestrator/workspace/... internal/..."},
	{"orchestrator/broker/...", values + " orchestrator/broker/... internal/..."},
	{"orchestrator/gateway/...", values + " orchestrator/gateway/... internal/..."},

	// Values and parsers, and what is embedded.
	{"orchestrator/...", values + " internal/..."},
	{"images/...", values + " images/... internal/..."},
	{"prompts", ""},
	{"examples/...", ""},
	{".", ""},

	// What only tests use may speak about everything.
	{"internal/testing/...", "..."},

	// Mechanics know no word of the domain.
	{"internal/...", "internal/..."},
}

// homes are the modules of others, each with the one place that may import it:
// there it can be replaced, and there its quirks are known. "test" is any test
// and the packages that exist for tests.
var homes = []struct{ module, home string }{
	{"github.com/docker/...", "internal/sandbox/docker/..."},
	{"github.com/containerd/...", "internal/sandbox/docker/..."},
	{"github.com/opencontainers/...", "internal/sandbox/docker/..."},
	{"github.com/go-git/...", "orchestrator/workspace/..."},
	{"github.com/gocarina/gocsv", "orchestrator/ledger"},
	{"github.com/urfave/cli/...", "cmd/internal/cli"},
	{"github.com/joho/godotenv", "internal/dotenv"},
	{"github.com/gofrs/flock", "internal/hostfs"},
	{"go.yaml.in/yaml/...", "internal/yamlfile"},
	{"github.com/google/go-cmp/...", "test"},
	{"github.com/rogpeppe/go-internal/...", "test"},
	{"github.com/creack/pty", "test"},
	{"google.golang.org/genai/...", "roles/model"},
	{"github.com/openai/openai-go/...", "roles/model"},
	{"golang.org/x/net/...", "cmd/abl-cmd/internal/holder"},
	{"golang.org/x/...", "..."},
}

// engines are the adapters of container engines, which programs and the environment
// choose.
const engines = "internal/sandbox/docker/..."

// support is what is there for tests alone.
const support = "e2e/... internal/testing/... cmd/internal/scripttest"

// workflows decide and delegate; they import no module of others at all.
const workflows = "orchestrator orchestrator/scaffold orchestrator/codecommit/... orchestrator/learner orchestrator/report/..."

// mayImport judges an import within the module. A test may put any packages
// together; only mechanics stay without the domain in their tests too.
func (f file) mayImport(own string) bool {
	if f.test && !fits(f.dir, "internal/...") {
		return true
	}
	if fits(own, "internal/testing/...") && own != "internal/testing/failpoint" { // it is in no program
		return f.test || fits(f.dir, support)
	}
	if fits(own, engines) && !f.test {
		return fits(f.dir, engines+" roles/environment cmd/... "+support)
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
