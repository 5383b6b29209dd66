package config

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/wording"
	"abl/internal/yamlfile"
)

// providers are the agents with a provider.
var providers = []string{"gemini", "claude", "codex", "copilot"}

// scripted is the agent without a provider.
const scripted = "scripted"

// agents are the agents that come with abl.
var agents = append(slices.Clone(providers), scripted)

// validate checks the values on their own and together. It returns the first mistake.
func validate(l *Loaded) error {
	for _, check := range []func(*Loaded) error{checkRules, checkKind, checkDirectories, checkAgents, checkAllow, checkProxy, checkServices, checkApart} {
		if err := check(l); err != nil {
			return err
		}
	}
	return nil
}

// byKey iterates over m in the order of its keys, so that the first mistake is always the same.
func byKey[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// losesArguments matches a shell command that cannot be extended by arguments: outside of quotes it ends
// in a comment, or with a separator of commands.
var losesArguments = regexp.MustCompile(`^(?:[^'"\\]|\\(?s:.)|'[^']*'|"(?:[^"\\]|\\(?s:.))*")*(?:(?:^|[\s;&|()])#[^\n]*|[;&|])$`)

// checkKind checks that the app section fits the kind of the app.
func checkKind(l *Loaded) error {
	a := l.App
	switch {
	case a == nil:
	case a.Kind != helper.KindCommand && a.Port == 0:
		return l.unwanted("app.port", "", "1 to 65535", "0")
	case a.Port == helper.BrokerPort:
		return l.mistake("app.port", "choose another port", "abl uses port %d in the app's container", a.Port)
	case a.Kind != helper.KindCommand && a.Probe != "":
		return l.mistake("app.probe", "remove it, and set app.ready", "is for programs, and app.kind is %s", a.Kind)
	case a.Kind == helper.KindTCP && a.Ready.Path != "":
		return l.mistake("app.ready.path", "remove it: abl checks whether the port is open",
			"needs HTTP, and app.kind is tcp")
	case a.Kind != helper.KindCommand:
	case a.Port != 0:
		return l.mistake("app.port", "remove it", "app.kind is command, which has no port")
	case l.source("app.ready.path") != "" || l.source("app.ready.timeout") != "":
		return l.mistake("app.ready", "remove it", "app.kind is command, which abl does not start before the tests")
	case losesArguments.MatchString(strings.TrimSpace(a.Command)):
		const why = "abl appends arguments, and %q ends in a comment, or with ; & or |"
		return l.mistake("app.command", "remove that, or put the command into a script", why, a.Command)
	default:
		for _, table := range []string{"builder_commands.app", "verifier_commands.app"} {
			if l.source(table+".command") != "" {
				return l.mistake(table, "choose another name", "with app.kind command, abl-cmd app runs the program")
			}
		}
	}
	return nil
}

func checkAgents(l *Loaded) error {
	known := slices.Clone(agents)
	for name, a := range byKey(l.Agents) {
		own, key := !slices.Contains(agents, name), "agents."+name
		switch {
		case own && !a.Own():
			return unknownAgent(l, key, name, known)
		case !own && (a.Own() || len(a.Env) > 0 || a.Usage != "" || a.Image != "" || a.Model != "" || a.NPM != "" || a.Key != "" || a.Base != ""):
			return l.mistake(key, "choose another name for your agent",
				"%q is one of abl's agents, whose command you cannot change", name)
		case a.Command != "" && a.ACP != "":
			return l.mistake(key+".acp", "", "want command or acp, not both")
		case a.Version != "" && !slices.Contains(providers, name):
			return l.mistake(key+".version", "set the version in npm", "only %s have one", strings.Join(providers, ", "))
		case own && a.Scenario != "":
			return l.mistake(key+".scenario", "", "only the scripted agent has one")
		case a.API != "" && !own && (name != "copilot" || !strings.HasPrefix(a.API, "openai")):
			return l.mistake(key+".api", "", "of abl's agents only copilot has one: openai-responses or openai-chat")
		case own && a.API == "" && (a.Key != "" || a.Base != ""):
			return l.mistake(key+".api", "set it to "+wording.OneOf(apis), "missing: key and base need it")
		case own && a.API != "" && a.Key == "" && a.KeyCommand == "":
			return l.mistake(key+".key", "use none for a server without keys", "missing, want the variable of the key")
		case own && a.API != "" && a.Provider != "":
			return l.mistake(key+".provider", "", "want provider or api, not both")
		case a.Image != "" && a.NPM != "" && !slices.Contains(append(providers, "tools"), a.Image):
			return l.mistake(key+".npm", "install the package in the image", "abl adds npm packages to its own images only")
		case own && a.API != "" && a.Login == "": // it reaches its provider itself
			known = append(known, name)
		case !slices.Contains(providers, name) && a.ofProvider() != "":
			return l.mistake(key+"."+a.ofProvider(), "set it for the agent whose provider it uses", "only %s have one",
				strings.Join(providers, ", "))
		case a.Provider != "" && slices.Contains(providers, name):
			return l.mistake(key+".provider", "", "only scripted and your own agents have one")
		case own:
			known = append(known, name)
		}
	}
	for key, name := range l.at("agent.*") {
		if !slices.Contains(known, name) {
			return unknownAgent(l, key, name, known)
		}
	}
	return nil
}

// NoKey is the value of agents.NAME.key for a server without keys.
const NoKey = "none"

// Own reports whether the project defines the agent.
func (a Agent) Own() bool { return notBlank(a.Command) || notBlank(a.ACP) }

// ofProvider returns the first setting that only an agent with a provider has, "" for none.
func (a Agent) ofProvider() string {
	switch {
	case a.Login != "":
		return "login"
	case len(a.Headers) > 0:
		return "headers"
	case len(a.Query) > 0:
		return "query"
	case a.KeyCommand != "":
		return "key_command"
	case a.KeyEvery != 0:
		return "key_every"
	}
	return ""
}

// Fixed returns a value of headers or query: the text, or the variable of .env that it names. It does not
// read the environment, because the settings may come with a repository.
func (l *Loaded) Fixed(key, text string) (string, error) {
	name, variable := strings.CutPrefix(text, "$")
	if !variable {
		return text, nil
	}
	if value := l.Dotenv[name]; value != "" {
		return value, nil
	}
	return "", l.mistake(key, "add "+name+"=… to "+EnvFile, "%s is not in %s", text, EnvFile)
}

func unknownAgent(l *Loaded, key, name string, known []string) error {
	if near := wording.Near(name, known); near != "" {
		return l.mistake(key, "", "unknown agent %q; did you mean %q?", name, near)
	}
	return l.mistake(key, "agents.NAME.command or agents.NAME.acp defines your own agent (docs/agents.md)",
		"unknown agent %q; want one of %s", name, strings.Join(known, ", "))
}

// dropModels removes the models of a role that are for another agent: models of the file, if a flag sets
// an agent with another provider. Models next to the scripted agent are for its replacement.
func dropModels(l *Loaded, role, was, now string, models *Chain) {
	from := l.source("models." + role)
	if was != now && was != scripted && now != scripted && l.inFile(from) {
		l.Warnings = append(l.Warnings,
			"models."+role+" is for "+was+" and not used: "+now+" uses its own default ("+from+")")
		*models = nil
	}
}

// at iterates over the values at places, which have the form of the key of a rule.
func (l *Loaded) at(places string) iter.Seq2[string, string] {
	found := map[string]string{}
	for _, k := range yamlfile.Keys(l.Config) {
		if (rule{key: places}).about(k.Path) {
			found[k.String()] = k.Text
		}
	}
	return byKey(found)
}

// checkApart refuses files that abl relies on in the workspace of a role, such as prices, authorities and
// Dockerfiles.
func checkApart(l *Loaded) error {
	files := maps.Collect(l.at("network.ca_cert images.*.dockerfile app.services.*.dockerfile " +
		"app.services.*.files.*"))
	files["prices"] = l.Prices.File
	for key, file := range byKey(files) {
		for _, dir := range []string{l.Directories.Src, l.Directories.Tests} {
			if file != "" && overlap(file, dir) {
				return l.mistake(key, "move it, for example into .abl", "%q is in %s, which a role may write", file, dir)
			}
		}
	}
	return nil
}

// checkServices fails unless each service has one image.
func checkServices(l *Loaded) error {
	if l.App == nil {
		return nil
	}
	for name, s := range byKey(l.App.Services) {
		if (s.Image == "") == (s.Dockerfile == "") {
			const hint = "name an image, or a Dockerfile to build one from (docs/services.md)"
			return l.mistake("app.services."+name, hint, "want an image or a dockerfile, not both")
		}
	}
	return nil
}

// maxSeed bounds a file for a service, in bytes.
const maxSeed = 64 << 20

// Seeds reads the files for a service, by their paths in the service. It follows no links.
func (l *Loaded) Seeds(project, service string) (map[string][]byte, error) {
	seeds := map[string][]byte{}
	for to, from := range byKey(l.App.Services[service].Files) {
		data, err := hostfs.Read(project, from, maxSeed)
		if err != nil {
			return nil, l.mistake("app.services."+service+".files."+to, "", "%v", err)
		}
		seeds[to] = data
	}
	return seeds, nil
}

// shortest is the minimum length of a secret to search for inside a value. A shorter text occurs by
// chance.
const shortest = 8

// CheckSecrets fails if the environment of the app, of a service or of an agent contains a secret, and
// names it: agents can read this environment.
func (l *Loaded) CheckSecrets(secrets map[string]string) error { return l.refuse(secrets, "…env.*") }

// CheckCommands fails if a command contains a key: every process in its container can read the command.
func (l *Loaded) CheckCommands(keys map[string]string) error {
	return l.refuse(keys, "…command …prepare …acp")
}

// refuse returns an error if a setting at these places contains a secret.
func (l *Loaded) refuse(secrets map[string]string, places string) error {
	for key, value := range l.at(places) {
		for name, secret := range byKey(secrets) {
			if secret != "" && (value == secret || len(secret) >= shortest && strings.Contains(value, secret)) {
				return l.mistake(key, "use a value for tests", "contains the secret %s", name)
			}
		}
	}
	return nil
}

// reserved are paths that must not be, contain, or be in the workspace of a role.
var reserved = strings.Fields(".abl/specs .abl/logs .abl/reports .abl/images .abl/cache .abl/state.json " +
	".abl/lock .abl/config.yaml .abl/project.md .abl/project_map.txt .abl/abl.config.yaml abl.config.yaml " +
	"prompts .env .git")

func checkDirectories(l *Loaded) error {
	for key, dir := range l.at("directories.*") {
		for _, taken := range reserved {
			if overlap(dir, taken) {
				return l.mistake(key, "choose another directory", "%q overlaps %s, which no role may write", dir, taken)
			}
		}
	}
	if src, tests := l.Directories.Src, l.Directories.Tests; overlap(src, tests) {
		return l.mistake("directories.tests", "give each role a separate directory",
			"%q overlaps directories.src (%q)", tests, src)
	}
	return nil
}

// isRepo reports whether a path is the project or a folder that contains it.
func isRepo(dir string) bool {
	return dir == "." || dir == path.Clean(dir) && strings.Trim(dir, "./") == "" && !path.IsAbs(dir)
}

// inside reports whether dir is a clean relative path below the project.
func inside(dir string) bool {
	return dir != "." && filepath.IsLocal(dir) && path.Clean(dir) == dir && !strings.ContainsFunc(dir, unicode.IsControl)
}

// overlap reports whether one path equals the other or is below it. It ignores letter case, like some
// file systems.
func overlap(a, b string) bool {
	a, b = strings.ToLower(a)+"/", strings.ToLower(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// CheckDirs checks the workspaces on disk. A workspace may be missing. It fails if a part of its path is
// a link or a file, or if both workspaces are the same directory.
func (l *Loaded) CheckDirs(project string) error {
	var found []fs.FileInfo
	for key, dir := range l.at("directories.*") {
		info, at := fs.FileInfo(nil), ""
		for step := range strings.SplitSeq(dir, "/") {
			at = path.Join(at, step)
			var err error
			info, err = os.Lstat(filepath.Join(project, at))
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			switch {
			case err != nil:
				return fmt.Errorf("cannot read %s: %w", key, err)
			case info.Mode()&fs.ModeSymlink != 0:
				return l.mistake(key, "give the real directory", "%q is a link", at)
			case !info.IsDir():
				return l.mistake(key, "", "%q is not a directory", at)
			}
		}
		found = append(found, info)
	}
	if found[0] != nil && found[1] != nil && os.SameFile(found[0], found[1]) {
		return l.mistake("directories.tests", "", "%q and %q are the same directory", l.Directories.Tests, l.Directories.Src)
	}
	return nil
}

// Registries are the names of package registries in network.allow.
var Registries = []string{"crates", "go", "maven", "npm", "pypi"}

// httpsPort is the default port of a host in network.allow.
const httpsPort = "443"

// checkAllow fails unless each entry is the name of a registry or the exact name of a host.
func checkAllow(l *Loaded) error {
	for i, entry := range l.Network.Allow {
		name, key := entry.Name(), "network.allow["+strconv.Itoa(i)+"]"
		near := wording.Near(name, Registries)
		switch {
		case slices.Contains(Registries, name) && entry.Private():
			return l.mistake(key, "", "want the name of a host with private: true, got %q", name)
		case slices.Contains(Registries, name), Allowable(name):
		case near != "":
			return l.mistake(key, "", "there is no registry %q; did you mean %q?", name, near)
		default:
			return l.mistake(key, "", "want %s, or the name of a host with its domain, "+
				"such as registry.example or registry.example:8443, got %q", strings.Join(Registries, ", "), name)
		}
	}
	return nil
}

// NoProxy is the value of network.proxy that disables the proxy of the environment.
const NoProxy = "none"

var proxyAddress = like(`https?://([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?/?`)

// checkProxy fails if network.proxy contains a login, which would be in the repository. The error does not
// quote it.
func checkProxy(l *Loaded) error {
	if proxy := l.Network.Proxy; proxy == "" || proxy == NoProxy || proxyAddress(proxy) {
		return nil
	}
	return l.mistake("network.proxy", "set user and password in HTTPS_PROXY",
		"want none, or the address of an HTTP proxy without a login, such as http://proxy.example:3128")
}

// BuildsHost is the value of network.builds with which the project's Dockerfiles are built in the network
// of this machine.
const BuildsHost = "host"

// hostName matches the name of a host with its domain. It does not match an address.
var hostName = like(`([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]*[a-z]([a-z0-9-]*[a-z0-9])?`)

// Allowable reports whether network.allow may contain a host, with or without a port.
func Allowable(entry string) bool {
	host, port, with := strings.Cut(entry, ":")
	return len(host) <= 253 && hostName(host) && !strings.HasSuffix(host, ".localhost") &&
		(!with || like(`[1-9][0-9]*`)(port) && number(1, maxPort)(port))
}

// AllowedHost returns a host in network.allow as host:port.
func AllowedHost(entry string) string {
	if strings.Contains(entry, ":") {
		return entry
	}
	return entry + ":" + httpsPort
}
