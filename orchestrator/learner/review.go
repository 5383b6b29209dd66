package learner

import (
	"fmt"
	"slices"
	"strings"
)

// categories are what a review looks at, in the order in which they are shown.
var categories = []string{"ARCHITECTURE", "DESIGN", "CODE_QUALITY", "SECURITY", tests}

const tests = "TESTS"

// Rating is what a review says of a category. One of which nothing was said is
// never taken for a good one.
type Rating string

// The ratings.
const (
	RatedOK Rating = "ok"
	Issues  Rating = "issues"
	Unrated Rating = "unknown" // nothing was said, or nothing that tells
)

// Finding is one category's.
type Finding struct {
	Category string `json:"category"`
	State    Rating `json:"state"`
	Text     string `json:"text,omitempty"`
}

// CodeReview is a whole one: always five findings.
type CodeReview struct {
	Findings []Finding `json:"findings"`
}

// maxFinding bounds what is kept of a category, in runes.
const maxFinding = 1200

// ParseReview reads what a reviewer answered. It takes any text.
func ParseReview(text string) CodeReview {
	said := map[string][]string{}
	var at string
	for _, l := range withoutClosing(text) {
		switch {
		case l.label != "":
			at = categoryOf(l.label)
			said[at] = append(said[at], l.text)
		case l.blank || l.fence || at == "":
		case l.bullet || said[at][len(said[at])-1] == "":
			said[at] = append(said[at], l.text)
		default: // a sentence goes on
			said[at][len(said[at])-1] += " " + l.text
		}
	}
	var r CodeReview
	for _, c := range categories {
		r.Findings = append(r.Findings, findingOf(c, said[c]))
	}
	return r
}

// withoutClosing are the lines of an answer without the sentences that follow the
// last category, where that was told on its own line. Praise goes, and what says that
// it sums up; anything else may be a finding.
func withoutClosing(text string) (lines []line) {
	label, end := -1, -1
	for i, raw := range splitLines(text) {
		l := readLine(raw, func(letters string) bool { return categoryOf(letters) != "" })
		switch {
		case l.label != "":
			label, end = -1, -1
			if l.text != "" {
				label = i
			}
		case l.blank && label >= 0 && end < 0:
			end = i
		case l.bullet || l.fence || l.indented:
			label = -1
		}
		lines = append(lines, l)
	}
	if end < 0 || label < 0 {
		return lines
	}
	var rest []string
	for _, l := range lines[end:] {
		rest = append(rest, wordsOf(l.text)...)
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
func categoryOf(letters string) string {
	for _, c := range categories {
		if letters == strings.ReplaceAll(c, "_", "") {
			return c
		}
	}
	return ""
}

func findingOf(c string, said []string) Finding {
	said = slices.DeleteFunc(slices.Clone(said), func(s string) bool { return s == "" || isPlaceholder(s) })
	f := Finding{Category: c, State: Unrated}
	if len(said) == 0 {
		return f
	}
	f.State = RatedOK
	for _, s := range said {
		if !fine(c, s) {
			f.State = Issues
		}
	}
	f.Text = cut(strings.Join(said, " "), maxFinding)
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
func fine(c string, text string) bool {
	words := wordsOf(text)
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
	if c == tests && (len(words) == 1 || words[0] == "none") {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(nothing, w) })
}

// Summary is a review as the next prompts quote it, a line a category.
func (r CodeReview) Summary() string {
	var b strings.Builder
	for _, f := range r.Findings {
		switch f.State {
		case RatedOK:
			fmt.Fprintf(&b, "%s: OK\n", f.Category)
		case Unrated:
			fmt.Fprintf(&b, "%s: not reviewed\n", f.Category)
		default:
			fmt.Fprintf(&b, "%s: issues: %s\n", f.Category, f.Text)
		}
	}
	return b.String()
}
