package codecommit

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/wording"
	"abl/roles/model"
)

// Key is a provider's key. Where says where it was found, since a person may have
// several.
type Key struct {
	Value, Where string
	Personal     bool // of the environment, not of the project
}

// provider is who answers for a model, of those that are known and the project's own.
func (p Project) provider(name string) (string, error) {
	known := model.Known()
	if p.Models != "" {
		data, err := hostfs.Read(p.Root, p.Models, mostText)
		if err == nil {
			known, err = known.With(p.Models, data)
		}
		if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return "", problem("", "%w", err)
		}
	}
	if provider := known[name]; provider != "" {
		return provider, nil
	}
	do := ""
	if near := wording.Near(name, known.Names()); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	} else if p.Models != "" {
		do = "a line in " + p.Models + " adds one: its name and its provider, " + strings.Join(model.Providers(), " or ")
	}
	return "", problem(do, "--model must be %s, not %q", strings.Join(known.Names(), " or "), name)
}

// keyIn is what a provider's key file holds, "" for none.
func (p Project) keyIn(provider string) (string, error) {
	if p.Keys == "" {
		return "", nil
	}
	data, err := hostfs.Read(p.Root, fmt.Sprintf(p.Keys, provider), 64<<10)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return "", problem("", "%w", err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff")), nil
}

// key looks for a provider's key: in its file, then in the environment, then in .env.
func (p Project) key(name, provider string) (Key, error) {
	value, err := p.keyIn(provider)
	if err != nil {
		return Key{}, err
	}
	variable := model.KeyVar(provider)
	do := "put it into " + variable + " in the environment or in .env"
	places := []Key{{os.Getenv(variable), variable + " of the environment", true}, {p.Env[variable], variable + " in .env", false}}
	if p.Keys != "" {
		file := fmt.Sprintf(p.Keys, provider)
		do += ", or into " + file
		places = append([]Key{{value, file, false}}, places...)
	}
	for _, k := range places {
		k.Value = strings.TrimSpace(k.Value)
		odd := strings.ContainsFunc(k.Value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
		switch {
		case k.Value == "":
			continue
		case odd || len(k.Value) < redact.Shortest:
			return k, problem("", "what %s holds is no key: it is too short, or has blanks, line ends or other characters that no key has", k.Where)
		}
		return k, nil
	}
	return Key{}, problem(do, "cannot find a key for %s", name)
}

// Client asks a model.
func (p Project) Client(name string, c model.Config) (client *model.Client, key Key, err error) {
	if c.Provider, err = p.provider(name); err == nil {
		key, err = p.key(name, c.Provider)
	}
	if err != nil {
		return nil, key, err
	}
	c.Key, c.Base = key.Value, os.Getenv(model.BaseVar(c.Provider))
	if c.Base == "" && !key.Personal {
		c.Base = p.Env[model.BaseVar(c.Provider)] // where a project wants its own key to go; the person's own key goes nowhere on its word
	}
	if client, err = model.New(name, c); err != nil {
		err = problem("", "%w", err)
	}
	return client, key, err
}

// Secrets are the provider's key, other providers' keys and what .env keeps secret. Of
// each only the last two characters are shown.
type Secrets struct{ All, keys *redact.Redactor }

// Secrets are those of the project, with the key that a run uses.
func (p Project) Secrets(key string) (s Secrets) {
	keys := []string{key}
	for _, provider := range model.Providers() {
		value, _ := p.keyIn(provider)
		keys = append(keys, value, os.Getenv(model.KeyVar(provider)), p.Env[model.KeyVar(provider)])
	}
	s.keys, _ = redact.New(keys...)
	secrets, _ := redact.Secrets(p.Env, true)
	s.All, _ = redact.New(append(secrets, keys...)...)
	return s
}

// Clean takes the secrets out of all that is logged or asked.
func (s Secrets) Clean(text string) string { return s.All.String(text) }

// Hold says whether a text holds a provider's key, in whatever spelling.
func (s Secrets) Hold(text string) bool { return s.keys.Holds([]byte(text)) }
