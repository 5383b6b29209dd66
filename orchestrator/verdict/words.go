package verdict

import (
	"regexp"
	"strings"
)

// common is the share of words that two lists have in common, from 0 to 1.
func common(a, b []string) float64 {
	count := map[string]int{}
	for _, w := range a {
		count[w]++
	}
	both := 0
	for _, w := range b {
		if count[w] > 0 {
			count[w]--
			both++
		}
	}
	return 2 * float64(both) / float64(max(1, len(a)+len(b)))
}

var contractID = regexp.MustCompile("^[\\[(*_` ]*[Pp]([1-9]\\d{0,3})\\.[Cc]([1-9]\\d{0,5})\\b[\\])*_` ]*[:.)–—-]?[*_` ]*")

// cutID takes a contract's id off the beginning of a text.
func cutID(text string) (id, rest string) {
	m := contractID.FindStringSubmatch(text)
	if m == nil {
		return "", text
	}
	return "P" + m[1] + ".C" + m[2], text[len(m[0]):]
}

var (
	sameMark  = strings.NewReplacer("`", "", "*", "", "__", "", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "−", "-", "…", "...")
	anyArrow  = regexp.MustCompile(`\s*(?:&rarr;|[→⇒⟶⟹➔➜➡]\x{FE0F}?|[-=]{1,2}>)\s*`)
	absentEnd = regexp.MustCompile(`(?i)\s*\(absence\)$`)
)

// plainWords brings the text of a contract into a form in which emphasis, kinds
// of quotes, dashes and arrows, spaces and the full stop make no difference.
func plainWords(text string) string {
	text = anyArrow.ReplaceAllString(sameMark.Replace(text), " → ")
	text = strings.Join(strings.Fields(text), " ")
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] && strings.Count(text, text[:1]) == 2 {
		text = text[1 : n-1] // YAML's
	}
	text = absentEnd.ReplaceAllString(strings.TrimRight(text, ".;, "), "")
	return strings.TrimRight(text, ".;, ")
}
