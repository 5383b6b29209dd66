package spec

import (
	"slices"
	"strings"
	"unicode"
)

// assign gives the contracts of a phase their ids, and returns what is to be
// remembered, and of it what was a contract and is none now. In this order a contract
// gets the id that the person wrote, the one that its words had, the one that its
// action had with another result, the one that its words had before they were taken
// out, or a new one.
func assign(phase int, contracts []Contract, known []entry) (all, lost []entry) {
	numbers := make([]int, len(contracts)) // 0 is none yet
	for i, c := range contracts {
		if c.Written {
			numbers[i] = c.Number()
		}
	}
	free := func(e entry) bool { return !slices.Contains(numbers, e.number) }
	claim := func(gone bool, ofContract func(Contract) string, ofEntry func(string) string) {
		by := map[string][]int{}
		for _, e := range known {
			if e.gone == gone && free(e) {
				by[ofEntry(e.text)] = append(by[ofEntry(e.text)], e.number)
			}
		}
		for i, c := range contracts {
			if same := by[ofContract(c)]; numbers[i] == 0 && len(same) > 0 {
				numbers[i], by[ofContract(c)] = same[0], same[1:]
			}
		}
	}
	itself := func(text string) string { return text }
	claim(false, key, itself)
	claim(false, func(c Contract) string { // before headings were part of a contract
		c.Under = ""
		return key(c)
	}, itself)
	claim(false, func(c Contract) string { return actionOf(key(c)) }, actionOf)
	claim(true, key, itself)

	highest := 0
	for _, e := range known {
		highest = max(highest, e.number)
		if free(e) {
			all = append(all, entry{phase, e.number, true, e.text})
			if !e.gone {
				lost = append(lost, e)
			}
		}
	}
	if len(known) > 0 {
		highest = max(highest, slices.Max(append(numbers, 0)))
	}
	for i := range contracts {
		for numbers[i] == 0 {
			if highest++; !slices.Contains(numbers, highest) {
				numbers[i] = highest
			}
		}
		contracts[i].ID = idOf(phase, numbers[i])
		all = append(all, entry{phase: phase, number: numbers[i], text: key(contracts[i])})
	}
	return all, lost
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

// actionOf is a key without the result.
func actionOf(text string) string {
	action, _, _ := strings.Cut(text, " → ")
	return action
}
