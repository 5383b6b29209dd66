package spec

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxGone is how many contracts that are no more are remembered in a phase; the
// highest numbers stay, so that none is given again.
const maxGone = 1000

// assigner gives the contracts of a phase their ids.
type assigner struct {
	contracts []Contract
	known     []entry
	numbers   []int  // of the contracts, 0 is none yet
	taken     []bool // of the known
}

// assign gives the contracts of a phase their ids, and returns what is to be
// remembered. In this order a contract gets the id that the person wrote, the
// one that its words had, that of the contract of which it is a rewording, the
// one that its words had before they were taken out, or a new one.
func assign(phase int, contracts []Contract, known []entry) []entry {
	a := &assigner{contracts, known, make([]int, len(contracts)), make([]bool, len(known))}
	for i, c := range contracts {
		if c.Written || len(known) == 0 {
			a.numbers[i] = c.Number()
		}
	}
	for e, k := range known {
		a.taken[e] = slices.Contains(a.numbers, k.number)
	}
	a.exact(key)
	a.exact(func(c Contract) string { // before headings were part of a contract
		c.Under = ""
		return key(c)
	})
	a.reworded()
	a.fresh()
	var all, gone []entry
	for i, n := range a.numbers {
		contracts[i].ID = idOf(phase, n)
		all = append(all, entry{phase: phase, number: n, text: key(contracts[i])})
	}
	for e, k := range known {
		if !a.taken[e] {
			k.gone = true
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(x, y entry) int { return x.number - y.number })
	return append(all, gone[max(0, len(gone)-maxGone):]...)
}

func (a *assigner) give(i, e int) { a.numbers[i], a.taken[e] = a.known[e].number, true }

// exact looks for the very words, in the order of the text when they are there twice.
func (a *assigner) exact(keyOf func(Contract) string) {
	by := map[string][]int{}
	for e, k := range a.known {
		if !k.gone && !a.taken[e] {
			by[k.text] = append(by[k.text], e)
		}
	}
	for i, c := range a.contracts {
		k := keyOf(c)
		if same := by[k]; a.numbers[i] == 0 && len(same) > 0 {
			a.give(i, same[0])
			by[k] = same[1:]
		}
	}
}

// reworded finds rewordings, the closest pairs first, and last of all those that
// were taken out and are there again.
func (a *assigner) reworded() {
	type pair struct {
		i, e  int
		score float64
	}
	var pairs []pair
	theirs := make([]phrase, len(a.known))
	for e, k := range a.known {
		theirs[e] = compared(k.text)
	}
	for i, c := range a.contracts {
		if a.numbers[i] != 0 {
			continue
		}
		words := key(c)
		mine := compared(words)
		for e, k := range a.known {
			score, same := mine.rewords(theirs[e])
			switch {
			case a.taken[e] || !k.gone && !same || k.gone && k.text != words:
			case k.gone:
				pairs = append(pairs, pair{i, e, 0})
			default:
				pairs = append(pairs, pair{i, e, score})
			}
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(y.score, x.score) })
	for _, p := range pairs {
		if a.numbers[p.i] == 0 && !a.taken[p.e] {
			a.give(p.i, p.e)
		}
	}
}

// fresh counts on from the highest number that was ever given.
func (a *assigner) fresh() {
	next := 0
	for _, k := range a.known {
		next = max(next, k.number)
	}
	for _, n := range a.numbers {
		next = max(next, n)
	}
	for i, n := range a.numbers {
		if n == 0 {
			next++
			a.numbers[i] = next
		}
	}
}

// maxKey is how much of a contract's words is remembered.
const maxKey = 300

// key is a contract's words as they are remembered: on one line, and when they
// are many, their beginning with a hash of all.
func key(c Contract) string {
	c.Absence, c.Step = false, 0
	text := strings.Join(strings.FieldsFunc(c.Says(), func(r rune) bool { return unicode.IsSpace(r) || r < ' ' || r == 0x7f }), " ")
	if runes := []rune(text); len(runes) > maxKey {
		return strings.TrimSpace(string(runes[:maxKey])) + " … " + sum(text)[:12]
	}
	return text
}

// phrase is a contract taken apart for comparing.
type phrase struct {
	action string
	target string // what the action acts on, in so far as it is plain to see
	words  [2][]string
}

var target = regexp.MustCompile(`\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+[^\s?{(]+|(?:^|\s)/[^\s?{(]*`)

func compared(text string) phrase {
	action, result, _ := strings.Cut(text, " → ")
	return phrase{action, strings.Join(strings.Fields(target.FindString(action)), " "), [2][]string{wordsIn(action), wordsIn(result)}}
}

// rewords decides whether two texts are the same contract in other words, and
// how close they are, up to 1. An action that is the same with another result
// is; the same words about another resource are not.
func (s phrase) rewords(o phrase) (float64, bool) {
	if s.action == o.action {
		return 1, true
	}
	score := 0.6*Common(s.words[0], o.words[0]) + 0.4*Common(s.words[1], o.words[1])
	switch {
	case s.target != o.target:
		return score, score >= 0.8
	case s.target == "":
		return score, score >= 0.65
	}
	return score, score >= 0.5
}

// word is one; where people write without spaces every letter is.
var word = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|(?:[^\PL\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{N}_])+`)

func wordsIn(text string) []string { return word.FindAllString(strings.ToLower(text), -1) }

// Common is the share of words that two lists have in common, from 0 to 1.
func Common(a, b []string) float64 {
	count := map[string]int{}
	for _, w := range a {
		count[w]++
	}
	both := 0
	for _, w := range b {
		if count[w] > 0 {
			count[w]--
			both++
		}
	}
	return 2 * float64(both) / float64(max(1, len(a)+len(b)))
}
