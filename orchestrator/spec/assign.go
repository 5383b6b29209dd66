package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxGone is how many contracts that are no more are remembered in a phase; the
// highest numbers stay, so that none is given again.
const maxGone = 1000

// assign gives the contracts of a phase their ids, and returns what is to be
// remembered. In this order a contract gets the id that the person wrote, the
// one that its words had, that of the contract of which it is a rewording, the
// one that its words had before they were taken out, or a new one.
func assign(phase int, contracts []Contract, known []entry) []entry {
	a := &assigner{contracts: contracts, known: known, numbers: make([]int, len(contracts)), taken: make([]bool, len(known)), used: map[int]bool{}}
	for _, c := range contracts {
		a.keys = append(a.keys, key(c))
	}
	if len(known) == 0 {
		for i, c := range contracts {
			a.numbers[i] = c.Number()
		}
		return a.entries(phase)
	}
	a.written()
	a.exact(false)
	a.alike()
	a.exact(true)
	a.fresh()
	for i := range contracts {
		contracts[i].ID = idOf(phase, a.numbers[i])
	}
	return a.entries(phase)
}

// replaced says that no contract is one of those known, in its words or in others.
func replaced(contracts []Contract, known []entry) bool {
	if len(known) == 0 {
		return false
	}
	var theirs []said
	for _, k := range known {
		theirs = append(theirs, hear(k.text))
	}
	for _, c := range contracts {
		mine := hear(key(c))
		if slices.ContainsFunc(theirs, func(o said) bool { _, same := mine.rewords(o); return same }) {
			return false
		}
	}
	return true
}

type assigner struct {
	contracts []Contract
	keys      []string
	known     []entry
	numbers   []int // of the contracts, 0 is none yet
	taken     []bool
	used      map[int]bool
}

func (a *assigner) give(i, number int) { a.numbers[i], a.used[number] = number, true }

// written honours the person's ids; whoever had one of these loses it.
func (a *assigner) written() {
	for i, c := range a.contracts {
		if c.Written {
			a.give(i, c.Number())
		}
	}
	for e, k := range a.known {
		a.taken[e] = a.used[k.number]
	}
}

// exact looks for the very words, in the order of the text when they are there twice.
func (a *assigner) exact(gone bool) {
	by := map[string][]int{}
	for e, k := range a.known {
		if k.gone == gone && !a.taken[e] {
			by[k.text] = append(by[k.text], e)
		}
	}
	for i, n := range a.numbers {
		if same := by[a.keys[i]]; n == 0 && len(same) > 0 {
			a.give(i, a.known[same[0]].number)
			a.taken[same[0]] = true
			by[a.keys[i]] = same[1:]
		}
	}
}

// alike finds rewordings: the closest pairs first.
func (a *assigner) alike() {
	type pair struct {
		i, e  int
		score float64
	}
	var pairs []pair
	wordsOf := map[int]said{}
	for e, k := range a.known {
		if !k.gone && !a.taken[e] {
			wordsOf[e] = hear(k.text)
		}
	}
	for i, n := range a.numbers {
		if n != 0 || len(wordsOf) == 0 {
			continue
		}
		mine := hear(a.keys[i])
		for e := range a.known {
			if theirs, free := wordsOf[e]; free {
				if score, same := mine.rewords(theirs); same {
					pairs = append(pairs, pair{i, e, score})
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int {
		switch {
		case x.score > y.score:
			return -1
		case x.score < y.score:
			return 1
		}
		return 0
	})
	for _, p := range pairs {
		if a.numbers[p.i] == 0 && !a.taken[p.e] {
			a.give(p.i, a.known[p.e].number)
			a.taken[p.e] = true
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
			a.give(i, next)
		}
	}
}

// entries is what is to be remembered.
func (a *assigner) entries(phase int) []entry {
	var all, gone []entry
	for i, n := range a.numbers {
		all = append(all, entry{phase: phase, number: n, text: a.keys[i]})
	}
	for e, k := range a.known {
		if !a.taken[e] {
			k.gone, k.phase = true, phase
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(x, y entry) int { return x.number - y.number })
	return append(all, gone[max(0, len(gone)-maxGone):]...)
}

// maxKey is how much of a contract's words is remembered.
const maxKey = 300

// key is a contract's words as they are remembered: on one line, and when they
// are many, their beginning with a hash of all.
func key(c Contract) string {
	c.Absence = false
	text := strings.Join(strings.Fields(strings.Map(shown, c.Says())), " ")
	if runes := []rune(text); len(runes) > maxKey {
		h := sha256.Sum256([]byte(text))
		return strings.TrimSpace(string(runes[:maxKey])) + " … " + hex.EncodeToString(h[:6])
	}
	return text
}

// shown drops what a line of text cannot hold.
func shown(c rune) rune {
	if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' || c == '\u0085' {
		return ' '
	}
	return c
}
