package failedspecs

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
	"abl/internal/spec"
)

// Contracts are those that an entry may name.
type Contracts struct {
	phases int
	ids    []string          // in the order of the specs
	says   map[string]string // by id
	// by has the ids of the contracts with some words: all of them, in any case, without
	// what the lines above say, and without the result.
	by [4]map[string][]string
}

// In collects the contracts of the specs of phases 1 to N.
func In(specs []spec.Spec) Contracts {
	c := Contracts{says: map[string]string{}, by: [4]map[string][]string{{}, {}, {}, {}}}
	for _, s := range specs {
		c.phases = max(c.phases, s.Number)
		for _, k := range s.Contracts {
			c.ids, c.says[k.ID] = append(c.ids, k.ID), k.Says()
			says := plainWords(k.Says())
			for i, words := range []string{says, strings.ToLower(says), plainWords(k.Action + " → " + k.Result), plainWords(k.Action)} {
				c.by[i][words] = append(c.by[i][words], k.ID)
			}
		}
	}
	return c
}

// Says is the text of a contract, complete on one line.
func (c Contracts) Says(id string) (text string, ok bool) {
	text, ok = c.says[id]
	return text, ok
}

// Phases is the number of the last phase.
func (c Contracts) Phases() int { return c.phases }

// IDs are the ids of all contracts, in the order of the specs.
func (c Contracts) IDs() []string { return c.ids }

// Find is the id of the contract that a SPEC names: by its words, or by the id
// before them where the words fit none or several, or by its action where the
// result was left away. It is "" when it names none.
func (c Contracts) Find(text string) string {
	before, words := cutID(text)
	words = plainWords(words)
	for i, key := range []string{words, strings.ToLower(words), words} {
		ids := c.by[i][key]
		if slices.Contains(ids, before) {
			return before
		}
		if len(ids) == 1 || len(ids) > 1 && i < 2 { // written down twice
			return ids[0]
		}
	}
	if _, is := c.says[before]; is {
		return before
	}
	if ids := c.by[3][words]; len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// Name looks up the contract of each entry, and says which name none.
func (c Contracts) Name(r Result) Result {
	for i, e := range r.Entries {
		found, text := c.Find(e.Spec), ""
		switch before, _ := cutID(e.Spec); {
		case found == "" && before != "":
			text = fmt.Sprintf("there is no contract %s in phases 1 to %d", before, c.phases)
		case found == "":
			text = fmt.Sprintf("SPEC names no contract of phases 1 to %d", c.phases)
		case before != "" && before != found:
			text = fmt.Sprintf("SPEC has the id %s and the words of %s", before, found)
		}
		if r.Entries[i].Contract = found; text != "" {
			r.Problems = append(r.Problems, Problem{Line: e.Line, Text: text})
		}
	}
	for i, e := range r.Incomplete {
		r.Incomplete[i].Contract = c.Find(e.Spec)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return a.Line - b.Line })
	return r
}

var contractID = lazyregexp.New("^[\\[(*_` ]*[Pp]([1-9]\\d{0,3})\\.[Cc]([1-9]\\d{0,5})\\b[\\])*_` ]*[:.)–—-]?[*_` ]*")

// cutID takes a contract's id off the beginning of a text.
func cutID(text string) (id, rest string) {
	m := contractID().FindStringSubmatch(text)
	if m == nil {
		return "", text
	}
	return "P" + m[1] + ".C" + m[2], text[len(m[0]):]
}

var (
	sameMark  = strings.NewReplacer("`", "", "*", "", "__", "", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "−", "-", "…", "...")
	anyArrow  = lazyregexp.New(`\s*(?:&rarr;|[→⇒⟶⟹➔➜➡]\x{FE0F}?|[-=]{1,2}>)\s*`)
	absentEnd = lazyregexp.New(`(?i)\s*\(absence\)$`)
)

// plainWords brings the text of a contract into a form in which emphasis, kinds
// of quotes, dashes and arrows, spaces and the full stop make no difference.
func plainWords(text string) string {
	text = anyArrow().ReplaceAllString(sameMark.Replace(text), " → ")
	text = strings.Join(strings.Fields(text), " ")
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] && strings.Count(text, text[:1]) == 2 {
		text = text[1 : n-1] // YAML's
	}
	text = absentEnd().ReplaceAllString(strings.TrimRight(text, ".;, "), "")
	return strings.TrimRight(text, ".;, ")
}
