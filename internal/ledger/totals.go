package ledger

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/usage"
)

// Counter adds up numbers of which some may be unknown. It never treats an unknown number as 0.
type Counter struct {
	Known   int64 `json:"known"`   // sum of the known numbers
	Missing int   `json:"missing"` // number of rows without the number, or with a part of it
}

// add adds a count. A missing or incomplete one makes the sum a lower bound.
func (c *Counter) add(n *int64, whole bool) {
	if n == nil || !whole {
		c.Missing++
	}
	if n != nil {
		c.Known = usage.Plus(c.Known, *n)
	}
}

// String returns the known sum, with a question mark if something is missing.
func (c Counter) String() string {
	return partly(strconv.FormatInt(c.Known, 10), c.Known == 0, c.Missing > 0)
}

// partly marks a text as incomplete.
func partly(text string, nothing, missing bool) string {
	switch {
	case !missing:
		return text
	case nothing:
		return "?"
	}
	return text + "+?"
}

// Sum is the sum of a number of rows.
type Sum struct {
	Rows       int     `json:"rows"`
	Unknown    int     `json:"unknown"` // number of rows without any count
	Input      Counter `json:"input"`
	Candidates Counter `json:"candidates"`
	Cached     Counter `json:"cached"`
	Thoughts   Counter `json:"thoughts"`
	Tool       Counter `json:"tool"`
	Total      Counter `json:"total"`
	Cost       Money   `json:"cost_usd"`
	Share      *Share  `json:"cached_share,omitempty"` // of the input; absent without input
}

// Money adds up amounts in US dollars of which some may be unknown.
type Money struct {
	Known   usage.USD `json:"known"`                  // sum of the rows with a price
	Missing int       `json:"missing"`                // number of rows without one
	Plan    int       `json:"subscription,omitempty"` // number of rows that a subscription covers
}

// Amount returns the known sum with its unit.
func (m Money) Amount() string {
	switch amount := m.Known.Short() + " USD"; {
	case m.Plan == 0:
		return amount
	case m.Known > 0:
		return amount + " and a subscription"
	}
	return Subscription
}

// String returns the known sum, with a question mark if something is missing.
func (m Money) String() string {
	if m.Known == 0 && m.Missing == 0 && m.Plan > 0 {
		return Subscription
	}
	return partly(m.Known.Short(), m.Known == 0, m.Missing > 0)
}

// Share is the share of the input that came from the provider's cache, from 0 to 1.
type Share struct {
	Known   float64 `json:"known"`
	AtLeast bool    `json:"at_least"` // some rows have no number
}

// String returns the share in percent.
func (s *Share) String() string {
	if s == nil {
		return "-"
	}
	return partly(strconv.FormatFloat(100*s.Known, 'f', 0, 64)+"%", s.Known == 0, s.AtLeast)
}

// shared returns the sum with its share.
func (s Sum) shared() Sum {
	if s.Input.Known > 0 {
		s.Share = &Share{Known: float64(s.Cached.Known) / float64(s.Input.Known),
			AtLeast: s.Cached.Missing+s.Input.Missing > 0}
	}
	return s
}

// counters returns the counters in the order of usage.Count.Numbers.
func (s *Sum) counters() []*Counter {
	return []*Counter{&s.Input, &s.Cached, &s.Candidates, &s.Thoughts, &s.Tool, &s.Total}
}

// add adds a row and its cost.
func (s *Sum) add(r Row, usd usage.USD, priced bool) {
	if priced {
		s.Cost.Known = s.Cost.Known.Plus(usd)
	} else {
		s.Cost.Missing++
	}
	if r.CostUSD == Subscription {
		s.Cost.Plan++
	}
	s.Rows++
	whole := r.Source != Nobody
	numbers := r.Numbers()
	for i, c := range s.counters() {
		c.add(*numbers[i], whole)
	}
	if !r.Known() {
		s.Unknown++
	}
}

