package pricelist

import (
	"errors"
	"fmt"
	"time"

	"abl/internal/yamlfile"
	"abl/orchestrator/prices"
)

// written is a price as a file has it.
type written struct {
	From       day       `yaml:"from"`
	Input      *dollars  `yaml:"input"`
	Cached     *dollars  `yaml:"cached"`
	CacheWrite *dollars  `yaml:"cache_write"`
	Output     *dollars  `yaml:"output"`
	Thinking   *dollars  `yaml:"thinking"`
	Long       []further `yaml:"long"`
}

// further is the rate of long prompts.
type further struct {
	Above      int64    `yaml:"above"`
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

// UnmarshalYAML reads a decimal; 0 has to be written to be meant.
func (d *dollars) UnmarshalYAML(n *yamlfile.Node) error {
	return yamlfile.Text(n, func(text []byte) error {
		u, err := prices.Parse(string(text))
		if err != nil || u > dearest {
			return fmt.Errorf("want US dollars for a million tokens, such as 1.25, got %q", text)
		}
		*d = dollars(u)
		return nil
	})
}

// price checks what is written and fills in what follows from it.
func (w written) price() (prices.Price, error) {
	r, err := rate(w.Input, w.Cached, w.CacheWrite, w.Output, w.Thinking)
	p := prices.Price{Rate: r}
	above := int64(0)
	for _, l := range w.Long {
		if l.Above <= above {
			return p, errors.New("long: each entry needs above, a number of tokens more than that of the one before")
		}
		above = l.Above
		r, lerr := rate(l.Input, l.Cached, l.CacheWrite, l.Output, l.Thinking)
		if lerr != nil && err == nil {
			err = fmt.Errorf("long: %w", lerr)
		}
		p.Long = append(p.Long, prices.Tier{Above: l.Above, Rate: r})
	}
	return p, err
}

// rate fills in what is not said: a prompt's parts cost what the prompt does,
// thoughts what the answer does.
func rate(input, cached, write, output, thinking *dollars) (prices.Rate, error) {
	switch {
	case input == nil:
		return prices.Rate{}, errors.New("it lacks input, the price of a million prompt tokens")
	case output == nil:
		return prices.Rate{}, errors.New("it lacks output, the price of a million answer tokens")
	}
	or := func(d, instead *dollars) prices.USD {
		if d == nil {
			d = instead
		}
		return prices.USD(*d)
	}
	return prices.Rate{
		Input: prices.USD(*input), Cached: or(cached, input), CacheWrite: or(write, input), Output: prices.USD(*output), Thinking: or(thinking, output),
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
