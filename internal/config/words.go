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

// TestTime is a time written as 30m, or a multiple of a measured time, written as 3x.
type TestTime struct {
	Times float64
	Time  Duration
}

// UnmarshalText reads 3x, 0.5x, 90s, 30m or 0.
func (e *TestTime) UnmarshalText(text []byte) error {
	*e = TestTime{}
	var err error
	if times, ok := strings.CutSuffix(string(text), "x"); ok {
		e.Times, err = strconv.ParseFloat(times, 64)
	} else {
		err = e.Time.UnmarshalText(text)
	}
	if err != nil || e.Time < 0 || !(e.Times >= 0 && e.Times <= 1e6) {
		const want = "a duration such as 90s or 30m, a multiple of the tests' duration such as 3x, or 0"
		return fmt.Errorf("want %s, got %q", want, text)
	}
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (e TestTime) MarshalText() ([]byte, error) {
	if e.Times > 0 {
		return append(strconv.AppendFloat(nil, e.Times, 'g', -1, 64), 'x'), nil
	}
	return e.Time.MarshalText()
}

// minTestTime is the minimum of a multiple, because a measured time may be close to 0.
const minTestTime = 5 * time.Second

// Of returns the time for a measured time.
func (e TestTime) Of(took time.Duration) time.Duration {
	if e.Times > 0 {
		return max(time.Duration(e.Times*float64(took)), minTestTime)
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

// The types below have several forms. They use the form of UnmarshalYAML that keeps the decoder, so that
// unknown keys are refused.

// Both has a value for each role, written as one value for both, or as {builder: …, verifier: …}.
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
		n, err := strconv.Atoi(word) // the library would truncate a fraction
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

// Chain is a fallback chain, written as a name or a list. In a variable or a flag, commas separate the
// names.
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

// Reachable is an entry of network.allow: the name of a registry, or a host with or without a port. The
// suffix " private" allows private addresses; a variable has the same form.
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
	*r = Reachable(parts.Host)
	if parts.Private {
		*r += mayBePrivate
	}
	return nil
}

// Private reports whether the host may have private addresses.
func (r Reachable) Private() bool { return strings.HasSuffix(string(r), mayBePrivate) }

// Name returns the entry without " private".
func (r Reachable) Name() string { return strings.TrimSuffix(string(r), mayBePrivate) }

// Prices are the prices of models that a project sets, in a file or directly. This package does not check
// their form.
type Prices struct {
	File string         `yaml:"-"` // relative to the project, "" without a file
	Own  map[string]any `yaml:"-"` // by model
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

// MarshalText returns the file, or the models.
func (p Prices) MarshalText() ([]byte, error) {
	if p.File != "" {
		return []byte(p.File), nil
	}
	return []byte(strings.Join(p.Models(), ", ")), nil
}

// Models returns the models with a price in the configuration, sorted.
func (p Prices) Models() []string { return slices.Sorted(maps.Keys(p.Own)) }

// Wrong returns an error about the value of a key, for a check in another package.
func (l *Loaded) Wrong(key, hint string, err error) error { return l.mistake(key, hint, "%v", err) }
