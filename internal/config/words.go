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
	s := time.Duration(d).String()
	if short, cut := strings.CutSuffix(s, "m0s"); cut {
		s = short + "m"
	}
	if short, cut := strings.CutSuffix(s, "h0m"); cut {
		s = short + "h"
	}
	return []byte(s), nil
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

// units are the letters of a Size, the largest first.
var units = []struct {
	letter string
	bytes  Size
}{{"t", 1 << 40}, {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}}

// UnmarshalText reads 512m, 4g, 100k, 1t or a number of bytes.
func (s *Size) UnmarshalText(text []byte) error {
	digits, factor := strings.ToLower(string(text)), Size(1)
	for _, u := range units {
		if short, cut := strings.CutSuffix(digits, u.letter); cut {
			digits, factor = short, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("want a size such as 512m or 4g, got %q", text)
	}
	if Size(n)*factor/factor != Size(n) {
		return fmt.Errorf("the size %q is too large", text)
	}
	*s = Size(n) * factor
	return nil
}

// MarshalText writes the shortest form that means the same number.
func (s Size) MarshalText() ([]byte, error) {
	for _, u := range units {
		if s != 0 && s%u.bytes == 0 {
			return fmt.Appendf(nil, "%d%s", s/u.bytes, u.letter), nil
		}
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// The types below are written in more than one way. They read themselves by the form of
// UnmarshalYAML that keeps the decoder, and with it that unknown keys are refused.

// UnmarshalYAML reads one name for both roles, or {builder: …, verifier: …}.
func (p *PerRole) UnmarshalYAML(read func(any) error) error {
	var name string
	if read(&name) == nil {
		*p = PerRole{Builder: name, Verifier: name}
		return nil
	}
	type parts PerRole
	return read((*parts)(p))
}

// UnmarshalYAML reads the number for failures, or {failed: …, unverified: …}.
func (p *NoProgress) UnmarshalYAML(read func(any) error) error {
	var word string
	if read(&word) == nil {
		n, err := strconv.Atoi(word) // the library would cut a fraction
		if err != nil {
			return fmt.Errorf("loop.no_progress: want a whole number, got %q", word)
		}
		p.Failed = n
		return nil
	}
	type parts NoProgress
	return read((*parts)(p))
}

// UnmarshalYAML reads one model, a list of them, or either for each role.
func (m *Models) UnmarshalYAML(read func(any) error) error {
	var both Chain
	if read(&both) == nil {
		*m = Models{Builder: both, Verifier: both}
		return nil
	}
	type parts Models
	return read((*parts)(m))
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
