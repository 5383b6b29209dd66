package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	agentName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)
	usagePath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$`)
)

// plainImage is the image that carries no agent's program.
const plainImage = "tools"

// checkCustom judges an agent of the project's own.
func checkCustom(l *Loaded, key, name string, a Agent) error {
	if !a.custom() {
		return nil
	}
	images := append(slices.DeleteFunc(slices.Clone(agents), func(n string) bool { return n == scripted }), plainImage)
	switch {
	case slices.Contains(agents, name):
		return l.mistake(key, "give it a name of its own", "%q is one of abl's agents, and its command is abl's", name)
	case !agentName.MatchString(name):
		return l.mistake(key, "", "%q is not a name for an agent; want lower-case letters, digits and -", name)
	case strings.TrimSpace(a.Command) == "":
		return l.mistake(key+".command", "", "is missing; want the shell command that does the task on standard input")
	case a.Scenario != "":
		return l.mistake(key+".scenario", "", "only the scripted agent plays one")
	case a.Usage != "" && !usagePath.MatchString(a.Usage):
		return l.mistake(key+".usage", "", "want the names on the way to the tokens, as result.usage, got %q", a.Usage)
	case a.Image != "" && !slices.Contains(images, a.Image):
		return l.mistake(key+".image", "a program of its own goes into images.builder.dockerfile", "want %s, got %q", strings.Join(images, ", "), a.Image)
	case a.Model != "" && !modelName.MatchString(a.Model):
		return l.mistake(key+".model", "", "want the name of a model, got %q", a.Model)
	}
	return checkEnv(l, key+".env", a.Env)
}

// dropModels leaves a role's models out that were meant for another agent: those of a
// file, once a flag gives the role to an agent of another provider. What was
// written beside the scripted agent was meant for whoever comes in its place.
func dropModels(l *Loaded, before PerRole) {
	for _, r := range []struct {
		role, was, now string
		models         *[]string
	}{
		{"builder", before.Builder, l.Agent.Builder, &l.Models.Builder},
		{"verifier", before.Verifier, l.Agent.Verifier, &l.Models.Verifier},
	} {
		if r.was == r.now || r.was == scripted || r.now == scripted || len(*r.models) == 0 {
			continue
		}
		if from := l.source("models." + r.role); from.Line > 0 {
			l.Warnings = append(l.Warnings, fmt.Sprintf("models.%s is for %s and not used: %s takes its own default (%s)", r.role, r.was, r.now, from))
			*r.models = nil
			delete(l.Sources, "models."+r.role)
		}
	}
}
