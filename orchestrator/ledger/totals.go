package ledger

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/orchestrator/prices"
)

// Counter adds up numbers that may be unknown, and never takes one for a zero.
type Counter struct {
	Known   int64 `json:"known"`   // sum of those that were told
	Missing int   `json:"missing"` // rows that did not tell
}

func (c *Counter) add(n *int64) {
	switch {
	case n == nil:
		c.Missing++
	case *n > math.MaxInt64-c.Known: // no honest count comes here
		c.Known = math.MaxInt64
	default:
		c.Known += *n
	}
}

// String shows what is known, and a question mark where something is missing.
func (c Counter) String() string {
	switch {
	case c.Missing == 0:
		return strconv.FormatInt(c.Known, 10)
	case c.Known == 0:
		return "?"
	}
	return strconv.FormatInt(c.Known, 10) + "+?"
}

// Sum is what a number of rows add up to, in tokens.
type Sum struct {
	Rows       int     `json:"rows"`
	Unknown    int     `json:"unknown"` // rows that tell no count at all
	Input      Counter `json:"input"`
	Candidates Counter `json:"candidates"`
	Cached     Counter `json:"cached"`
	Thoughts   Counter `json:"thoughts"`
	Tool       Counter `json:"tool"`
	Total      Counter `json:"total"`
	Cost       Money   `json:"cost_usd"`
	Share      *Share  `json:"cached_share,omitempty"` // of the input; absent where no input was told
}

// Money adds up what may be unknown, in US dollars.
type Money struct {
	Known   prices.USD `json:"known"`   // sum of what has a price
	Missing int        `json:"missing"` // rows without one
}

// String shows what is known, and a question mark where something is missing.
func (m Money) String() string {
	switch {
	case m.Missing == 0:
		return m.Known.Short()
	case m.Known == 0:
		return "?"
	}
	return m.Known.Short() + "+?"
}

// Share is how much of the input came from the provider's cache, from 0 to 1.
type Share struct {
	Known   float64 `json:"known"`
	AtLeast bool    `json:"at_least"` // some row did not tell
}

// String shows it in percent.
func (s *Share) String() string {
	if s == nil {
		return "-"
	}
	if s.AtLeast && s.Known == 0 {
		return "?"
	}
	text := strconv.FormatFloat(100*s.Known, 'f', 0, 64) + "%"
	if s.AtLeast {
		text += "+?"
	}
	return text
}

// shared is the sum with its share.
func (s Sum) shared() Sum {
	if s.Input.Known > 0 {
		s.Share = &Share{Known: float64(s.Cached.Known) / float64(s.Input.Known), AtLeast: s.Cached.Missing+s.Input.Missing > 0}
	}
	return s
}

// add counts a row and what it costs.
func (s *Sum) add(r Row, usd prices.USD, priced bool) {
	if priced {
		s.Cost.Known = s.Cost.Known.Plus(usd)
	} else {
		s.Cost.Missing++
	}
	s.Rows++
	s.Input.add(r.Input)
	s.Candidates.add(r.Candidates)
	s.Cached.add(r.Cached)
	s.Thoughts.add(r.Thoughts)
	s.Tool.add(r.Tool)
	s.Total.add(r.Total)
	if r.Input == nil && r.Candidates == nil && r.Cached == nil && r.Thoughts == nil && r.Tool == nil && r.Total == nil {
		s.Unknown++
	}
}

// By is what rows are grouped by.
type By string

// The ways to group rows.
const (
	ByPhase By = "phase"
	ByIter  By = "iteration" // "2/5" is the fifth of phase 2, over all rounds
	ByRole  By = "role"
	ByModel By = "model"
	ByAgent By = "agent"
	ByDay   By = "day" // in UTC
)

// Ways are all ways to group rows.
func Ways() []By { return []By{ByPhase, ByIter, ByRole, ByModel, ByAgent, ByDay} }

// groupKey is the key of a group; the second part is an iteration's alone.
type groupKey struct{ first, second string }

