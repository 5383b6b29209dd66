package spec

import "strings"

// arrowed reads the unit with an arrow at i and returns the last one taken.
// Items below it are part of its result, unless they are contracts themselves.
func (f *finder) arrowed(i int) int {
	u := f.units[i]
	action, result, _ := split(u.flat())
	last := i
	var details []string
	for j := i + 1; j < len(f.units) && f.detail(u, j); j++ {
		details, last = append(details, f.units[j].flat()), j
	}
	if result == "" && len(details) == 0 && f.hasKids(i) {
		f.parents = append(f.parents, above{level: u.indent, text: action})
		return i
	}
	if len(details) > 0 {
		result = strings.TrimPrefix(strings.TrimSuffix(result, ":")+": "+strings.Join(details, "; "), ": ")
	}
	f.add(u.first, f.units[last].last, action, result)
	if u.item && last == i && f.hasKids(i) {
		f.parents = append(f.parents, above{level: u.indent, text: action})
	}
	return last
}

// detail says that unit j goes into the result of u: an item of a deeper list
// that is no contract and holds none.
func (f *finder) detail(u *unit, j int) bool {
	k := f.units[j]
	if !k.item || k.indent <= u.indent || k.arrow || k.head > 0 || k.table != nil {
		return false
	}
	return !f.hasKids(j) || !f.units[j+1].arrow
}
