// Package lesson reads what a model says was learned or done wrong in a cycle,
// throws away what says nothing, and keeps the rest in memory.txt and
// mistakes.txt, one lesson a line and none of them twice.
package lesson

import (
	"slices"
	"strings"

	"abl/orchestrator/learner/answer"
)

// Kind is which lessons are looked for.
type Kind string

// The kinds, which are the labels that the answers have.
const (
	Learning Kind = "LEARNING"
	Mistake  Kind = "MISTAKE"
)

// Bounds of what is kept.
const (
	maxItem  = 400 // runes of a lesson
	maxItems = 20  // lessons of one answer
)

// Dropped is a lesson that is not kept, and why.
type Dropped struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Found is what an answer holds.
type Found struct {
	Items   []string  `json:"items"`
	Dropped []Dropped `json:"dropped,omitempty"`
}

// Parse reads an answer. Labelled lines count; where there is none, the items of
// lists do, for a model that forgot the label has answered all the same.
func Parse(kind Kind, text string) Found {
	found := Found{Items: []string{}}
	seen := map[string]bool{}
	for _, s := range said(kind, text) {
		s = answer.Cut(s, maxItem)
		why := empty(kind, s)
		switch {
		case why == "" && seen[Key(s)]:
			why = "said twice"
		case why == "" && len(found.Items) == maxItems:
			why = "too many in one answer"
		}
		if why != "" {
			found.Dropped = append(found.Dropped, Dropped{answer.Cut(s, 80), why})
			continue
		}
		seen[Key(s)] = true
		found.Items = append(found.Items, s)
	}
	return found
}

// said are the lessons as the answer has them, each on one line.
func said(kind Kind, text string) []string {
	var labelled, listed []string
	open := false // the label's text may go on in the next line
	for _, raw := range answer.Lines(text) {
		l := answer.Read(raw, func(letters string) bool { return letters == string(kind) || letters == string(kind)+"S" })
		switch {
		case l.Blank || l.Fence:
			open = open && len(labelled) > 0 && labelled[len(labelled)-1] == ""
		case l.Label != "" && l.Text == "" && l.Label != string(kind):
			open = false // a title above a list
		case l.Label != "":
			labelled, open = append(labelled, l.Text), true
		case open && (labelled[len(labelled)-1] == "" || l.Indented && !l.Bullet):
			labelled[len(labelled)-1] = strings.TrimSpace(labelled[len(labelled)-1] + " " + l.Text)
		default:
			open = false
			if l.Bullet && l.Text != "" {
				listed = append(listed, l.Text)
			}
		}
	}
	if len(labelled) == 0 {
		labelled = listed
	}
	for i, s := range labelled {
		labelled[i] = strings.Join(strings.Fields(s), " ")
	}
	return slices.DeleteFunc(labelled, func(s string) bool { return s == "" })
}

// Words of sentences that say no more than that all went well, and of those that
// say that there is nothing to say.
var (
	hollow = strings.Fields("the a an and was were is are been has have had with without no any of in to for this that it its all everything " +
		"task tasks complete completed completion code generated generation file files approach work works worked working execute executed execution " +
		"produce produced valid output outputs run ran cycle successful successfully success correctly properly well fine expected as by agent solution")
	none = strings.Fields("none no n/a nothing learning learnings lesson lessons mistake mistakes error errors issue issues were was are is made found identified observed " +
		"noted learned in this the cycle to report avoid any there significant specific new at all be of")
)

// empty says why a lesson is none, "" for one that is worth keeping.
func empty(kind Kind, text string) string {
	words := answer.Words(text)
	all := func(of []string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
	}
	switch {
	case answer.Placeholder(text):
		return "repeats the question"
	case len(words) == 0:
		return "says nothing"
	case all(none):
		return "says that there is none"
	case kind == Learning && all(hollow):
		return "generic"
	case len(words) == 1:
		return "a single word"
	}
	return ""
}

// Key is what makes two lessons the same: their words, whatever their case,
// spacing, bullets and final punctuation.
func Key(text string) string {
	for bullet := true; bullet; {
		text = strings.TrimSpace(text)
		if text, bullet = strings.CutPrefix(text, "- "); !bullet {
			text, bullet = strings.CutPrefix(text, "* ")
		}
	}
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	return strings.TrimRight(text, ".!?;:,… ")
}
