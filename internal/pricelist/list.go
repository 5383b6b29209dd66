// Package pricelist knows what models cost by the day, from abl's own dated list and what a
// project puts in its place. No file is read here. It is not internal/prices, which the
// gateway computes with: what holds the keys does not read YAML.
package pricelist

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"abl/internal/prices"
	"abl/internal/yamlfile"
)

//go:embed prices.yaml
var embedded []byte

// List is the prices of models, each with the days from which on it holds.
type List struct {
	Date   time.Time // on which it was last compared with the providers' lists
	models map[string][]period
}

// period is a price from a day on.
type period struct {
	from time.Time // zero is ever since
	prices.Price
}

// Default is abl's own list.
func Default() (List, error) { return Parse("abl's own prices.yaml", embedded) }

// At is the price of a model at a time; false when there is none. Names are taken
// as they are: a dated or a renamed model may cost something else.
func (l List) At(model string, when time.Time) (prices.Price, bool) {
	periods := l.models[model]
	for i := len(periods) - 1; i >= 0; i-- {
		if !when.UTC().Before(periods[i].from) {
			return periods[i].Price, true
		}
	}
	return prices.Price{}, false
}

// Models are the names that the list has, sorted.
func (l List) Models() []string { return slices.Sorted(maps.Keys(l.models)) }

// With is the list with the models of another in place of its own.
func (l List) With(own List) List {
	all := map[string][]period{}
	maps.Copy(all, l.models)
	maps.Copy(all, own.models)
	return List{Date: l.Date, models: all}
}

// file is the form of a table in a file.
type file struct {
	Date   day                `yaml:"date"`
	Models map[string]entries `yaml:"models"`
}

// Parse reads a table; its mistakes are *yamlfile.Error.
func Parse(name string, data []byte) (List, error) {
	var f file
	if err := yamlfile.Decode(name, data, &f); err != nil {
		return List{}, err
	}
	t := List{Date: f.Date.Time, models: map[string][]period{}}
	for _, model := range slices.Sorted(maps.Keys(f.Models)) {
		periods, err := f.Models[model].periods()
		if err != nil {
			mistake := yamlfile.At(name, data, "models."+model, err)
			mistake.Msg = err.Error()
			return t, mistake
		}
		t.models[model] = periods
	}
	if len(t.models) == 0 {
		return t, &yamlfile.Error{File: name, Msg: "it has no models", Hint: "models: {NAME: {input: 1.25, output: 10}}, in US dollars for a million tokens"}
	}
	return t, nil
}

// day is a date as 2026-11-22.
type day struct{ time.Time }

// UnmarshalText reads it.
func (d *day) UnmarshalText(text []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(text)); err != nil {
		err = fmt.Errorf("want a date such as 2026-11-22, got %q", text)
	}
	return err
}

// entries are the prices of one model: one, or a list by date.
type entries []written

// UnmarshalYAML reads both forms.
func (e *entries) UnmarshalYAML(read func(any) error) error {
	var one written
	var form any
	if err := read(&form); err != nil {
		return err
	}
	if _, list := form.([]any); list {
		return read((*[]written)(e))
	}
	err := read(&one)
	*e = entries{one}
	return err
}

// periods are the prices, each from its day on.
func (e entries) periods() (all []period, err error) {
	for i, w := range e {
		p, err := w.price()
		if err != nil {
			return nil, err
		}
		if i > 0 && !w.From.After(all[i-1].from) {
			return nil, errors.New("the dates do not rise: each further price needs a later from")
		}
		all = append(all, period{from: w.From.Time, Price: p})
	}
	if len(all) == 0 {
		return nil, errors.New("there is no price")
	}
	return all, nil
}

// written is a price as a file has it.
type written struct {
	From  day `yaml:"from"`
	rates `yaml:",inline"`
	Long  []further `yaml:"long"`
}

// further is the rate of long prompts.
type further struct {
	Above int64 `yaml:"above"`
	rates `yaml:",inline"`
}

// rates are what is written of one rate, in US dollars for a million tokens; nil is not said,
// for 0 has to be written to be meant.
type rates struct {
	Input      *prices.USD `yaml:"input"`
	Cached     *prices.USD `yaml:"cached"`
	CacheWrite *prices.USD `yaml:"cache_write"`
	WriteHour  *prices.USD `yaml:"cache_write_1h"`
	Output     *prices.USD `yaml:"output"`
	Thinking   *prices.USD `yaml:"thinking"`
}

// price checks what is written and fills in what follows from it.
func (w written) price() (p prices.Price, err error) {
	if p.Rate, err = w.rate(); err != nil {
		return p, err
	}
	above := int64(0)
	for _, l := range w.Long {
		if l.Above <= above {
			return p, errors.New("long: each entry needs above, a number of tokens more than that of the one before")
		}
		above = l.Above
		r, err := l.rate()
		if err != nil {
			return p, fmt.Errorf("long: %w", err)
		}
		p.Long = append(p.Long, prices.Tier{Above: l.Above, Rate: r})
	}
	return p, nil
}

// hourFactor is how much more than other prompt tokens Anthropic charges for tokens that are
// written to the cache for an hour, with every model.
const hourFactor = 2

// rate fills in the rates that are not given: a prompt's parts cost as the prompt, except for
// cache writes of an hour, and thoughts cost as the answer.
func (r rates) rate() (prices.Rate, error) {
	switch {
	case r.Input == nil:
		return prices.Rate{}, errors.New("it lacks input, the price of a million prompt tokens")
	case r.Output == nil:
		return prices.Rate{}, errors.New("it lacks output, the price of a million answer tokens")
	}
	return prices.Rate{
		Input:          *r.Input,
		Cached:         *cmp.Or(r.Cached, r.Input),
		CacheWrite:     *cmp.Or(r.CacheWrite, r.Input),
		CacheWriteHour: *cmp.Or(r.WriteHour, new(hourFactor**r.Input)),
		Output:         *r.Output,
		Thinking:       *cmp.Or(r.Thinking, r.Output),
	}, nil
}

// Own reads the price that a project's settings give for one model: what stands
// there under its name.
func Own(model string, value any) (List, error) {
	data, err := yamlfile.Marshal(map[string]any{"models": map[string]any{model: value}})
	if err != nil {
		return List{}, err
	}
	t, err := Parse("prices", data)
	var mistake *yamlfile.Error
	if errors.As(err, &mistake) { // its line is one of this text, which nobody has seen
		return t, errors.New(mistake.Msg)
	}
	return t, err
}

// Age is how long ago a table was compared, in whole days.
func (l List) Age(now time.Time) int { return int(now.Sub(l.Date).Hours() / 24) }