func (by By) key(r Row) (key groupKey) {
	switch by {
	case ByPhase:
		key.first = r.Phase
	case ByIter:
		key = groupKey{r.Phase, r.Step}
	case ByRole:
		key.first = r.Role
	case ByModel:
		key.first = r.Model
	case ByAgent:
		key.first = r.Agent
	case ByDay:
		key.first = r.Day()
	}
	return key
}

// text is the key as it is shown.
func (k groupKey) text(by By) string {
	switch {
	case by == ByIter:
		return k.first + "/" + k.second
	case k.first == "":
		return Unknown
	}
	return k.first
}

// Group is the sum of the rows with one key.
type Group struct {
	Key string `json:"key"`
	Sum
}

// maxGroups bounds the memory that a file can take by its number of keys.
const maxGroups = 10_000

// others is the key of what comes after maxGroups.
const others = "(others)"

// Totals adds rows up, as a whole and by groups, in memory that depends on the
// groups and not on the rows.
type Totals struct {
	All    Sum
	Price  func(Row) (prices.USD, bool) // what a row costs; nil is what it says
	groups map[By]*grouping
}

// grouping is one way to group. Rows that stand together mostly have the same key.
type grouping struct {
	sums map[groupKey]*keyed
	last *keyed
}

type keyed struct {
	Sum
	key groupKey
}

// NewTotals begins to add up in the given ways.
func NewTotals(ways ...By) *Totals {
	t := &Totals{groups: map[By]*grouping{}}
	for _, by := range ways {
		t.groups[by] = &grouping{sums: map[groupKey]*keyed{}}
	}
	return t
}

// Add counts a row.
func (t *Totals) Add(r Row) {
	price := Row.Cost
	if t.Price != nil {
		price = t.Price
	}
	usd, priced := price(r)
	t.All.add(r, usd, priced)
	for by, g := range t.groups {
		g.sum(by.key(r)).add(r, usd, priced)
	}
}

func (g *grouping) sum(key groupKey) *Sum {
	if g.last != nil && key == g.last.key {
		return &g.last.Sum
	}
	k := g.sums[key]
	if k == nil && len(g.sums) >= maxGroups {
		key = groupKey{first: others}
		k = g.sums[key]
	}
	if k == nil {
		key = groupKey{strings.Clone(key.first), strings.Clone(key.second)} // a row's texts hold its whole line
		k = &keyed{key: key}
		g.sums[key] = k
	}
	g.last = k
	return &k.Sum
}

// Groups returns the sums of one way to group, sorted by key, numbers in it by
// their value. It is nil for a way that NewTotals was not given.
func (t *Totals) Groups(by By) []Group {
	var groups []Group
	if t.groups[by] == nil {
		return nil
	}
	for key, sum := range t.groups[by].sums {
		groups = append(groups, Group{Key: key.text(by), Sum: sum.shared()})
	}
	slices.SortFunc(groups, func(a, b Group) int { return natural(a.Key, b.Key) })
	return groups
}

// Sum is that of all rows.
func (t *Totals) Sum() Sum { return t.All.shared() }

// MarshalJSON gives {"all": sum, "by": {"phase": [group, …], …}}.
func (t *Totals) MarshalJSON() ([]byte, error) {
	by := map[By][]Group{}
	for way := range t.groups {
		by[way] = append([]Group{}, t.Groups(way)...)
	}
	return json.Marshal(struct {
		All Sum            `json:"all"`
		By  map[By][]Group `json:"by"`
	}{t.Sum(), by})
}

// natural compares texts, runs of digits in them by their value.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m > 0 && n > 0 {
			i, j := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
			if c := cmp.Or(cmp.Compare(len(i), len(j)), cmp.Compare(i, j)); c != 0 {
				return c
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digits(s string) int {
	return len(s) - len(strings.TrimLeftFunc(s, func(c rune) bool { return c <= unicode.MaxASCII && unicode.IsDigit(c) }))
}
