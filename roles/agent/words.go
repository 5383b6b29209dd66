package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/helper"
	"abl/internal/wording"
)

// What an agent's output may bring into a sentence, in runes.
const (
	maxAction = 60
	maxName   = 120
	maxReason = 400
)

// count is a number of tokens or calls as an agent's output tells it. Anything
// but a whole number that is not negative counts as not told.
type count struct{ n *int64 }

// UnmarshalJSON never fails: one odd figure must not hide the record around it.
func (c *count) UnmarshalJSON(b []byte) error {
	c.n = nil
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		c.n = &n
	}
	return nil
}

var _ json.Unmarshaler = (*count)(nil)

// label makes text of an agent's choosing fit for one line of a report: no
// control or invisible characters, no line ends, at most limit runes.
func label(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	return wording.Cut(s, limit)
}

// action is what the live view shows: a verb and its object, with the
// workspace's own path left out.
func action(verb, object string) string {
	for _, dir := range []string{helper.Src, helper.Tests} {
		object = strings.ReplaceAll(object, dir+"/", "")
	}
	return label(verb+" "+object, maxAction)
}

// sorted orders rows by model, so that the same output always gives the same rows.
func sorted(rows []Usage) []Usage {
	slices.SortFunc(rows, func(a, b Usage) int { return strings.Compare(a.Model, b.Model) })
	return rows
}
