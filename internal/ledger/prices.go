package ledger

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"abl/internal/usage"
	"abl/internal/yamlfile"
)

//go:embed prices.yaml
var embedded []byte

// Prices is a list of the prices of models with their start dates: abl's own list, or that of a project.
type Prices struct {
	Date   time.Time // of the last comparison with the providers' lists
	models map[string][]period
}

// period is a price from a date on.
type period struct {
	from time.Time // zero for no start date
	usage.Price
}

// DefaultPrices returns abl's own list.
func DefaultPrices() (Prices, error) { return ParsePrices("abl's own prices.yaml", embedded) }

// At returns the price of a model at a time, and false if it has none. Names must match exactly,
// because a dated or renamed model may have another price.
func (l Prices) At(model string, when time.Time) (usage.Price, bool) {
	periods := l.models[model]
	for i := len(periods) - 1; i >= 0; i-- {
		if !when.UTC().Before(periods[i].from) {
			return periods[i].Price, true
		}
	}
	return usage.Price{}, false
}

// Cost returns the cost of tokens of a model at a time, and false if it is unknown.
func (l Prices) Cost(model string, when time.Time, c usage.Count) (usage.USD, bool) {
	price, known := l.At(model, when)
	if !known {
		return 0, false
	}
	return price.OfMany(c)
}

// CostOf returns the cost of a row: the cost in the row, or the cost by the prices of its day. A price
// that was added later counts too. It returns false if the cost is unknown.
func (l Prices) CostOf(r Row) (usage.USD, bool) {
	if usd, known := r.Cost(); known || r.Source == Nobody {
		return usd, known
	}
	return l.Cost(r.Model, r.When(), r.Count)
}

// With returns the list with the models of own added or replaced.
func (l Prices) With(own Prices) Prices {
	all := map[string][]period{}
	maps.Copy(all, l.models)
	maps.Copy(all, own.models)
	return Prices{Date: l.Date, models: all}
}

// priceFile is the format of a list.
type priceFile struct {
	Date   day                `yaml:"date"`
	Models map[string]entries `yaml:"models"`
}

// ParsePrices parses a list. It returns a *yamlfile.Error for an invalid one.
func ParsePrices(name string, data []byte) (Prices, error) {
	var f priceFile
	if err := yamlfile.Decode(name, data, &f); err != nil {
		return Prices{}, err
	}
	t := Prices{Date: f.Date.Time, models: map[string][]period{}}
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
		return t, &yamlfile.Error{File: name, Msg: "it has no models",
			Hint: "models: {NAME: {input: 1.25, output: 10}}, in US dollars per million tokens"}
	}
	return t, nil
}

// day is a date such as 2026-11-22.
type day struct{ time.Time }

// UnmarshalText parses the date.
func (d *day) UnmarshalText(text []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(text)); err != nil {
		err = fmt.Errorf("want a date such as 2026-11-22, got %q", text)
	}
	return err
}

// entries are the prices of one model: a single one, or a list by date.
type entries []written

// UnmarshalYAML accepts both forms.
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

// periods returns the prices with their start dates.
func (e entries) periods() (all []period, err error) {
	for i, w := range e {
		p, err := w.price()
		if err != nil {
			return nil, err
		}
		if i > 0 && !w.From.After(all[i-1].from) {
			return nil, errors.New("the dates are not ascending: each price needs a later from than the one before")
		}
		all = append(all, period{from: w.From.Time, Price: p})
	}
	if len(all) == 0 {
		return nil, errors.New("the price is missing")
	}
	return all, nil
}

// written is a price in a file.
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

// rates are the prices of a rate in US dollars per million tokens. nil means not given, because 0
// must be explicit.
type rates struct {
	Input      *usage.USD `yaml:"input"`
	Cached     *usage.USD `yaml:"cached"`
	CacheWrite *usage.USD `yaml:"cache_write"`
	WriteHour  *usage.USD `yaml:"cache_write_1h"`
	Output     *usage.USD `yaml:"output"`
	Thinking   *usage.USD `yaml:"thinking"`
}

// price checks the price and fills in defaults.
func (w written) price() (p usage.Price, err error) {
	if p.Rate, err = w.rate(); err != nil {
		return p, err
	}
	above := int64(0)
	for _, l := range w.Long {
		if l.Above <= above {
			return p, errors.New("long: each entry needs above, with more tokens than the entry before")
		}
		above = l.Above
		r, err := l.rate()
		if err != nil {
			return p, fmt.Errorf("long: %w", err)
		}
		p.Long = append(p.Long, usage.Tier{Above: l.Above, Rate: r})
	}
	return p, nil
}

// hourFactor is the ratio of Anthropic's price of cache writes for an hour to that of prompt
// tokens, for all models.
const hourFactor = 2

// rate fills in missing rates. Parts of the prompt have the rate of the prompt, except for cache
// writes for an hour, and thoughts have the rate of the response.
func (r rates) rate() (usage.Rate, error) {
	switch {
	case r.Input == nil:
		return usage.Rate{}, errors.New("input is missing, the price of a million prompt tokens")
	case r.Output == nil:
		return usage.Rate{}, errors.New("output is missing, the price of a million response tokens")
	}
	return usage.Rate{
		Input:          *r.Input,
		Cached:         *cmp.Or(r.Cached, r.Input),
		CacheWrite:     *cmp.Or(r.CacheWrite, r.Input),
		CacheWriteHour: *cmp.Or(r.WriteHour, new(hourFactor**r.Input)),
		Output:         *r.Output,
		Thinking:       *cmp.Or(r.Thinking, r.Output),
	}, nil
}

// OwnPrice parses the price of one model in a project's settings.
func OwnPrice(model string, value any) (Prices, error) {
	data, err := yamlfile.Marshal(map[string]any{"models": map[string]any{model: value}})
	if err != nil {
		return Prices{}, err
	}
	t, err := ParsePrices("prices", data)
	var mistake *yamlfile.Error
	if errors.As(err, &mistake) { // its line number refers to this temporary text
		return t, errors.New(mistake.Msg)
	}
	return t, err
}

// Age returns the number of days since the last comparison.
func (l Prices) Age(now time.Time) int { return int(now.Sub(l.Date).Hours() / 24) }
