package pricelist

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"abl/internal/prices"
	"abl/internal/yamlfile"
)

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

// rates are what is written of one rate; nil is not said.
type rates struct {
	Input      *dollars `yaml:"input"`
	Cached     *dollars `yaml:"cached"`
	CacheWrite *dollars `yaml:"cache_write"`
	Output     *dollars `yaml:"output"`
	Thinking   *dollars `yaml:"thinking"`
}

// dollars is the price of a million tokens. The most that is believed is far
// beyond what any model costs: a price for one token is a slip.
type dollars prices.USD

const dearest = 100_000 * prices.Dollar

// UnmarshalText reads a decimal; 0 has to be written to be meant.
func (d *dollars) UnmarshalText(text []byte) error {
	u, err := prices.Parse(string(text))
	if err != nil || u > dearest {
		return fmt.Errorf("want US dollars for a million tokens, such as 1.25, got %q", text)
	}
	*d = dollars(u)
	return nil
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

// rate fills in what is not said: a prompt's parts cost what the prompt does,
// thoughts what the answer does.
func (r rates) rate() (prices.Rate, error) {
	switch {
	case r.Input == nil:
		return prices.Rate{}, errors.New("it lacks input, the price of a million prompt tokens")
	case r.Output == nil:
		return prices.Rate{}, errors.New("it lacks output, the price of a million answer tokens")
	}
	usd := func(d, instead *dollars) prices.USD { return prices.USD(*cmp.Or(d, instead)) }
	return prices.Rate{
		Input: prices.USD(*r.Input), Cached: usd(r.Cached, r.Input), CacheWrite: usd(r.CacheWrite, r.Input),
		Output: prices.USD(*r.Output), Thinking: usd(r.Thinking, r.Output),
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
