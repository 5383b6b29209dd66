package config

import (
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"abl/internal/helper"
	"abl/internal/toolchain"
	"abl/internal/wording"
	"abl/internal/yamlfile"
)

// version is the version of the schema.
const version = 1

// maxIterations limits the cost of a typing error.
const maxIterations = 100

// rule is the condition for a single value.
type rule struct {
	// Dotted, of one value or several with blanks between them. "*" is any one part of it, "*_commands" one that
	// ends so, "…" whatever is before; NAME is one, and it is judged.
	key  string
	ok   func(string) bool
	want string
	hint string
}

// rules are the conditions for the values, in the form of the file.
var rules = []rule{
	{"version", number(version, version), "1: this abl supports 1", "update abl"},
	{"…*", func(s string) bool { return !strings.ContainsRune(s, 0) }, "text without NUL", ""},
	{"directories.*", inside, "a directory inside the project", "give a path such as src"},
	{"source.repo", orNothing(isRepo), "the path of a repository: . for the project, or ../.. for one that contains it",
		""},
	{"source.dir", orNothing(inside), "a folder inside the repository", ""},
	{"adopt.exclude.*", inside, "a path inside the repository", ""},
	{"adopt.baseline", oneOf("on", "off"), "on or off", ""},
	{"publish.when", oneOf("manual", "auto"), "manual or auto", ""},
	{"publish.prefix", like(`([A-Za-z0-9_][A-Za-z0-9_-]*/)*([A-Za-z0-9_][A-Za-z0-9_-]*)?`),
		"the beginning of a branch name, such as abl/ or bot/abl-", ""},
	{"publish.author", orNothing(like(`[^<>\x00-\x1f\x7f]*[^<>\s\x00-\x1f\x7f] <[^<>\s]+@[^<>\s]+>`)), "NAME <EMAIL>", ""},
	{"remote.name", orNothing(like(`[A-Za-z0-9_][A-Za-z0-9._/-]*`)), "the name of a remote, such as origin",
		"git remote -v lists them"},
	{"notify.command agents.*.key_command agents.*.acp", orNothing(notBlank), "a shell command", ""},
	{"models.*.*", modelName, "the name of a model", ""},
	{"effort.*", orNothing(oneOf("low", "medium", "high", "max")), "low, medium, high or max", ""},
	{"*_commands.NAME", like(`[a-z][a-z0-9_-]*`), "lower-case letters, digits, - and _", ""},
	{"*_commands.NAME", not(oneOf("check", "get-spec", "help", "list", "restart")),
		"a name that is not a command of abl-cmd", "choose another name"},
	{"*_commands.*.command", notBlank, "the command to run", ""},
	{"*_commands.*.output", oneOf("", "hidden", "shown"), "shown or hidden", ""},
	{"app.kind", oneOf("http", helper.KindTCP, helper.KindCommand), "http, tcp or command", ""},
	{"app.command", notBlank, "the command that starts the app", "add the command, or remove the section"},
	{"app.build", orNothing(notBlank), "the command that compiles the app, such as npm run build", ""},
	{"app.prepare", orNothing(notBlank), "the command that installs the dependencies, such as npm ci", ""},
	{"app.probe", orNothing(notBlank), "the arguments of a run, such as --version", ""},
	{"app.port", number(0, maxPort), "1 to 65535", ""},
	{"app.ready.port", number(0, 0), "no port: abl checks app.port", "remove it"},
	{"app.copy", oneOf("auto", "overlay", "tar"), "auto, overlay or tar", ""},
	{"app.services.NAME", like(`[a-z]([a-z0-9-]{0,61}[a-z0-9])?`), "lower-case letters, digits and -", ""},
	{"app.services.NAME", not(oneOf("app")), "another name than app", "choose another name"},
	{"app.services.*.image", orNothing(like(`[^\s\x00-\x20\x7f]+`)), "the name of an image", ""},
	{"app.services.*.dockerfile images.*.dockerfile agents.*.scenario", orNothing(inside),
		"a path inside the project", ""},
	{"app.services.*.files.NAME", isTarget, "the absolute path of a file in the service's container", ""},
	{"app.services.*.files.*", isSeed, "the path of a file in the project, outside .env and abl's own files",
		"use a file such as .abl/seed.sql"},
	{"app.services.*.ready.port", number(1, maxPort), "1 to 65535", ""},
	{"…ready.path", like(`(/[^\s\x00-\x20\x7f]*)?`), "a path such as /health", ""},
	{"*_commands.*.timeout …ready.timeout", lasts(time.Millisecond), "1ms or more", ""},
	// An app that recognizes a test could behave differently.
	{"…env.NAME", like(`[A-Za-z_][A-Za-z0-9_]*`), "the name of a variable", ""},
	{"…env.NAME", func(name string) bool { return !strings.HasPrefix(name, envPrefix) },
		"a name that does not begin with " + envPrefix, "choose another name"},
	{"loop.max_verifier_iterations", number(1, maxIterations), "1 to 100", ""},
	{"loop.no_progress.*", number(0, 1<<31), "0 (off) or more", ""},
	{"loop.call_timeout loop.idle_timeout remote.lease", lasts(time.Second), "1s or more", ""},
	{"loop.outage_budget", lasts(0), "0 or more", ""},
	{"verify.evidence", oneOf("required", "off"), "required or off", ""},
	{"verify.allow_unread.* verify.allow_weak.*", like(`P[1-9][0-9]*\.C[1-9][0-9]*|all`),
		"the id of a contract such as P1.C3, or all", "abl spec list has the ids"},
	{"budget.*.*", number(0, 1<<62), "0 (no limit) or more", ""},
	{"prices", orNothing(inside), "a path inside the project, or {MODEL: {input: 1.25, output: 10}}", ""},
	{"network.pool", isPool, "a private IPv4 range of /24 or larger, such as 10.231.0.0/16", ""},
	{"network.builds", oneOf("engine", BuildsHost), "engine or host", ""},
	{"network.egress", orNothing(like(`[a-zA-Z0-9][a-zA-Z0-9_.-]*`)), "the name of a network of the engine", ""},
	{"network.ca_cert", func(s string) bool { return s == "" || strings.HasPrefix(s, "/") || inside(s) },
		"an absolute path, or a path inside the project", ""},
	{"limits.memory", holds(16 << 20), "16m or more: a container with less does not start", ""},
	{"limits.tmp limits.home limits.shm limits.prepare", holds(1 << 20), "1m or more", ""},
	{"limits.cpus", number(1e-9, 1<<20), "more than 0", ""},
	{"limits.*", func(s string) bool { return holds(1)(s) || number(1e-9, 1<<62)(s) }, "more than 0", ""},
	{"toolchain.go", knows("go"), wantLines("go", ", or in full such as 1.26.1"), otherVersion},
	{"toolchain.node", knows("node"), wantLines("node", ", or in full such as 24.9.0"), otherVersion},
	{"toolchain.python", knows("python"), wantLines("python", ", which are Debian's"), otherVersion},
	{"toolchain.rust", knows("rust"), wantLines("rust", ", which is Debian's"), otherVersion},
	{"toolchain.java", knows("java"), wantLines("java", ", which are Debian's"), otherVersion},
	{"agents.NAME", like(`[a-z][a-z0-9-]{0,30}`), "a name of lower-case letters, digits and -", ""},
	{"agents.*.login", orNothing(oneOf("key", "token", "plan", "mantle", "foundry", "azure")),
		"key, token, plan, mantle, foundry or azure", "docs/providers.md has the logins of each agent"},
	{"agents.*.headers.NAME", like(`[A-Za-z][A-Za-z0-9-]*`), "the name of a header", ""},
	{"agents.*.headers.NAME", func(name string) bool { return !slices.Contains(gatewaysHeaders, strings.ToLower(name)) },
		"a header that the gateway does not set itself", ""},
	{"agents.*.headers.*", like(`\$[A-Za-z_][A-Za-z0-9_]*`), "a variable of .env, such as $TEAM_KEY",
		"put the value into .env"},
	{"agents.*.query.NAME", like(`[A-Za-z0-9_.~-]+`), "the name of a parameter", ""},
	{"agents.*.query.*", like(`\$[A-Za-z_][A-Za-z0-9_]*|[A-Za-z0-9_.~:-]+`),
		"a plain value, or a variable of .env such as $TEAM_KEY", ""},
	{"agents.*.version", orNothing(like(`[0-9]+\.[0-9]+\.[0-9]+([.+-][0-9A-Za-z.+-]*)?`)),
		"an exact version such as 0.171.0", "abl images update AGENT finds the newest"},
	{"agents.*.key_every", func(s string) bool { return s == "0s" || lasts(time.Second)(s) }, "1s or more", ""},
	{"agents.*.provider", orNothing(oneOf(providers...)), "one of abl's agents that has a provider", ""},
	{"agents.*.api", orNothing(oneOf(apis...)), "openai-responses, openai-chat, anthropic or gemini", ""},
	{"agents.*.key", orNothing(like(`[A-Za-z_][A-Za-z0-9_]*`)), "the name of a variable, or none",
		"put the key itself into .env"},
	{"agents.*.base", orNothing(like(`https?://[^\s\x00-\x20\x7f?#@]+`)),
		"an address such as https://openrouter.ai/api/v1", ""},
	{"agents.*.npm", orNothing(like(npmPackage + `( ` + npmPackage + `)*`)),
		"npm packages at an exact version, such as opencode-linux-{arch}@1.18.34", ""},
	{"agents.*.usage", orNothing(like(`[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*`)),
		"the keys that lead to the tokens, such as result.usage", ""},
	{
		"agents.*.image", orNothing(func(s string) bool {
			return slices.Contains(append(providers, "tools"), s) || like(`[^\s\x00-\x20\x7f]*[:/@][^\s\x00-\x20\x7f]*`)(s)
		}),
		strings.Join(providers, ", ") + ", tools, or an image with its tag such as debian:12", "",
	},
	{"agents.*.model", orNothing(modelName), "the name of a model", ""},
}

