// Package pricelist is what models cost by the day: abl's own dated list, what a
// project puts in its place, and the form of both in files.
package pricelist

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"abl/internal/strictyaml"
	"abl/orchestrator/prices"
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
	all := maps.Clone(l.models)
	if all == nil {
		all = map[string][]period{}
	}
	maps.Copy(all, own.models)
	return List{Date: l.Date, models: all}
}

// Of is a list of single prices, without dates.
func Of(models map[string]prices.Price) List {
	t := List{models: map[string][]period{}}
	for name, p := range models {
		t.models[name] = []period{{Price: p}}
	}
	return t
}

// file is the form of a table in a file.
type file struct {
	Date   day                `yaml:"date"`
	Models map[string]entries `yaml:"models"`
}

// Parse reads a table; its mistakes are *strictyaml.Error.
func Parse(name string, data []byte) (List, error) {
	var f file
	if err := strictyaml.Decode(name, data, &f); err != nil {
		return List{}, err
	}
	t := List{Date: f.Date.Time, models: map[string][]period{}}
	for model, list := range f.Models {
		t.models[model] = list
	}
	if len(t.models) == 0 {
		return t, &strictyaml.Error{File: name, Msg: "it has no models", Hint: "models: {NAME: {input: 1.25, output: 10}}, in US dollars for a million tokens"}
	}
	return t, nil
}

// day is a date as 2026-11-22.
type day struct{ time.Time }

func (d *day) UnmarshalText(text []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(text)); err != nil {
		err = fmt.Errorf("want a date such as 2026-11-22, got %q", text)
	}
	return err
}

// entries are the prices of one model: one, or a list by date.
type entries []period

// FromYAML reads both forms.
func (e *entries) FromYAML(n strictyaml.Node) error {
	list := make([]written, 1)
	var err error
	if n.IsList() {
		err = n.Decode(&list)
	} else {
		err = n.Decode(&list[0])
	}
	if err != nil {
		return err
	}
	for i, w := range list {
		p, err := w.price()
		if err != nil {
			return n.Errorf("%v", err)
		}
		if i > 0 && !w.From.After((*e)[i-1].from) {
			return n.Errorf("the dates do not rise: each further price needs a later from")
		}
		*e = append(*e, period{from: w.From.Time, Price: p})
	}
	if len(*e) == 0 {
		return n.Errorf("there is no price")
	}
	return nil
}
