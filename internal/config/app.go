package config

import (
	"regexp"
	"slices"
	"strings"
)

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	serviceName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

func checkApp(l *Loaded) error {
	app := l.App
	switch {
	case app == nil:
		return nil
	case strings.TrimSpace(app.Command) == "":
		return l.mistake("app.command", "say how the app starts, or leave the whole section out", "is missing")
	case !isPort(app.Port):
		return l.mistake("app.port", "", "want 1 to 65535, got %d", app.Port)
	case app.Ready.Port != 0:
		return l.mistake("app.ready.port", "leave it out", "the app is asked at app.port")
	case !slices.Contains([]string{"auto", "overlay", "tar"}, app.Copy):
		return l.mistake("app.copy", "", "want auto, overlay or tar, got %q", app.Copy)
	}
	if err := checkReady(l, "app.ready", app.Ready); err != nil {
		return err
	}
	if err := checkEnv(l, "app.env", app.Env); err != nil {
		return err
	}
	for name, service := range byKey(app.Services) {
		if err := checkService(l, "app.services."+name, name, service); err != nil {
			return err
		}
	}
	return nil
}

func checkService(l *Loaded, key, name string, s Service) error {
	switch {
	case !serviceName.MatchString(name):
		return l.mistake(key, "", "%q is not a name for a service; want lower-case letters, digits and -", name)
	case name == "app":
		return l.mistake(key, "choose another name", `the name "app" is the app's own`)
	case s.Image == "" || strings.ContainsFunc(s.Image, notPrintable):
		return l.mistake(key+".image", "", "want the name of an image, got %q", s.Image)
	case !isPort(s.Ready.Port):
		return l.mistake(key+".ready.port", "", "want 1 to 65535, got %d", s.Ready.Port)
	}
	if err := checkReady(l, key+".ready", s.Ready); err != nil {
		return err
	}
	return checkEnv(l, key+".env", s.Env)
}

func checkReady(l *Loaded, key string, r Ready) error {
	if r.Path != "" && (r.Path[0] != '/' || strings.ContainsFunc(r.Path, notPrintable)) {
		return l.mistake(key+".path", "", "want a path such as /health, got %q", r.Path)
	}
	if r.Timeout <= 0 {
		return l.mistake(key+".timeout", "", "want more than nothing")
	}
	return nil
}

// checkEnv keeps abl's own variables free: an app that can tell that it is
// under test can behave for the test.
func checkEnv(l *Loaded, key string, env map[string]string) error {
	for name, value := range byKey(env) {
		switch {
		case !envName.MatchString(name):
			return l.mistake(key, "", "%q is not a name for a variable", name)
		case strings.HasPrefix(name, envPrefix):
			return l.mistake(key+"."+name, "choose another name", "names with %s are abl's", envPrefix)
		case strings.ContainsRune(value, 0):
			return l.mistake(key+"."+name, "", "a value cannot hold NUL")
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
	given := map[string]string{}
	for own, a := range l.Agents {
		for name, value := range a.Env {
			given["agents."+own+".env."+name] = value
		}
	}
	if l.App != nil {
		for name, value := range l.App.Env {
			given["app.env."+name] = value
		}
		for service, s := range l.App.Services {
			for name, value := range s.Env {
				given["app.services."+service+".env."+name] = value
			}
		}
	}
	return refuse(l, given, secrets)
}

// CheckCommands refuses a command that carries one of the keys: it is run in a
// container, where every process can read it.
func (l *Loaded) CheckCommands(keys map[string]string) error {
	given := map[string]string{}
	if l.App != nil {
		given["app.command"] = l.App.Command
	}
	for name, a := range l.Agents {
		given["agents."+name+".command"] = a.Command
	}
	for table, commands := range map[string]map[string]Command{"builder_commands": l.BuilderCommands, "verifier_commands": l.VerifierCommands} {
		for name, c := range commands {
			given[table+"."+name+".command"] = c.Command
		}
	}
	return refuse(l, given, keys)
}

func refuse(l *Loaded, given, secrets map[string]string) error {
	for key, value := range byKey(given) {
		if secret := carried(value, secrets); secret != "" {
			return l.mistake(key, "use a value made for tests", "holds the secret %s", secret)
		}
	}
	return nil
}

// carried returns the name of the secret that value is or holds, "" for none.
func carried(value string, secrets map[string]string) string {
	for name, secret := range byKey(secrets) {
		if secret != "" && (value == secret || len(secret) >= shortest && strings.Contains(value, secret)) {
			return name
		}
	}
	return ""
}

func isPort(n int) bool { return n >= 1 && n <= 65535 }

func notPrintable(r rune) bool { return r <= ' ' || r == 0x7f }
