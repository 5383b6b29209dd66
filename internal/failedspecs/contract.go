package failedspecs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/spec"
)

// Contracts are the contracts that an entry can name.
type Contracts struct {
	phases int
	ids    []string          // in the order of the specs
	says   map[string]string // by id
	// by has the ids of the contracts by text: the full text, in lower case, without the lines
	// above, and without the result.
	by [4]map[string][]string
}

// In returns the contracts of specs.
func In(specs []spec.Spec) Contracts {
	c := Contracts{says: map[string]string{}, by: [4]map[string][]string{{}, {}, {}, {}}}
	for _, s := range specs {
		c.phases = max(c.phases, s.Number)
		for _, k := range s.Contracts {
			c.ids, c.says[k.ID] = append(c.ids, k.ID), k.Says()
			says := plainWords(k.Says())
			for i, words := range []string{says, strings.ToLower(says), plainWords(k.Action + " → " + k.Result),
				plainWords(k.Action)} {
				c.by[i][words] = append(c.by[i][words], k.ID)
			}
		}
	}
	return c
}

// Says returns the text of a contract on one line, with the lines above that belong to it.
func (c Contracts) Says(id string) (text string, ok bool) {
	text, ok = c.says[id]
	return text, ok
}

// Phases returns the number of the last phase.
func (c Contracts) Phases() int { return c.phases }

// IDs returns the ids of all contracts in the order of the specs.
func (c Contracts) IDs() []string { return c.ids }

// Find returns the id of the contract that a SPEC names: by its text, by the id before the text if
// the text matches none or several, or by its action if the result is missing. It returns "" if
// there is no match.
func (c Contracts) Find(text string) string {
	before, words := cutID(text)
	words = plainWords(words)
	for i, key := range []string{words, strings.ToLower(words), words} {
		ids := c.by[i][key]
		if slices.Contains(ids, before) {
			return before
		}
		if len(ids) == 1 || len(ids) > 1 && i < 2 { // several contracts with the same text
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

// Name sets the contract of each entry and adds a problem for each entry without one.
func (c Contracts) Name(r Result) Result {
	for i, e := range r.Entries {
		found, text := c.Find(e.Spec), ""
		switch before, _ := cutID(e.Spec); {
		case found == "" && before != "":
			text = fmt.Sprintf("there is no contract %s in phases 1 to %d", before, c.phases)
		case found == "":
			text = fmt.Sprintf("SPEC names no contract of phases 1 to %d", c.phases)
		case before != "" && before != found:
			text = fmt.Sprintf("SPEC has the id of %s, but the text of %s", before, found)
		}
		r.Entries[i].Contract = found
		if text != "" {
			r.Problems = append(r.Problems, Problem{Line: e.Line, Text: text})
		}
	}
	for i, e := range r.Incomplete {
		r.Incomplete[i].Contract = c.Find(e.Spec)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return a.Line - b.Line })
	return r
}

var contractID = regexp.MustCompile("^[\\[(*_` ]*[Pp]([1-9]\\d{0,3})\\.[Cc]([1-9]\\d{0,5})\\b[\\])*_` ]*[:.)–—-]?[*_` ]*")

// cutID splits the id of a contract from the beginning of a text.
func cutID(text string) (id, rest string) {
	m := contractID.FindStringSubmatch(text)
	if m == nil {
		return "", text
	}
	return "P" + m[1] + ".C" + m[2], text[len(m[0]):]
}

var (
	sameMark  = strings.NewReplacer("`", "", "*", "", "__", "", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "−", "-", "…", "...")
	anyArrow  = regexp.MustCompile(`\s*(?:&rarr;|[→⇒⟶⟹➔➜➡]\x{FE0F}?|[-=]{1,2}>)\s*`)
	absentEnd = regexp.MustCompile(`(?i)\s*\(absence\)$`)
)

// plainWords normalizes the text of a contract: emphasis, types of quotes, dashes and arrows,
// spaces and the full stop make no difference.
func plainWords(text string) string {
	text = anyArrow.ReplaceAllString(sameMark.Replace(text), " → ")
	text = strings.Join(strings.Fields(text), " ")
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] &&
		strings.Count(text, text[:1]) == 2 {
		text = text[1 : n-1] // YAML's
	}
	text = absentEnd.ReplaceAllString(strings.TrimRight(text, ".;, "), "")
	return strings.TrimRight(text, ".;, ")
}
