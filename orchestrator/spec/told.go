package spec

import "strings"

// answers makes contracts of a result: of each line with an arrow one of its own.
func (f *finder) answers(i int, p part) int {
	u, s := f.units[i], &f.story
	action := s.action()
	if u.arrow {
		if condition, result, _ := split(u.value()); condition != "" && result != "" {
			if actionLike.MatchString(condition) {
				action = join(s.givens()...) // it says itself what is done
			}
			f.conclude(u.first, u.last, join(action, condition), result)
			return i
		}
	}
	if u.label.rest == "" && i+1 < len(f.units) && u.above(f.units[i+1]) && f.units[i+1].arrow {
		f.parents = append(f.parents, above{level: min(u.indent, f.units[i+1].indent-1), text: action})
		s.results = true
		return i
	}
	text, last := f.valueOf(i)
	end := f.units[last].last
	if p == success && s.result > 0 && s.word != u.label.word && s.results {
		f.extend(end, text) // Status and Response are one result
		return last
	}
	if p == failure {
		text = capital(u.label.word) + ": " + text
		if len(text) == len(u.label.word)+2 {
			text = ""
		}
	}
	s.word = u.label.word
	f.conclude(u.first, end, action, text)
	return last
}

// goesOn takes an "And" after a result.
func (f *finder) goesOn(i int) int {
	text, last := f.valueOf(i)
	if f.story.result > 0 {
		f.extend(f.units[last].last, f.units[i].label.word+" "+text)
	}
	return last
}

// conclude adds a contract. The first one of a story begins where the story does.
func (f *finder) conclude(first, last int, action, result string) {
	s := &f.story
	if !s.results {
		first = s.first
	}
	n := len(f.found)
	f.add(first, last, action, result)
	s.results, s.result = true, 0
	if len(f.found) > n {
		s.result = len(f.found)
	}
}

// extend adds to the result of the contract that was made last.
func (f *finder) extend(last int, text string) {
	if n := f.story.result; text != "" && n > 0 {
		f.drafts[n-1].last = last
		f.drafts[n-1].more = append(f.drafts[n-1].more, text)
	}
}

// valueOf is what a labelled unit says, with the items below it, and the last
// unit taken.
func (f *finder) valueOf(i int) (string, int) {
	u := f.units[i]
	parts := []string{}
	if v := u.value(); v != "" {
		parts = append(parts, v)
	}
	last := i
	for j := i + 1; j < len(f.units); j++ {
		k := f.units[j]
		if !u.above(k) || k.head > 0 || k.label.part != 0 || k.arrow || k.table != nil {
			break
		}
		parts, last = append(parts, k.flat()), j
	}
	return strings.Join(parts, "; "), last
}

// above says that a unit after a labelled one belongs to it: it is indented
// deeper, or an item where the label says nothing itself.
func (u *unit) above(k *unit) bool {
	return k.indent > u.indent || u.label.rest == "" && k.item && !u.item && k.indent >= u.indent
}