// apis are the APIs that an agent of the project can use.
var apis = []string{"openai-responses", "openai-chat", "anthropic", "gemini"}

// npmPackage is the name of an npm package with its version.
const npmPackage = `(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._{}-]*@[0-9][0-9A-Za-z.+{}-]*`

// gatewaysHeaders are the headers that the gateway sets: the key, and headers of the connection.
var gatewaysHeaders = strings.Fields("authorization x-api-key x-goog-api-key api-key host content-length " +
	"content-type content-encoding accept-encoding connection transfer-encoding te trailer upgrade user-agent " +
	"proxy-authorization proxy-connection keep-alive expect")

const maxPort = 65535

const otherVersion = "images.builder.dockerfile can install another version (docs/toolchains.md)"

// knows reports whether abl has a version of a tool.
func knows(tool string) func(string) bool {
	return orNothing(func(s string) bool { _, ok := toolchain.Find(tool, s); return ok })
}

func wantLines(tool, more string) string { return wording.OneOf(toolchain.Lines(tool)) + more }

// checkRules checks each value on its own.
func checkRules(l *Loaded) error {
	keys := yamlfile.Keys(l.Config)
	for _, r := range rules {
		for _, k := range keys {
			text := k.Text
			if strings.HasSuffix(r.key, "NAME") {
				text = k.Path[len(k.Path)-1]
			}
			if r.about(k.Path) && !r.ok(text) {
				return l.unwanted(k.String(), r.hint, r.want, text)
			}
		}
	}
	return nil
}

