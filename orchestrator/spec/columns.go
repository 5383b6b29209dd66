package spec

import (
	"regexp"
	"slices"
	"strings"
)

var (
	actionHead  = regexp.MustCompile(`(?i)^(?:actions?|requests?|inputs?|when|given|stimulus|call|do|method|path|endpoint|url|route|body|payload|params?|parameters?|headers?|query|precondition|setup|steps?|commands?|trigger)\b`)
	caseHead    = regexp.MustCompile(`(?i)^(?:scenario|case|test|test case|situation|behaviou?r|contract|what)s?\b`)
	resultHead  = regexp.MustCompile(`(?i)^(?:expected|expects?|results?|responses?|then|outputs?|outcomes?|answers?|returns?|status|code|success|ok|exit code)\b`)
	failureHead = regexp.MustCompile(`(?i)^(?:fail(?:s|ure|ures)?|errors?|otherwise|else|invalid|on (?:error|failure))\b`)
	idHead      = regexp.MustCompile(`(?i)^(?:#|id|no\.?|nr\.?|contract id|ref)$`)
)

// layout says how a table's rows are read, by its head.
type layout struct {
	actions, results, failures []int
	others                     []int // that are no part of a contract
	id                         int   // column with written ids, -1 for none
	cases                      int   // column that tells the cases apart, -1 for none
	titles                     []string
}

func layoutOf(head []string) layout {
	l := layout{id: -1, cases: -1}
	for i, name := range head {
		name = tidy(name)
		l.titles = append(l.titles, name)
		switch {
		case idHead.MatchString(name) && l.id < 0:
			l.id = i
		case failureHead.MatchString(name):
			l.failures = append(l.failures, i)
		case resultHead.MatchString(name):
			l.results = append(l.results, i)
		case actionHead.MatchString(name):
			l.actions = append(l.actions, i)
		case caseHead.MatchString(name) && l.cases < 0:
			l.cases = i
		}
	}
	if l.cases >= 0 {
		l.actions = append([]int{l.cases}, l.actions...)
	}
	for i := range head {
		if i != l.id && !slices.Contains(slices.Concat(l.actions, l.results, l.failures), i) {
			l.others = append(l.others, i)
		}
	}
	return l
}

// named says that the head tells actions and results.
func (l layout) named() bool {
	return len(l.actions) > 0 && len(l.results)+len(l.failures) > 0
}

// pair is what a row says: an action with one result.
type pair struct{ action, result string }

// read takes the contracts out of a row: by the columns for action and result,
// else by the arrow in a cell, else, when we are sure to be among contracts and
// there are two columns, as action and result.
func (l layout) read(row []string, sure bool) []pair {
	if l.named() {
		return l.byName(row)
	}
	for _, cell := range row {
		if action, result, ok := split(cell); ok {
			return []pair{{action, result}}
		}
	}
	var text []int
	for i := range row {
		if i != l.id {
			text = append(text, i)
		}
	}
	if !sure || len(l.titles) > 3 || len(text) != 2 {
		return nil
	}
	return []pair{{tidy(row[text[0]]), tidy(row[text[1]])}}
}

func (l layout) byName(row []string) []pair {
	action := pick(row, l.actions)
	if n := len(l.actions); n > 1 && l.actions[0] == l.cases && l.cases < len(row) && number.MatchString(row[l.cases]) {
		action = pick(row, l.actions[1:]) // it counts the cases
	}
	var all []pair
	if result := l.result(row); result != "" || len(l.failures) == 0 {
		all = append(all, pair{action, result})
	}
	for _, i := range l.failures {
		if result := pick(row, []int{i}); !nothing(result) {
			all = append(all, pair{action, l.titles[i] + ": " + result})
		}
	}
	return all
}

// rest is what a row says besides; the number of a row is nothing.
func (l layout) rest(row []string) string {
	var parts []string
	for _, i := range l.others {
		if i < len(row) && !nothing(row[i]) && !number.MatchString(row[i]) {
			parts = append(parts, tidy(row[i]))
		}
	}
	return strings.Join(parts, " ")
}

// number is what some count their cases with.
var number = regexp.MustCompile(`^\d{1,3}[.)]?$`)

// result joins the result's columns. The number of an exit code says nothing
// without its title, and what is printed beside it keeps its code marks.
func (l layout) result(row []string) string {
	for _, i := range l.results {
		if i < len(row) && number.MatchString(tidy(row[i])) && strings.HasPrefix(strings.ToLower(l.titles[i]), "exit") {
			parts := []string{"exit code " + tidy(row[i])}
			for _, j := range l.results {
				if j != i && j < len(row) && !nothing(row[j]) {
					parts = append(parts, strings.Trim(row[j], "*_"))
				}
			}
			return strings.Join(parts, ", ")
		}
	}
	return pick(row, l.results)
}

// pick joins the texts of some columns.
func pick(row []string, columns []int) string {
	var parts []string
	for _, i := range columns {
		if i < len(row) && !nothing(row[i]) {
			parts = append(parts, tidy(row[i]))
		}
	}
	return strings.Join(parts, " ")
}

// alone says that no more than one cell of a row says something, or that it is a
// further ruler.
func (l layout) alone(row []string) bool {
	n := 0
	for _, cell := range row {
		if !nothing(cell) && strings.Trim(cell, "-:") != "" {
			n++
		}
	}
	return len(l.titles) > 1 && n < 2
}

// nothing says that a cell is empty, or holds what people put into an empty one.
func nothing(cell string) bool {
	switch tidy(cell) {
	case "", "-", "–", "—", "n/a", "N/A":
		return true
	}
	return false
}
