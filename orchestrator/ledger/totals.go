package ledger

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
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
}

// Add counts a row.
func (s *Sum) Add(r Row) {
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
	ByStep  By = "step" // "2/5" is step 5, an iteration, of phase 2
	ByRole  By = "role"
	ByModel By = "model"
	ByAgent By = "agent"
	ByDay   By = "day" // in UTC
)

// Ways are all ways to group rows.
func Ways() []By { return []By{ByPhase, ByStep, ByRole, ByModel, ByAgent, ByDay} }

func (by By) key(r Row) string {
	var key string
	switch by {
	case ByPhase:
		key = r.Phase
	case ByStep:
		key = r.Phase + "/" + r.Step
	case ByRole:
		key = r.Role
	case ByModel:
		key = r.Model
	case ByAgent:
		key = r.Agent
	case ByDay:
		key = r.Day()
	}
	if key == "" {
		return Unknown
	}
	return key
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
	groups map[By]map[string]*Sum
}

// NewTotals begins to add up in the given ways.
func NewTotals(ways ...By) *Totals {
	t := &Totals{groups: map[By]map[string]*Sum{}}
	for _, by := range ways {
		t.groups[by] = map[string]*Sum{}
	}
	return t
}

// Add counts a row.
func (t *Totals) Add(r Row) {
	t.All.Add(r)
	for by, sums := range t.groups {
		key := by.key(r)
		sum := sums[key]
		if sum == nil {
			if len(sums) >= maxGroups {
				key = others
			}
			if sum = sums[key]; sum == nil {
				sum = &Sum{}
				sums[strings.Clone(key)] = sum // a row's texts hold its whole line
			}
		}
		sum.Add(r)
	}
}

// Groups returns the sums of one way to group, sorted by key, numbers in it by
// their value. It is nil for a way that NewTotals was not given.
func (t *Totals) Groups(by By) []Group {
	var groups []Group
	for key, sum := range t.groups[by] {
		groups = append(groups, Group{Key: key, Sum: *sum})
	}
	slices.SortFunc(groups, func(a, b Group) int { return natural(a.Key, b.Key) })
	return groups
}

// MarshalJSON gives {"all": sum, "by": {"phase": [group, …], …}}.
func (t *Totals) MarshalJSON() ([]byte, error) {
	by := map[By][]Group{}
	for way := range t.groups {
		by[way] = append([]Group{}, t.Groups(way)...)
	}
	return json.Marshal(struct {
		All Sum            `json:"all"`
		By  map[By][]Group `json:"by"`
	}{t.All, by})
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
