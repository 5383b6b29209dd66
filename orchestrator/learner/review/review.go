// Package review reads what a reviewer said of generated code, category by
// category. A category of which nothing was said is never taken for a good one.
package review

import (
	"fmt"
	"slices"
	"strings"

	"abl/orchestrator/learner/answer"
)

// Category is what a review looks at.
type Category string

// The five categories, in the order in which they are shown.
const (
	Architecture Category = "ARCHITECTURE"
	Design       Category = "DESIGN"
	CodeQuality  Category = "CODE_QUALITY"
	Security     Category = "SECURITY"
	Tests        Category = "TESTS"
)

// Categories are all five.
func Categories() []Category {
	return []Category{Architecture, Design, CodeQuality, Security, Tests}
}

// State is what a review says of a category.
type State string

// The states.
const (
	OK      State = "ok"
	Issues  State = "issues"
	Unknown State = "unknown" // nothing was said, or nothing that tells
)

// Finding is one category's.
type Finding struct {
	Category Category `json:"category"`
	State    State    `json:"state"`
	Text     string   `json:"text,omitempty"`
}

// Review is a whole one: always five findings.
type Review struct {
	Findings []Finding `json:"findings"`
}

// maxText bounds what is kept of a category, in runes.
const maxText = 1200

// Parse reads an answer. It takes any text.
func Parse(text string) Review {
	said := map[Category][]string{}
	var at Category
	for _, l := range withoutClosing(text) {
		switch {
		case l.Label != "":
			at = categoryOf(l.Label)
			said[at] = append(said[at], l.Text)
		case l.Blank || l.Fence || at == "":
		case l.Bullet || said[at][len(said[at])-1] == "":
			said[at] = append(said[at], l.Text)
		default: // a sentence goes on
			said[at][len(said[at])-1] += " " + l.Text
		}
	}
	var r Review
	for _, c := range Categories() {
		r.Findings = append(r.Findings, judge(c, said[c]))
	}
	return r
}

// withoutClosing are the lines of an answer without the sentences that follow the
// last category, where that was told on its own line. Praise goes, and what says that
// it sums up; anything else may be a finding.
func withoutClosing(text string) (lines []answer.Line) {
	label, end := -1, -1
	for i, raw := range answer.Lines(text) {
		l := answer.Read(raw, func(letters string) bool { return categoryOf(letters) != "" })
		switch {
		case l.Label != "":
			label, end = -1, -1
			if l.Text != "" {
				label = i
			}
		case l.Blank && label >= 0 && end < 0:
			end = i
		case l.Bullet || l.Fence || l.Indented:
			label = -1
		}
		lines = append(lines, l)
	}
	if end < 0 || label < 0 {
		return lines
	}
	var rest []string
	for _, l := range lines[end:] {
		rest = append(rest, answer.Words(l.Text)...)
	}
	if len(rest) > 1 && rest[0] == "in" {
		rest = rest[1:]
	}
	if len(rest) == 0 || !slices.Contains(closing, rest[0]) && slices.ContainsFunc(rest, func(w string) bool { return slices.Contains(but, w) }) {
		return lines
	}
	return lines[:end]
}

// categoryOf is the category whose letters these are, all of them: REDESIGN is
// none, and neither is LATEST.
func categoryOf(letters string) Category {
	for _, c := range Categories() {
		if letters == strings.ReplaceAll(string(c), "_", "") {
			return c
		}
	}
	return ""
}

func judge(c Category, said []string) Finding {
	said = slices.DeleteFunc(slices.Clone(said), func(s string) bool { return s == "" || answer.Placeholder(s) })
	f := Finding{Category: c, State: Unknown}
	if len(said) == 0 {
		return f
	}
	f.State = OK
	for _, s := range said {
		if !fine(c, s) {
			f.State = Issues
		}
	}
	f.Text = answer.Cut(strings.Join(said, " "), maxText)
	return f
}

// Words by which a reviewer says that there is nothing to find, and those that
// take it back.
var (
	good    = strings.Fields("ok okay good fine great solid sound clean excellent adequate acceptable satisfactory lgtm")
	before  = strings.Fields("looks look seems all is very pretty everything")
	closing = strings.Fields("overall summary conclusion altogether")
	nothing = strings.Fields("no none n/a nothing issue issues problem problems concern concerns vulnerability vulnerabilities finding findings were was are is found " +
		"identified detected seen noted to report here any all at")
	but = strings.Fields("but however except although though yet still missing lacks lacking should could consider needs need would only partly partially unless apart " +
		"unsafe insecure vulnerable bad poor fails failing broken wrong never can't cannot not no none without")
)

// fine says whether a text finds nothing. Praise that ends in a but does not, and
// of tests none are too few.
func fine(c Category, text string) bool {
	words := answer.Words(text)
	if len(words) == 0 {
		return true
	}
	first := words
	for len(first) > 1 && slices.Contains(before, first[0]) {
		first = first[1:]
	}
	if slices.Contains(good, first[0]) {
		return !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(but, w) })
	}
	if c == Tests && (len(words) == 1 || words[0] == "none") {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(nothing, w) })
}

// Summary is a review as the next prompts quote it, a line a category.
func (r Review) Summary() string {
	var b strings.Builder
	for _, f := range r.Findings {
		switch f.State {
		case OK:
			fmt.Fprintf(&b, "%s: OK\n", f.Category)
		case Unknown:
			fmt.Fprintf(&b, "%s: not reviewed\n", f.Category)
		default:
			fmt.Fprintf(&b, "%s: issues: %s\n", f.Category, f.Text)
		}
	}
	return b.String()
}

// Count is how many categories are in a state.
func (r Review) Count(s State) (n int) {
	for _, f := range r.Findings {
		if f.State == s {
			n++
		}
	}
	return n
}
