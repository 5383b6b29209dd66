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

// Secrets are what a run takes out of all that it writes, asks and shows: the key that it
// uses, other providers' keys, and what .env keeps secret. Of each only the last two
// characters stay. keys know the keys alone.
func (p Project) Secrets(key string) (all, keys *redact.Redactor) {
	known := []string{key}
	for _, provider := range model.Providers() {
		others, _ := p.keys(provider) // what cannot be read is no secret of this run
		for _, k := range others {
			known = append(known, k.Value)
		}
	}
	secrets, _ := redact.Secrets(p.Env, true)
	keys, _ = redact.New(known...)
	all, _ = redact.New(append(secrets, known...)...)
	return all, keys
}
