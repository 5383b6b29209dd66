package verdict

import (
	"regexp"
	"strings"
)

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
