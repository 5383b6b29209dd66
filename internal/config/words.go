package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as 30m.
type Duration time.Duration

// UnmarshalText reads 90s, 30m, 4h or 1h30m.
func (d *Duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("want a time such as 90s, 30m or 4h, got %q", text)
	}
	*d = Duration(t)
	return nil
}

// MarshalText writes 30m rather than 30m0s.
func (d Duration) MarshalText() ([]byte, error) {
	short := strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(time.Duration(d).String())
	return []byte(short), nil
}

// Effort is a time written as 30m, or as 3x: so many times what something takes.
type Effort struct {
	Times float64
	Time  Duration
}

// UnmarshalText reads 3x, 0.5x, 90s, 30m or 0.
func (e *Effort) UnmarshalText(text []byte) error {
	*e = Effort{}
	var err error
	if times, ok := strings.CutSuffix(string(text), "x"); ok {
		e.Times, err = strconv.ParseFloat(times, 64)
	} else {
		err = e.Time.UnmarshalText(text)
	}
	if err != nil || e.Time < 0 || !(e.Times >= 0 && e.Times <= 1e6) {
		const want = "a time such as 90s or 30m, 3x for three times what the tests take, or 0"
		return fmt.Errorf("want %s, got %q", want, text)
	}
	return nil
}

// MarshalText writes what is read.
func (e Effort) MarshalText() ([]byte, error) {
	if e.Times > 0 {
		return append(strconv.AppendFloat(nil, e.Times, 'g', -1, 64), 'x'), nil
	}
	return e.Time.MarshalText()
}

// leastEffort is what a multiple comes to at the least: of next to nothing it is nothing.
const leastEffort = 5 * time.Second

// Of is the time that it comes to for what took so long.
func (e Effort) Of(took time.Duration) time.Duration {
	if e.Times > 0 {
		return max(time.Duration(e.Times*float64(took)), leastEffort)
	}
	return time.Duration(e.Time)
}

// Size is a number of bytes written as 512m, 4g (powers of 1024) or a plain number.
type Size int64

// units are the letters of a Size, each 1024 times the one before.
const units = "kmgt"

// UnmarshalText reads 512m, 4g, 100k, 1t or a number of bytes.
func (s *Size) UnmarshalText(text []byte) error {
	digits, shift := strings.ToLower(string(text)), 0
	for i, unit := range units {
		if short, cut := strings.CutSuffix(digits, string(unit)); cut {
			digits, shift = short, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n<<shift>>shift != n {
		return fmt.Errorf("want a size such as 512m or 4g, got %q", text)
	}
	*s = Size(n << shift)
	return nil
}

// MarshalText writes the shortest form that means the same number.
func (s Size) MarshalText() ([]byte, error) {
	number, unit := int64(s), ""
	for i := 0; i < len(units) && number != 0 && number%1024 == 0; i++ {
		number, unit = number/1024, units[i:i+1]
	}
	return fmt.Appendf(nil, "%d%s", number, unit), nil
}

// The types below are written in more than one way. They read themselves by the form of
// UnmarshalYAML that keeps the decoder, and with it that unknown keys are refused.

// Both is what each role has: one for both, or {builder: …, verifier: …}.
type Both[T any] struct {
	Builder  T `yaml:"builder"`
	Verifier T `yaml:"verifier"`
}

// UnmarshalYAML reads both forms.
func (b *Both[T]) UnmarshalYAML(read func(any) error) error {
	var one T
	if read(&one) == nil {
		*b = Both[T]{Builder: one, Verifier: one}
		return nil
	}
	type parts Both[T]
	return read((*parts)(b))
}

// UnmarshalYAML reads the number for failures, or {failed: …, unverified: …}.
func (p *NoProgress) UnmarshalYAML(read func(any) error) error {
	var word string
	if read(&word) == nil {
		n, err := strconv.Atoi(word) // the library would cut a fraction
		if err != nil {
			return fmt.Errorf("want a whole number, got %q", word)
		}
		p.Failed = n
		return nil
	}
	type parts NoProgress
	return read((*parts)(p))
}

// UnmarshalYAML reads manual or auto, or {when: …, prefix: …, author: …, signoff: …}.
func (p *Publish) UnmarshalYAML(read func(any) error) error {
	var when string
	if read(&when) == nil {
		p.When = when
		return nil
	}
	type parts Publish
	return read((*parts)(p))
}

// UnmarshalYAML reads the name of a remote, or {name: …, lease: …}.
func (r *Remote) UnmarshalYAML(read func(any) error) error {
	var name string
	if read(&name) == nil {
		r.Name = name
		return nil
	}
	type parts Remote
	return read((*parts)(r))
}

// Chain is a fallback chain; one name is a chain of one. Commas part the names
// in a variable or a flag, where a list cannot be written.
type Chain []string

// UnmarshalYAML reads both forms.
func (c *Chain) UnmarshalYAML(read func(any) error) error {
	var text string
	if read(&text) != nil {
		return read((*[]string)(c))
	}
	*c = nil
	for name := range strings.SplitSeq(text, ",") {
		*c = append(*c, strings.TrimSpace(name))
	}
	return nil
}

// Reachable is an entry of network.allow: a word for a registry, or a host with a port or without.
// A host that may have private addresses is followed by " private", which is how a variable has it.
type Reachable string

const mayBePrivate = " private"

// UnmarshalYAML reads the text, or {host: …, private: true}.
func (r *Reachable) UnmarshalYAML(read func(any) error) error {
	var text string
	if read(&text) == nil {
		*r = Reachable(text)
		return nil
	}
	var parts struct {
		Host    string `yaml:"host"`
		Private bool   `yaml:"private"`
	}
	if err := read(&parts); err != nil {
		return err
	}
	if *r = Reachable(parts.Host); parts.Private {
		*r += mayBePrivate
	}
	return nil
}

// Private reports whether the host may have private addresses.
func (r Reachable) Private() bool { return strings.HasSuffix(string(r), mayBePrivate) }

// Name is the entry without that.
func (r Reachable) Name() string { return strings.TrimSuffix(string(r), mayBePrivate) }

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
	if err := read(&p.Own); err != nil {
		return err
	}
	for name := range byKey(p.Own) {
		if !modelName(name) {
			return fmt.Errorf("want the name of a model, got %q", name)
		}
	}
	return nil
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
