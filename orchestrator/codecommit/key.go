package codecommit

import (
	"errors"
	"fmt"
	"os"
	"slices"
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

// keys are those that there are for a provider, in the order in which they count: in its
// file, in the environment, in .env.
func (p Project) keys(provider string) (all []Key, err error) {
	if p.Keys != "" {
		file := fmt.Sprintf(p.Keys, provider)
		data, rerr := hostfs.Read(p.Root, file, 64<<10)
		if rerr != nil && !errors.Is(rerr, hostfs.ErrAbsent) {
			err = problem("", "%w", rerr)
		}
		all = []Key{{strings.TrimPrefix(string(data), "\ufeff"), file, false}}
	}
	variable := model.KeyVar(provider)
	all = append(all, Key{os.Getenv(variable), variable + " of the environment", true}, Key{p.Env[variable], variable + " in .env", false})
	for i := range all {
		all[i].Value = strings.TrimSpace(all[i].Value)
	}
	return slices.DeleteFunc(all, func(k Key) bool { return k.Value == "" }), err
}

// key is the one that a model is asked with.
func (p Project) key(name, provider string) (Key, error) {
	all, err := p.keys(provider)
	if err != nil {
		return Key{}, err
	}
	if len(all) == 0 {
		do := "put it into " + model.KeyVar(provider) + " in the environment or in .env"
		if p.Keys != "" {
			do += ", or into " + fmt.Sprintf(p.Keys, provider)
		}
		return Key{}, problem(do, "cannot find a key for %s", name)
	}
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if k := all[0]; len(k.Value) < redact.Shortest || strings.ContainsFunc(k.Value, odd) {
		return k, problem("", "what %s holds is no key: it is too short, or has blanks, line ends or other characters that no key has", k.Where)
	}
	return all[0], nil
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
		all, _ := p.keys(provider) // what cannot be read is no secret of this run
		for _, k := range all {
			keys = append(keys, k.Value)
		}
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
