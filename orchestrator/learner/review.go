package learner

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
	"abl/internal/wording"
)

// categories are what a review looks at, in the order in which they are shown.
var categories = []string{"ARCHITECTURE", "DESIGN", "CODE_QUALITY", "SECURITY", "TESTS"}

// What a review says of a category. One of which nothing was said is never taken for
// a good one.
const (
	RatedOK = "ok"
	Issues  = "issues"
	Unrated = "unknown" // nothing was said, or nothing that tells
)

// Finding is one category's.
type Finding struct {
	Category string `json:"category"`
	State    string `json:"state"`
	Text     string `json:"text,omitempty"`
}

// CodeReview is a whole one: always five findings.
type CodeReview struct {
	Findings []Finding `json:"findings"`
}

// maxFinding bounds what is kept of a category, in runes.
const maxFinding = 1200

// closing is how what sums up a review begins, below a blank line.
var closing = lazyregexp.New(`(?i)^(in )?(overall|summary|conclusion|altogether)\b`)

// ParseReview reads what a reviewer answered. It takes any text.
func ParseReview(text string) (r CodeReview) {
	said := map[string][]string{}
	known := labels(categories...)
	at, gap := "", false
	for raw := range strings.SplitSeq(wording.Unix(text), "\n") {
		l := readLine(raw, known)
		switch {
		case l.label != "": // each has a first letter of its own
			at = categories[slices.IndexFunc(categories, func(c string) bool { return c[0] == l.label[0] })]
			said[at] = append(said[at], l.text)
		case l.blank || at == "":
		case gap && closing().MatchString(l.text): // it is about no category
			at = ""
		case l.bullet || said[at][len(said[at])-1] == "" || len(said[at][len(said[at])-1]) > maxFinding: // lest it grow for minutes
			said[at] = append(said[at], l.text)
		default: // a sentence goes on
			said[at][len(said[at])-1] += "\n" + l.text
		}
		gap = l.blank
	}
	for _, c := range categories {
		r.Findings = append(r.Findings, findingOf(c, said[c]))
	}
	return r
}

func findingOf(c string, said []string) Finding {
	said = slices.DeleteFunc(said, func(s string) bool { return s == "" || isPlaceholder(s) })
	f := Finding{Category: c, State: RatedOK, Text: wording.Cut(strings.ReplaceAll(strings.Join(said, " "), "\n", " "), maxFinding)}
	if len(said) == 0 {
		f.State = Unrated
	} else if slices.ContainsFunc(said, func(s string) bool { return !fine(c, s) }) {
		f.State = Issues
	}
	return f
}

// Words by which a reviewer says that there is nothing to find, and those that
// take it back.
var (
	good     = strings.Fields("ok okay good fine great solid sound clean excellent adequate acceptable satisfactory lgtm")
	applause = []string{"well done", "nice job", "nice work"}
	before   = strings.Fields("the this code program looks look seems all is very pretty everything")
	nothing  = strings.Fields("no none n/a nothing issue issues problem problems concern concerns vulnerability vulnerabilities finding findings were was are is found " +
		"identified detected seen noted to report here any all at")
	but = strings.Fields("but however except although though yet still missing lacks lacking should could consider needs need would only partly partially unless apart " +
		"unsafe insecure vulnerable bad poor fails failing broken wrong never can't cannot not no none without")
)

// fine says whether a text finds nothing: it is praise without a but, or says that there is
// nothing, and then no more than praise. Of tests none are too few.
func fine(c string, text string) bool {
	words := wordsOf(text)
	if len(words) == 0 || praises(words) {
		return true
	}
	if c == "TESTS" && (len(words) == 1 || words[0] == "none") {
		return false
	}
	end := strings.IndexAny(text+".", ".!;\n")
	return only(nothing, words) || only(nothing, wordsOf(text[:end])) && praises(wordsOf(text[end:]))
}

// praises says whether words are praise that nothing takes back.
func praises(words []string) bool {
	if slices.Contains(applause, strings.Join(words, " ")) {
		return true
	}
	for len(words) > 1 && slices.Contains(before, words[0]) {
		words = words[1:]
	}
	return slices.Contains(good, words[0]) && !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(but, w) })
}

// only says whether words are of a list, all of them.
func only(of, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
}

// Summary is a review as a person and the next prompts read it, a line a category.
func (r CodeReview) Summary() string {
	var b strings.Builder
	for _, f := range r.Findings {
		text := map[string]string{RatedOK: "OK", Unrated: "nothing was said of it", Issues: "issues: " + f.Text}[f.State]
		fmt.Fprintf(&b, "%s: %s\n", f.Category, text)
	}
	return b.String()
}
