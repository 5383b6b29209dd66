package spec

import (
	"regexp"
	"strings"
)

// arrow matches an arrow. One made of ASCII characters needs white space on at least one side,
// because "a->b" is code. A Unicode arrow needs none.
var arrow = regexp.MustCompile(`(?:^|[\s\x{a0}])(\\?(?:[-–—]{1,3}|={1,2})\\?(?:>|&gt;))` +
	`|[^\s<>=–—-](\\?(?:-{1,3}|={1,2})\\?>)(?:[\s\x{a0}]|$)` +
	`|([→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦]\x{fe0f}?|&[rR][aA]rr;)`)

// span is the position of an arrow in bytes.
type span struct{ start, end int }

// arrows returns all arrows of s.
func arrows(s string) (all []span) {
	for _, m := range arrow.FindAllStringSubmatchIndex(s, -1) {
		all = append(all, span{max(m[2], m[4], m[6]), max(m[3], m[5], m[7])}) // the other groups have -1
	}
	return all
}

func hasArrow(s string) bool { return arrow.MatchString(s) }

// freeArrow returns the arrow between action and result: the first one outside of inline code,
// quotation marks and brackets, because {"text": "a → b"} is data. open and openAfter
// are the numbers of open brackets before and after the line.
func freeArrow(s string, open int) (at span, found bool, openAfter int) {
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

// enclosure is the nesting at a position of a line.
type enclosure struct {
	code, quote bool
	brackets    int
}

// walk updates the open brackets, quotation marks and code with the characters of s.
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
			w.brackets = max(0, w.brackets-1) // "a)" is a list marker
		}
	}
}

// tidy removes emphasis and code marks around a text.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "`", "*", `"`} {
		inner, open := strings.CutPrefix(s, mark)
		inner, shut := strings.CutSuffix(inner, mark)
		n := strings.Count(s, mark)
		switch {
		case open && shut && n == 2:
			s = strings.TrimSpace(inner)
		case n%2 == 1 && open != shut && mark != "*" && mark != `"`: // the other mark is beyond the arrow
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, mark), mark))
		}
	}
	return s
}

// quotedAs returns the tidied text in the code marks or quotation marks that enclosed it in text,
// "" without such marks.
func quotedAs(text, tidied string) string {
	for _, mark := range []string{"`", `"`} {
		if whole := mark + tidied + mark; strings.Contains(text, whole) && !strings.Contains(tidied, mark) {
			return whole
		}
	}
	return ""
}
