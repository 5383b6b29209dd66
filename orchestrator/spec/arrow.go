package spec

import (
	"regexp"
	"strings"
)

// An arrow of letters has white space on at least one side: "a->b" is somebody's
// code. The drawn ones have no other use, however tight they stand.
var arrow = regexp.MustCompile(`(?:^|[\s\x{a0}])((?:[-–—]{1,3}|={1,2})(?:>|&gt;))` +
	`|[^\s<>=–—-]((?:-{1,3}|={1,2})>)(?:[\s\x{a0}]|$)` +
	`|([→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦]\x{fe0f}?|&[rR][aA]rr;)`)

// at is where an arrow stands in a text, in bytes.
type at struct{ start, end int }

// arrows lists them all.
func arrows(s string) []at {
	if !mayHaveArrow(s) {
		return nil
	}
	var all []at
	for _, m := range arrow.FindAllStringSubmatchIndex(s, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				all = append(all, at{m[g], m[g+1]})
			}
		}
	}
	return all
}

// findArrow returns the arrow that parts action and result: the first one that
// stands free, else the first outside inline code, else the first. Free is what
// is in no code, no quotation and no bracket: {"text": "a → b"} is data.
func findArrow(s string) (at, bool) {
	all := arrows(s)
	if len(all) == 0 {
		return at{}, false
	}
	outside := -1
	var w where
	from := 0
	for i, a := range all {
		w.walk(s[from:a.start])
		from = a.end
		if w.free() {
			return a, true
		}
		if outside < 0 && !w.code {
			outside = i
		}
	}
	return all[max(0, outside)], true
}

// where says what encloses a place in a text.
type where struct {
	code   bool
	quote  bool
	braces int
}

func (w *where) walk(s string) {
	for _, c := range s {
		switch c {
		case '`':
			w.code = !w.code
		case '"':
			w.quote = !w.quote
		case '“', '„':
			w.quote = true
		case '”':
			w.quote = false
		case '(', '[', '{':
			w.braces++
		case ')', ']', '}':
			w.braces = max(0, w.braces-1) // one alone is somebody's list mark
		}
	}
}

func (w *where) free() bool { return !w.code && !w.quote && w.braces == 0 }

func hasArrow(s string) bool { return mayHaveArrow(s) && arrow.MatchString(s) }

// mayHaveArrow is quick, for most lines have none.
func mayHaveArrow(s string) bool {
	return strings.ContainsAny(s, ">;→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦")
}

func startsWithArrow(s string) bool {
	all := arrows(s)
	return len(all) > 0 && strings.TrimSpace(s[:all[0].start]) == ""
}

func endsWithArrow(s string) bool {
	all := arrows(s)
	return len(all) > 0 && strings.TrimSpace(s[all[len(all)-1].end:]) == ""
}

// split takes action and result apart.
func split(s string) (action, result string, found bool) {
	a, found := findArrow(s)
	if !found {
		return "", "", false
	}
	return tidy(s[:a.start]), tidy(s[a.end:]), true
}

// tidy takes off the emphasis and the code marks around a text; what stands
// inside it stays.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "`", "*"} {
		inner, open := strings.CutPrefix(s, mark)
		inner, shut := strings.CutSuffix(inner, mark)
		n := strings.Count(s, mark)
		switch {
		case open && shut && n == 2:
			s = strings.TrimSpace(inner)
		case n%2 == 1 && open != shut && mark != "*": // the mark's partner is on the arrow's other side
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, mark), mark))
		}
	}
	return s
}