// By is a criterion to group rows.
type By string

// The criteria to group rows.
const (
	ByPhase By = "phase"
	ByIter  By = "iteration" // "2/5" is the fifth iteration of phase 2 over all rounds
	ByRole  By = "role"
	ByModel By = "model"
	ByAgent By = "agent"
	ByDay   By = "day" // in UTC
)

// Ways returns all criteria to group rows.
func Ways() []By { return []By{ByPhase, ByIter, ByRole, ByModel, ByAgent, ByDay} }

// keyOf has the functions that return the group of a row.
var keyOf = map[By]func(Row) string{
	ByPhase: func(r Row) string { return r.Phase },
	ByIter:  func(r Row) string { return r.Phase + "/" + r.Step },
	ByRole:  func(r Row) string { return r.Role },
	ByModel: func(r Row) string { return r.Model },
	ByAgent: func(r Row) string { return r.Agent },
	ByDay:   Row.Day,
}

// Group is the sum of the rows with one key.
type Group struct {
	Key string `json:"key"`
	Sum
}

// Totals adds up rows as a whole and by group.
type Totals struct {
	Price  func(Row) (usage.USD, bool) // cost of a row; nil means Row.Cost
	all    Sum
	groups map[By]map[string]Sum
}

// Add adds a row.
func (t *Totals) Add(r Row) {
	price := Row.Cost
	if t.Price != nil {
		price = t.Price
	}
	usd, priced := price(r)
	t.all.add(r, usd, priced)
	if t.groups == nil {
		t.groups = map[By]map[string]Sum{}
	}
	for by, of := range keyOf {
		if t.groups[by] == nil {
			t.groups[by] = map[string]Sum{}
		}
		key := cmp.Or(of(r), Unknown)
		sum := t.groups[by][key]
		sum.add(r, usd, priced)
		t.groups[by][key] = sum
	}
}

// Account is the sum of rows. Its groups are sorted by key, with numbers in numerical order.
type Account struct {
	All Sum            `json:"all"`
	By  map[By][]Group `json:"by"`
}

// Account returns the sum of the rows so far.
func (t *Totals) Account() Account {
	a := Account{t.all.shared(), map[By][]Group{}}
	for _, by := range Ways() {
		groups := []Group{}
		for key, sum := range t.groups[by] {
			groups = append(groups, Group{key, sum.shared()})
		}
		slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(sortable(a.Key), sortable(b.Key)) })
		a.By[by] = groups
	}
	return a
}

// Phase returns the sum of the rows of phase n, nil without a row.
func (a Account) Phase(n int) *Sum {
	for _, g := range a.By[ByPhase] {
		if g.Key == strconv.Itoa(n) {
			return &g.Sum
		}
	}
	return nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// sortable returns a key for which 2 sorts before 10.
func sortable(text string) string {
	const wide = 20
	return digits.ReplaceAllStringFunc(text, func(n string) string { return strings.Repeat("0", max(wide-len(n), 0)) + n })
}

// Rows returns the groups as cells, followed by their sum if there are several. The header is first. A
// question mark means that some rows have no number. Calls outside of a phase have the key "none".
func (a Account) Rows(by By) [][]string {
	lines := [][]string{{string(by), "rows", "input", "cached", "candidates", "thoughts", "tool", "total", "from cache",
		"USD"}}
	for _, g := range a.By[by] {
		key := g.Key
		if by == ByPhase && key == Unknown || by == ByIter && strings.HasPrefix(key, "/") {
			key = "none"
		}
		lines = append(lines, cells(key, g.Sum))
	}
	if len(a.By[by]) != 1 {
		lines = append(lines, cells("all", a.All))
	}
	return lines
}

func cells(key string, s Sum) []string {
	line := []string{cleanText(key), strconv.Itoa(s.Rows)}
	for _, c := range s.counters() {
		line = append(line, c.String())
	}
	return append(line, s.Share.String(), s.Cost.String())
}
