package spec

import (
	"strings"

	"abl/internal/lazyregexp"
)

// An arrow of letters has white space on at least one side: "a->b" is somebody's
// code. The drawn ones have no other use, however tight they stand.
var arrow = lazyregexp.New(`(?:^|[\s\x{a0}])(\\?(?:[-–—]{1,3}|={1,2})\\?(?:>|&gt;))` +
	`|[^\s<>=–—-](\\?(?:-{1,3}|={1,2})\\?>)(?:[\s\x{a0}]|$)` +
	`|([→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦]\x{fe0f}?|&[rR][aA]rr;)`)

// span is where an arrow stands in a text, in bytes.
type span struct{ start, end int }

// arrows lists them all.
func arrows(s string) (all []span) {
	for _, m := range arrow().FindAllStringSubmatchIndex(s, -1) {
		all = append(all, span{max(m[2], m[4], m[6]), max(m[3], m[5], m[7])}) // of the one that is there
	}
	return all
}

func hasArrow(s string) bool { return arrow().MatchString(s) }

// freeArrow returns the arrow of a line that parts action and result: the first
// one in no inline code, no quotation and no bracket, for {"text": "a → b"} is
// data. open brackets are those of the lines before; it returns those after.
func freeArrow(s string, open int) (at span, found bool, still int) {
	w := enclosure{brackets: open}
	from := 0
	for _, a := range arrows(s) {
		w.walk(s[from:a.start])
		from = a.end
		if !found && w == (enclosure{}) {
			at, found = a, true
		}
	}
	w.walk(s[from:])
	return at, found, w.brackets
}

// enclosure says what encloses a place in a line.
type enclosure struct {
	code, quote bool
	brackets    int
}

func (w *enclosure) walk(s string) {
	for _, c := range s {
		switch c {
		case '`':
			w.code = !w.code
		case '"':
			w.quote = !w.quote
		case '“', '„', '«':
			w.quote = true
		case '”', '»':
			w.quote = false
		case '(', '[', '{':
			w.brackets++
		case ')', ']', '}':
			w.brackets = max(0, w.brackets-1) // one alone is somebody's list mark
		}
	}
}

// tidy takes off the emphasis and the code marks around a text; what stands
// inside it stays.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "`", "*", `"`} {
		inner, open := strings.CutPrefix(s, mark)
		inner, shut := strings.CutSuffix(inner, mark)
		n := strings.Count(s, mark)
		switch {
		case open && shut && n == 2:
			s = strings.TrimSpace(inner)
		case n%2 == 1 && open != shut && mark != "*" && mark != `"`: // the mark's partner is on the arrow's other side
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, mark), mark))
		}
	}
	return s
}

// marked returns a tidied text with the code marks or the quotation marks that were around the
// whole of it, "" where there were none.
func marked(text, tidied string) string {
	for _, mark := range []string{"`", `"`} {
		if whole := mark + tidied + mark; strings.Contains(text, whole) && !strings.Contains(tidied, mark) {
			return whole
		}
	}
	return ""
}