// unwanted returns the error for a value that is not valid or is missing.
func (l *Loaded) unwanted(key, hint, want, got string) error {
	if l.source(key) == "" && (got == "" || got == "0") {
		return l.mistake(key, hint, "missing, want %s", want)
	}
	return l.mistake(key, hint, "want %s, got %q", want, got)
}

// about reports whether the rule applies to the value at a path.
func (r rule) about(path []string) bool {
	return slices.ContainsFunc(strings.Fields(r.key), func(key string) bool {
		dotted, anywhere := strings.CutPrefix(key, "…")
		parts, end := strings.Split(dotted, "."), path
		if anywhere {
			end = path[max(0, len(path)-len(parts)):]
		}
		return slices.EqualFunc(parts, end, covers)
	})
}

func covers(want, part string) bool {
	end, any := strings.CutPrefix(want, "*")
	return want == part || want == "NAME" || any && strings.HasSuffix(part, end)
}

func not(ok func(string) bool) func(string) bool {
	return func(s string) bool { return !ok(s) }
}

func orNothing(ok func(string) bool) func(string) bool {
	return func(s string) bool { return s == "" || ok(s) }
}

func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func like(expr string) func(string) bool {
	whole := regexp.MustCompile(`^(?:` + expr + `)$`)
	return func(s string) bool { return whole.MatchString(s) }
}

// number refuses .nan and .inf, too.
func number(least, most float64) func(string) bool {
	return func(s string) bool {
		n, err := strconv.ParseFloat(s, 64)
		return err == nil && n >= least && n <= most
	}
}

func lasts(least time.Duration) func(string) bool {
	return func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= least
	}
}

func holds(least Size) func(string) bool {
	return func(s string) bool {
		var size Size
		return size.UnmarshalText([]byte(s)) == nil && size >= least
	}
}

// isTarget reports whether a service may have a file at this path.
func isTarget(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && path.Dir(s) != "/" && !strings.ContainsFunc(s, unicode.IsControl)
}

// isSeed reports whether a service may have this file of the project.
func isSeed(s string) bool {
	return inside(s) && !slices.ContainsFunc(reserved, func(taken string) bool {
		return taken != ".abl/images" &&
			overlap(s, taken)
	})
}

func notBlank(s string) bool { return strings.TrimSpace(s) != "" }

var modelName = like(`[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*`)

// isPool reports whether a range has room for sixteen /28 networks.
func isPool(s string) bool {
	pool, err := netip.ParsePrefix(s)
	return err == nil && pool.Addr().Is4() && pool.Addr().IsPrivate() && pool == pool.Masked() && pool.Bits() <= 24
}
