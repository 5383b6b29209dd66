package spec

import (
	"fmt"
	"regexp"
	"strconv"
)

// writtenID is an id that a person put before a contract: P1.C3 or C3.
var writtenID = regexp.MustCompile("^([\\[(*_`]{0,4})(?:[Pp](\\d{1,4})[.\\-–_ ]?)?[Cc](\\d{1,4})[\\])*_`]{0,4}[ \\t]*([:.)–—-]?)[*_]{0,2}[ \\t]*")

// ownID is the id of a contract as a person wrote it.
type ownID struct{ phase, number int } // 0 is unsaid

// written takes such an id off an action. C3 alone needs a mark around or after
// it, since it may be a word of the action.
func written(action string) (ownID, string) {
	m := writtenID.FindStringSubmatch(action)
	if m == nil || m[1]+m[2]+m[4] == "" || len(m[0]) == len(action) {
		return ownID{}, action
	}
	phase, _ := strconv.Atoi(m[2]) // "" is 0
	number, _ := strconv.Atoi(m[3])
	return ownID{phase, number}, action[len(m[0]):]
}

// number gives the ids as far as the text alone tells: those that are written
// stay, the others count on in the order of the text.
func (f *finder) number() {
	taken := map[int]bool{}
	for i := range f.found {
		c := &f.found[i]
		if n := f.own(c.Line, f.drafts[i].id); n > 0 && taken[n] {
			f.warn(c.Line, "id-twice", fmt.Sprintf("the id C%d is written a second time", n), "give one of the two another number")
		} else if n > 0 {
			c.ID, c.Written, taken[n] = idOf(f.phase, n), true, true
		}
	}
	next := 1
	for i := range f.found {
		if c := &f.found[i]; !c.Written {
			for taken[next] {
				next++
			}
			c.ID, taken[next] = idOf(f.phase, next), true
		}
	}
}

// own is the number that is written before a contract on this line, 0 for none.
func (f *finder) own(line int, id ownID) int {
	if id.phase != 0 && id.phase != f.phase {
		f.warn(line, "id-foreign", fmt.Sprintf("the id P%d.C%d is written here, and this is phase %d", id.phase, id.number, f.phase),
			"leave the ids to abl, or write this phase's number")
		return 0
	}
	return id.number
}

func idOf(phase, number int) string { return fmt.Sprintf("P%d.C%d", phase, number) }

// Number is the n of Pp.Cn, 0 when it has none.
func (c Contract) Number() int {
	m := fullID.FindStringSubmatch(c.ID)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[2])
	return n
}

var fullID = regexp.MustCompile(`^P([1-9]\d{0,3})\.C([1-9]\d{0,5})$`)
