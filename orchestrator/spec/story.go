package spec

import (
	"slices"
	"strings"
)

// story is a contract told in labelled lines: Input, Success, Fail; Given, When,
// Then. Each result makes a contract of its own.
type story struct {
	title   string // the heading or the text above the lines
	first   int    // index of its first labelled line
	begun   bool
	base    []string // givens of all stories here: "Background:"
	given   []string
	doing   []string
	last    part   // what "and" goes on with
	word    string // of the last result
	result  int    // number of the contract that was made last, from 1
	results bool   // there was one since the last action
}

// tells decides whether a labelled unit is part of a story: "And" only within
// one, and outside the Contracts section a result only after an action.
func (f *finder) tells(u *unit) bool {
	s := &f.story
	switch u.label.part {
	case and:
		return s.last != 0
	case success, failure:
		return len(s.doing) > 0 || f.hasContracts && (s.title != "" || len(s.given) > 0 || len(f.parents) > 0)
	}
	return true
}

// labelled reads the labelled unit at i and returns the last one taken.
func (f *finder) labelled(i int) int {
	u, s := f.units[i], &f.story
	if !s.begun {
		s.first, s.begun = u.first, true
	}
	p := u.label.part
	if p == and {
		p = s.last
		if p == success || p == failure {
			return f.goesOn(i)
		}
	}
	if p == given || p == doing {
		return f.asks(i, p)
	}
	s.last = p
	return f.answers(i, p)
}

// asks takes what comes before a result.
func (f *finder) asks(i int, p part) int {
	u, s := f.units[i], &f.story
	if u.arrow && p == doing {
		if _, result, _ := split(u.value()); result != "" {
			return f.arrowed(i)
		}
	}
	if s.results {
		s.first, s.results, s.result, s.doing = u.first, false, 0, nil
		if p == given {
			s.given = nil
		}
	}
	text, last := f.valueOf(i)
	s.last = p
	switch {
	case text == "", len(s.given)+len(s.doing) >= maxParts: // whoever writes more is not read to the end
	case p == given:
		s.given = append(s.given, worded(u.label, text))
	case pieces[u.label.word] && len(s.doing) > 0:
		s.doing[len(s.doing)-1] += " " + text
	default:
		s.doing = append(s.doing, worded(u.label, text))
	}
	return last
}

// maxParts is how many lines before a result are taken.
const maxParts = 50

// pieces are labels of what goes on with a request: its method stands before them.
var pieces = map[string]bool{"path": true, "url": true, "route": true, "endpoint": true, "query": true, "body": true, "payload": true}

// worded keeps the words of a story that make it a sentence; "Input" says no more
// than its place.
func worded(l label, text string) string {
	switch l.word {
	case "given", "when", "and", "but", "before":
		return l.word + " " + text
	}
	return text
}

// action is what the story does so far.
func (s *story) action() string {
	if len(s.given)+len(s.doing) == 0 {
		return s.title
	}
	return clip(join(append(s.givens(), s.doing...)...), maxAbove)
}

func (s *story) givens() []string { return append(slices.Clone(s.base), s.given...) }

// next is the story after this one, under a title of its own.
func (s *story) next(title string) story {
	if strings.HasPrefix(strings.ToLower(s.title), "background") {
		return story{title: title, base: s.givens()}
	}
	return story{title: title, base: s.base}
}

// join puts parts of a sentence together.
func join(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p = strings.TrimRight(strings.TrimSpace(p), ",;"); p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, ", ")
}

func capital(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
