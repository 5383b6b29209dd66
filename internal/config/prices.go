package config

import (
	"maps"
	"slices"
	"strings"
)

// Prices are what a project says that models cost: a file, or the models
// themselves. What a price looks like is not known here.
type Prices struct {
	File string         `yaml:"-"` // relative to the project, "" when they are no file's
	Own  map[string]any `yaml:"-"` // by model, what stands there
}

// UnmarshalYAML reads prices.yaml, or {model: {input: 1.25, output: 10}}.
func (p *Prices) UnmarshalYAML(read func(any) error) error {
	*p = Prices{}
	if read(&p.File) == nil {
		return nil
	}
	return read(&p.Own)
}

// MarshalText names the file, or the models.
func (p Prices) MarshalText() ([]byte, error) {
	if p.File != "" {
		return []byte(p.File), nil
	}
	return []byte(strings.Join(p.Models(), ", ")), nil
}

// Models are those that the configuration itself gives a price, sorted.
func (p Prices) Models() []string { return slices.Sorted(maps.Keys(p.Own)) }

// Wrong is a mistake in the value of a key that only another package can see.
func (l *Loaded) Wrong(key, hint string, err error) error { return l.mistake(key, hint, "%v", err) }
