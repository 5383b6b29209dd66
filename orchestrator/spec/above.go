package spec

import (
	"regexp"
	"strings"
)

// above is a text that what follows belongs to, to the next one of its level.
type above struct {
	level int
	text  string
	loose bool // it stands before the contracts rather than around them
}

// leave closes what a text with this indentation is no longer below.
func (f *finder) leave(indent int) {
	for n := len(f.parents); n > 0 && f.parents[n-1].level >= indent; n-- {
		f.parents = f.parents[:n-1]
	}
}

// actionLike recognises a title without which the contracts below it say
// nothing: a request, a command, a condition.
var actionLike = regexp.MustCompile("(?:^|\\s)(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\\s+\\S|^/\\S|`|(?i:^(?:when|if|after|before|with|without|while|given|once|until|unless)\\b)")

// maxDepth is how many outer items are looked at, maxAbove how much of one.
const maxDepth, maxAbove = 6, 300

func (f *finder) above() [][]above {
	return [][]above{f.heads, f.parents[max(0, len(f.parents)-maxDepth):]}
}

// under is what a contract's text leaves to the texts above it.
func (f *finder) under() string {
	var parts []string
	for _, list := range f.above() {
		for _, a := range list {
			if !a.loose || actionLike.MatchString(a.text) {
				parts = append(parts, a.text)
			}
		}
	}
	return strings.Join(parts, ": ")
}

// place is everything above a contract.
func (f *finder) place() string {
	var parts []string
	for _, list := range f.above() {
		for _, a := range list {
			parts = append(parts, a.text)
		}
	}
	if f.said != "" {
		parts = append(parts, f.said)
	}
	return strings.Join(parts, " / ")
}

// title is a heading or a list's lead without marks.
func title(s string) string {
	return clip(tidy(strings.TrimRight(tidy(s), ":：. ")), maxAbove)
}

// clip keeps a text that is repeated from making others long.
func clip(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
