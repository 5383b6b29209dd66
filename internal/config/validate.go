package config

import (
	"abl/internal/nearest"
	"iter"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// version is the schema that this abl knows.
const version = 1

// agents are the agents that a configuration may name.
var agents = []string{"gemini", "claude", "codex", "copilot", scripted}

// apis are those between which an agent can be given a choice, its default first.
var apis = []string{"openai-responses", "openai-chat"}

// scripted is the one that needs no provider.
const scripted = "scripted"

// builtin are the commands that abl-cmd has of its own.
var builtin = []string{"check", "get-spec", "help", "list", "restart"}

var (
	commandName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	hostName    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	engineName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
	modelName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*$`)
)

// validate judges the values, each by itself and against one another, and
// returns the first mistake.
func validate(l *Loaded) error {
	for _, check := range []func(*Loaded) error{
		checkVersion, checkDirectories, checkAgents, checkModels, checkCommands, checkApp,
		checkLoop, checkVerify, checkBudget, checkPrices, checkNetwork, checkLimits, checkImages,
	} {
		if err := check(l); err != nil {
			return err
		}
	}
	return nil
}

// byKey goes through m in the order of its keys, so that of several mistakes
// the same one is shown every time.
func byKey[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

func checkVersion(l *Loaded) error {
	switch {
	case l.Version > version:
		return l.mistake("version", "update abl", "is %d, and this abl knows %d", l.Version, version)
	case l.Version < version:
		return l.mistake("version", "", "want %d, got %d", version, l.Version)
	}
	return nil
}

func checkAgents(l *Loaded) error {
	for key, name := range byKey(map[string]string{"agent.builder": l.Agent.Builder, "agent.verifier": l.Agent.Verifier}) {
		if err := checkAgent(l, key, name); err != nil {
			return err
		}
	}
	for name, agent := range byKey(l.Agents) {
		if !agent.custom() || slices.Contains(agents, name) {
			if err := checkAgent(l, "agents."+name, name); err != nil {
				return err
			}
		}
		if err := checkCustom(l, "agents."+name, name, agent); err != nil {
			return err
		}
		if path := agent.Scenario; path != "" && !inside(path) {
			return l.mistake("agents."+name+".scenario", "", "want a path inside the project, got %q", path)
		}
		if api := agent.API; api != "" && (name != "copilot" || !slices.Contains(apis, api)) {
			return l.mistake("agents."+name+".api", "", "want %s, for copilot alone, got %q", strings.Join(apis, " or "), api)
		}
		if of := agent.Provider; of != "" && (slices.Contains(agents, name) && name != scripted || of == scripted || !slices.Contains(agents, of)) {
			return l.mistake("agents."+name+".provider", "", "want, for scripted or an agent of your own, one of abl's agents that has a provider, got %q", of)
		}
	}
	return nil
}

func checkAgent(l *Loaded, key, name string) error {
	known := slices.Clone(agents)
	for own, agent := range byKey(l.Agents) {
		if agent.custom() && !slices.Contains(known, own) {
			known = append(known, own)
		}
	}
	if slices.Contains(known, name) {
		return nil
	}
	if near := nearest.Word(name, known); near != "" {
		return l.mistake(key, "", "there is no agent %q; did you mean %q?", name, near)
	}
	return l.mistake(key, "agents.NAME.command makes one of your own (docs/agents.md)", "there is no agent %q; there are %s", name, strings.Join(known, ", "))
}

func checkModels(l *Loaded) error {
	for key, chain := range byKey(map[string][]string{"models.builder": l.Models.Builder, "models.verifier": l.Models.Verifier}) {
		for _, name := range chain {
			if !modelName.MatchString(name) {
				return l.mistake(key, "", "want the name of a model, got %q", name)
			}
		}
	}
	return nil
}

func checkCommands(l *Loaded) error {
	for section, commands := range byKey(map[string]map[string]Command{
		"builder_commands": l.BuilderCommands, "verifier_commands": l.VerifierCommands,
	}) {
		for name, command := range byKey(commands) {
			if err := checkCommand(l, section+"."+name, name, command); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCommand(l *Loaded, key, name string, c Command) error {
	switch {
	case !commandName.MatchString(name):
		return l.mistake(key, "", "%q is not a name for a command; want lower-case letters, digits, - and _", name)
	case slices.Contains(builtin, name):
		return l.mistake(key, "choose another name", "abl-cmd has a command %q of its own", name)
	case strings.TrimSpace(c.Command) == "":
		return l.mistake(key, "", "has no command to run")
	case !slices.Contains([]string{"", "hidden", "shown"}, c.Output):
		return l.mistake(key+".output", "", "want shown or hidden, got %q", c.Output)
	case c.Timeout <= 0:
		return l.mistake(key+".timeout", "", "want more than nothing")
	}
	return nil
}

func checkVerify(l *Loaded) error {
	if !slices.Contains([]string{"required", "off"}, l.Verify.Evidence) {
		return l.mistake("verify.evidence", "", "want required or off, got %q", l.Verify.Evidence)
	}
	if kept := slices.DeleteFunc(slices.Clone(l.Verify.Challenge), func(c string) bool { return c == "mutants" }); len(kept) < len(l.Verify.Challenge) {
		l.Verify.Challenge = kept
		l.Warnings = append(l.Warnings, "mutants in verify.challenge is no more: take it out")
	}
	for _, c := range l.Verify.Challenge {
		if !slices.Contains([]string{"away", "null-app"}, c) {
			return l.mistake("verify.challenge", "", "want away or null-app, got %q", c)
		}
	}
	return nil
}

func checkNetwork(l *Loaded) error {
	pool, err := netip.ParsePrefix(l.Network.Pool)
	if err != nil || !pool.Addr().Is4() || !pool.Addr().IsPrivate() || pool != pool.Masked() {
		return l.mistake("network.pool", "", "want a private IPv4 range such as 10.231.0.0/16, got %q", l.Network.Pool)
	}
	const smallest = 24 // room for sixteen networks of a /28
	if pool.Bits() > smallest {
		return l.mistake("network.pool", "", "%s is too small; want a /%d or larger", pool, smallest)
	}
	if b := l.Network.Builds; b != "engine" && b != BuildsHost {
		return l.mistake("network.builds", "", "want engine or host, got %q", b)
	}
	if err := checkAllow(l); err != nil {
		return err
	}
	if err := checkCACert(l); err != nil {
		return err
	}
	if name := l.Network.Egress; name != "" && !engineName.MatchString(name) {
		return l.mistake("network.egress", "", "want the name of a network of the engine, got %q", name)
	}
	return nil
}

func checkImages(l *Loaded) error {
	for key, path := range byKey(map[string]string{
		"images.builder.dockerfile":  l.Images.Builder.Dockerfile,
		"images.verifier.dockerfile": l.Images.Verifier.Dockerfile,
		"images.app.dockerfile":      l.Images.App.Dockerfile,
	}) {
		if path != "" && !inside(path) {
			return l.mistake(key, "", "want a path inside the project, got %q", path)
		}
		if dir := writable(l, path); dir != "" {
			return l.mistake(key, "", "%q lies in %s, where an agent writes: a container would be built from its words; keep it elsewhere", path, dir)
		}
	}
	return nil
}

// writable is the workspace that a file lies in, where a role may write it; "" for none.
func writable(l *Loaded, file string) string {
	for _, dir := range []string{l.Directories.Src, l.Directories.Tests} {
		if file != "" && overlap(file, dir) {
			return dir
		}
	}
	return ""
}
