package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/internal/nearest"
	"abl/internal/redact"
	"abl/roles/model"
)

// environment ends the name of a key's origin that is the person's, not the project's.
const environment = " of the environment"

// dotEnv ends the name of one that is the project's.
const dotEnv = " in .env"

// findKey looks for the provider's key: in its file, then in the environment,
// then in .env. It says where it found one, since a person may have several.
func (s *session) findKey(name, provider string) (key, from string, err error) {
	const most = 64 << 10
	file, variable := s.profile.Keys[provider], model.KeyVar(provider)
	data, err := []byte(nil), hostfs.ErrAbsent
	if file != "" {
		data, err = hostfs.Read(s.root, file, most)
	}
	switch {
	case err == nil:
		key, from = string(data), file
	case !errors.Is(err, hostfs.ErrAbsent):
		return "", "", exit.With(exit.Usage, err, "")
	case os.Getenv(variable) != "":
		key, from = os.Getenv(variable), variable+environment
	default:
		key, from = s.env[variable], variable+dotEnv
	}
	key = strings.TrimSpace(strings.TrimPrefix(key, "\ufeff"))
	switch {
	case key == "" && data != nil:
		return "", "", exit.With(exit.Usage, fmt.Errorf("%s is empty", file), "put the key into it, or remove it to use "+variable)
	case key == "":
		return "", "", exit.With(exit.Usage, fmt.Errorf("cannot find a key for %s", name), fmt.Sprintf("put it into %s in the environment or in .env%s", variable, orFile(file)))
	case strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r > unicode.MaxASCII }):
		return "", "", exit.With(exit.Usage, fmt.Errorf("what %s holds is no key: it has blanks, line ends or other characters that no key has", from), "")
	}
	s.key = key
	s.in.Outlet.Hide(key)
	return key, from, nil
}

func orFile(file string) string {
	if file == "" {
		return ""
	}
	return ", or into " + file
}

// cleaner takes the key, other keys and what .env keeps secret out of all that is
// logged or asked. Of each only the last two characters stay.
func (s *session) cleaner() func(string) string {
	var keys []string
	for _, provider := range model.Providers() {
		keys = append(keys, os.Getenv(model.KeyVar(provider)), s.env[model.KeyVar(provider)])
		if file := s.profile.Keys[provider]; file == "" {
			continue
		} else if data, err := hostfs.Read(s.root, file, 64<<10); err == nil {
			keys = append(keys, strings.TrimSpace(string(data)))
		}
	}
	keys = append(keys, s.key)
	s.keys, _ = redact.New(keys...)
	secrets, _ := redact.Secrets(s.env, true)
	known, _ := redact.New(append(secrets, keys...)...)
	s.known = known
	if s.key == "" || len(s.key) >= redact.Shortest {
		return known.String
	}
	short := strings.NewReplacer(s.key, "[secret]") // too short to be sure of, but the person's key
	return func(text string) string { return short.Replace(known.String(text)) }
}

// holdsKey says whether a text holds a provider's key, in whatever spelling.
func (s *session) holdsKey(text string) bool { return s.keys.String(text) != text }

// model is the one that the person chose, and its provider.
func (s *session) model() (name, provider string, err error) {
	const most = 64 << 10
	known := model.Known()
	if file := s.profile.Models; file != "" {
		data, err := hostfs.Read(s.root, file, most)
		if err == nil {
			known, err = known.With(file, data)
		}
		if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return "", "", exit.With(exit.Usage, err, "")
		}
	}
	name = s.in.String("model")
	if provider = known[name]; provider != "" {
		return name, provider, nil
	}
	do := ""
	if near := nearest.Word(name, known.Names()); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	} else if s.profile.Models != "" {
		do = "a line in " + s.profile.Models + " adds one: its name and its provider, " + strings.Join(model.Providers(), " or ")
	}
	return "", "", exit.With(exit.Usage, fmt.Errorf("--model must be %s, not %q", strings.Join(known.Names(), " or "), name), do)
}

// client asks the model that the person chose.
func (s *session) client(ctx context.Context, sent func([]byte) error) (*model.Client, error) {
	name, provider, err := s.model()
	if err != nil {
		return nil, err
	}
	key, from, err := s.findKey(name, provider)
	if err != nil {
		return nil, err
	}
	s.say(fmt.Sprintf("%s, with the key of %s", name, from))
	if strings.HasSuffix(from, dotEnv) {
		if err := s.warnKeys(ctx, ".env"); err != nil {
			return nil, err
		}
	}
	retries, err := s.in.Int("retries")
	if err != nil {
		return nil, err
	}
	if retries < 0 {
		return nil, cli.Usagef("--retries must not be negative")
	}
	patience, err := duration(s.in, "timeout")
	if err != nil {
		return nil, err
	}
	variable := model.BaseVar(provider)
	base := os.Getenv(variable)
	if base == "" && !strings.HasSuffix(from, environment) {
		base = s.env[variable] // where a project wants its own key to go; the person's own key goes nowhere on its word
	}
	c, err := model.New(name, model.Config{
		Provider: provider, Key: key, Base: base, Retries: retries, Patience: patience, Sent: sent,
		Trouble: func(err error, wait time.Duration) { s.say(fmt.Sprintf("%v; trying again in %s", err, wait)) },
	})
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	return c, nil
}
