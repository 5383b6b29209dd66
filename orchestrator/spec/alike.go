package spec

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// said is a contract taken apart for comparing.
type said struct {
	action, result string
	target         string // what the action acts on, in so far as it is plain to see
	words          [2][]string
}

var target = regexp.MustCompile(`\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+[^\s?{(]+|(?:^|\s)/[^\s?{(]*`)

func hear(text string) said {
	action, result, _ := strings.Cut(text, " → ")
	s := said{action: action, result: result, target: strings.Join(strings.Fields(target.FindString(action)), " ")}
	s.words = [2][]string{wordsIn(action), wordsIn(result)}
	return s
}

// rewords decides whether two texts are the same contract in other words, and
// how close they are, up to 1. An action that is the same with another result
// is; the same words about another resource are not.
func (s said) rewords(o said) (float64, bool) {
	if s.action == o.action {
		return 1, true
	}
	score := 0.6*overlap(s.words[0], o.words[0]) + 0.4*overlap(s.words[1], o.words[1])
	least := 0.8
	switch {
	case s.target == "" && o.target == "":
		least = 0.65
	case s.target == o.target:
		least = 0.5
	}
	return score, score >= least
}

// wordsIn lists the words of a text, sorted. Where people write without spaces
// every letter is a word.
func wordsIn(text string) []string {
	var all []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
		}
		word.Reset()
	}
	for _, c := range strings.ToLower(text) {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			all = append(all, string(c))
		case unicode.IsLetter(c), unicode.IsDigit(c), c == '_':
			word.WriteRune(c)
		default:
			end()
		}
	}
	end()
	slices.Sort(all)
	return all
}

// overlap is the share of words that two sorted lists have in common, from 0 to 1.
func overlap(a, b []string) float64 {
	if len(a)+len(b) == 0 {
		return 1
	}
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := cmp.Compare(a[i], b[j]); {
		case c == 0:
			common, i, j = common+1, i+1, j+1
		case c < 0:
			i++
		default:
			j++
		}
	}
	return float64(2*common) / float64(len(a)+len(b))
}
