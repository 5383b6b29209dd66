package learner

import (
	"regexp"
	"strings"
	"unicode"
)

// line is one line of a model's answer. Asked for plain labelled lines, models
// decorate them with bullets, numbers, headings, bold type and fences all the same.
type line struct {
	label    string // letters of what stands before the colon, upper case; "" for none
	text     string // what follows the label, or the whole line without its bullet
	bullet   bool   // it is an item of a list
	indented bool
	blank    bool
	fence    bool // it begins or ends a fenced block
}

// bulletMark is what begins an item: a dash, star, plus or dot, or a number.
var bulletMark = regexp.MustCompile(`^(?:[-+*•‣◦–]|\d{1,3}[.)])(?:\s+|$)`)

// longest is how far into a line a label may reach, in bytes.
const longest = 60

// readLine takes a line apart. known says which letters are a label; anything else
// before a colon is text.
func readLine(raw string, known func(letters string) bool) line {
	l := line{indented: raw != strings.TrimLeft(raw, " \t")}
	s := strings.TrimSpace(raw)
	if l.blank = s == "" || strings.Trim(s, "-_*= ") == ""; l.blank {
		return l
	}
	if l.fence = strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~"); l.fence {
		return l
	}
	s, heading := l.strip(s)
	l.text = s
	bare := strings.TrimLeft(s, "*_`")
	mark := s[:len(s)-len(bare)]
	for _, sep := range []string{":", "：", " - ", " – ", " — ", "\n"} {
		left, rest, found := strings.Cut(bare+"\n", sep)
		if !found || len(left) > longest || sep == "\n" && !heading && mark == "" {
			continue // a label alone on its line has to look like a title
		}
		if letters := lettersOf(left); letters != "" && known(letters) {
			l.label, l.text = letters, unwrap(rest, mark)
			return l
		}
	}
	return l
}

// strip takes off what makes a line an item, a quotation or a heading.
func (l *line) strip(s string) (rest string, heading bool) {
	for {
		was := s
		s = strings.TrimSpace(strings.TrimPrefix(s, ">"))
		if n := len(bulletMark.FindString(s)); n > 0 {
			l.bullet, s = true, s[n:]
		}
		if t := strings.TrimLeft(s, "#"); t != s && (t == "" || t[0] == ' ') {
			heading, s = true, strings.TrimSpace(t)
		}
		if s == was {
			return s, heading
		}
	}
}

// lettersOf is a label as it is looked for: "Code-Quality (1)" is CODEQUALITY.
func lettersOf(left string) string {
	left, _, _ = strings.Cut(left, "(")
	var b strings.Builder
	for _, r := range left {
		switch {
		case unicode.IsLetter(r):
			b.WriteRune(unicode.ToUpper(r))
		case !unicode.IsDigit(r) && !strings.ContainsRune(" _-*`#./", r):
			return ""
		}
	}
	return b.String()
}

// unwrap takes the other end of the label's own marks off what follows it.
func unwrap(rest, mark string) string {
	rest = strings.TrimSpace(rest)
	if t, ok := strings.CutPrefix(rest, mark); ok {
		rest = t
	} else if strings.Count(rest, mark)%2 == 1 {
		rest = strings.TrimSuffix(rest, mark)
	}
	return strings.TrimSpace(rest)
}

// splitLines are the lines of an answer, whatever ends them.
func splitLines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff")), "\n")
}

// wordsOf are the words of a text in lower case, without what stands around them.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '/' && r != '\''
	})
}

// isPlaceholder says that a text only repeats what was asked for: <insight>.
func isPlaceholder(text string) bool {
	return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && !strings.Contains(text[1:], "<")
}
