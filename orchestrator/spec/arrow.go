package spec

import (
	"regexp"
	"strings"
)

// An arrow of letters stands alone: "a->b" is somebody's code. The drawn ones
// have no other use.
var arrow = regexp.MustCompile(`[→⇒⟶⟹➜➔]|(?:^|\s)(?:-{1,2}|={1,2})>(?:\s|$)`)

// findArrow returns where the first arrow begins and ends. One inside inline
// code counts only when there is none outside.
func findArrow(s string) (start, end int, found bool) {
	all := arrow.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return 0, 0, false
	}
	ticks, from := 0, 0
	for _, at := range all {
		ticks, from = ticks+strings.Count(s[from:at[0]], "`"), at[0]
		if ticks%2 == 0 {
			return at[0], at[1], true
		}
	}
	return all[0][0], all[0][1], true
}

func hasArrow(s string) bool {
	_, _, found := findArrow(s)
	return found
}

func startsWithArrow(s string) bool {
	at := arrow.FindStringIndex(strings.TrimSpace(s))
	return at != nil && at[0] == 0
}

func endsWithArrow(s string) bool {
	s = strings.TrimSpace(s)
	all := arrow.FindAllStringIndex(s, -1)
	return len(all) > 0 && all[len(all)-1][1] == len(s)
}

var absence = regexp.MustCompile(`(?i)\s*\(absence\)`)

// split takes action and result apart.
func split(s string) (action, result string, found bool) {
	start, end, found := findArrow(s)
	if !found {
		return "", "", false
	}
	return tidy(s[:start]), tidy(s[end:]), true
}

// tidy takes off the emphasis and the code marks around a text; what stands
// inside it stays.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "`"} {
		inner, open := strings.CutPrefix(s, mark)
		inner, shut := strings.CutSuffix(inner, mark)
		n := strings.Count(s, mark)
		switch {
		case open && shut && n == 2:
			s = strings.TrimSpace(inner)
		case n%2 == 1 && open != shut: // the mark's partner is on the arrow's other side
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, mark), mark))
		}
	}
	return s
}
