package config

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"abl/internal/wording"
	"abl/internal/yamlfile"
)

// providers are the agents that have one.
var providers = []string{"gemini", "claude", "codex", "copilot"}

// scripted is the agent that needs no provider.
const scripted = "scripted"

// agents are those that abl brings.
var agents = append(slices.Clone(providers), scripted)

// validate judges the values, each by itself and against one another, and
// returns the first mistake.
func validate(l *Loaded) error {
	dropMutants(l)
	for _, check := range []func(*Loaded) error{checkRules, checkDirectories, checkAgents, checkPrices, checkAllow, checkApart} {
		if err := check(l); err != nil {
			return err
		}
	}
	return nil
}

// dropMutants leaves out a challenge that is no more.
func dropMutants(l *Loaded) {
	if !slices.Contains(l.Verify.Challenge, "mutants") {
		return
	}
	l.Verify.Challenge = slices.DeleteFunc(slices.Clone(l.Verify.Challenge), func(c string) bool { return c == "mutants" })
	l.Warnings = append(l.Warnings, "mutants in verify.challenge is no more: take it out")
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

func checkAgents(l *Loaded) error {
	known := slices.Clone(agents)
	for name, a := range byKey(l.Agents) {
		own, key := !slices.Contains(agents, name), "agents."+name
		switch {
		case own && !a.custom():
			return unknownAgent(l, key, name, known)
		case !own && a.custom():
			return l.mistake(key, "give it a name of its own", "%q is one of abl's agents, and its command is abl's", name)
		case own && !notBlank(a.Command):
			return l.mistake(key+".command", "", "is missing; want the shell command that does the task on standard input")
		case own && a.Scenario != "":
			return l.mistake(key+".scenario", "", "only the scripted agent plays one")
		case a.API != "" && name != "copilot":
			return l.mistake(key+".api", "", "only copilot has a choice")
		case a.Provider != "" && slices.Contains(providers, name):
			return l.mistake(key+".provider", "", "only scripted or an agent of your own has a choice")
		case own:
			known = append(known, name)
		}
	}
	for key, name := range byKey(map[string]string{"agent.builder": l.Agent.Builder, "agent.verifier": l.Agent.Verifier}) {
		if !slices.Contains(known, name) {
			return unknownAgent(l, key, name, known)
		}
	}
	return nil
}

func unknownAgent(l *Loaded, key, name string, known []string) error {
	if near := wording.Near(name, known); near != "" {
		return l.mistake(key, "", "there is no agent %q; did you mean %q?", name, near)
	}
	return l.mistake(key, "agents.NAME.command makes one of your own (docs/agents.md)", "there is no agent %q; there are %s", name, strings.Join(known, ", "))
}

// dropModels leaves a role's models out that were meant for another agent: those of a
// file, once a flag gives the role to an agent of another provider. What was
// written beside the scripted agent was meant for whoever comes in its place.
func dropModels(l *Loaded, role, was, now string, models *Chain) {
	from := l.source("models." + role)
	if was != now && was != scripted && now != scripted && from.Line > 0 {
		l.Warnings = append(l.Warnings, "models."+role+" is for "+was+" and not used: "+now+" takes its own default ("+from.String()+")")
		*models = nil
	}
}

func checkPrices(l *Loaded) error {
	for _, name := range l.Prices.Models() {
		if !modelName(name) {
			return l.mistake("prices."+name, "", "want the name of a model, got %q", name)
		}
	}
	return nil
}

// checkApart keeps a role from writing what abl goes by: a price, an authority, what a
// container is built from.
func checkApart(l *Loaded) error {
	for key, file := range byKey(map[string]string{
		"prices": l.Prices.File, "network.ca_cert": l.Network.CACert, "images.builder.dockerfile": l.Images.Builder.Dockerfile,
		"images.verifier.dockerfile": l.Images.Verifier.Dockerfile, "images.app.dockerfile": l.Images.App.Dockerfile,
	}) {
		for _, dir := range []string{l.Directories.Src, l.Directories.Tests} {
			if file != "" && overlap(file, dir) {
				return l.mistake(key, "put it elsewhere, below .abl say", "%q is in %s, which a role may write", file, dir)
			}
		}
	}
	return nil
}

// shortest is the length from which a secret is looked for inside a value; a
// shorter one turns up by chance.
const shortest = 8

// CheckSecrets refuses an environment of the app, of a service or of an agent that
// carries one of the secrets, which it names: what an app is given, agents can read.
func (l *Loaded) CheckSecrets(secrets map[string]string) error {
	return l.refuse(secrets, func(path []string) bool { return len(path) > 2 && path[len(path)-2] == "env" })
}

// CheckCommands refuses a command that carries one of the keys: it is run in a
// container, where every process can read it.
func (l *Loaded) CheckCommands(keys map[string]string) error {
	return l.refuse(keys, func(path []string) bool { return path[len(path)-1] == "command" })
}

func (l *Loaded) refuse(secrets map[string]string, given func(path []string) bool) error {
	for _, k := range yamlfile.Keys(l.Config) {
		value := k.Text
		for name, secret := range byKey(secrets) {
			if given(k.Path) && secret != "" && (value == secret || len(secret) >= shortest && strings.Contains(value, secret)) {
				return l.mistake(k.String(), "use a value made for tests", "holds the secret %s", name)
			}
		}
	}
	return nil
}
