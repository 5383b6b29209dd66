// Package answer reads lines of a model's answer as they come: asked for plain
// labelled lines, models decorate them with bullets, numbers, headings, bold
// type and fences all the same.
package answer

import (
	"regexp"
	"strings"
	"unicode"
)

// Line is one line taken apart.
type Line struct {
	Label    string // letters of what stands before the colon, upper case; "" for none
	Text     string // what follows the label, or the whole line without its bullet
	Bullet   bool   // it is an item of a list
	Indented bool
	Blank    bool
	Fence    bool // it begins or ends a fenced block
}

// Known says whether letters are a label that the reader looks for. Anything
// else before a colon is text.
type Known func(letters string) bool

// bullet is what begins an item: a dash, star, plus or dot, or a number.
var bullet = regexp.MustCompile(`^(?:[-+*•‣◦–]|\d{1,3}[.)])(?:\s+|$)`)

// longest is how far into a line a label may reach, in bytes.
const longest = 60

// Read takes a line apart.
func Read(raw string, known Known) Line {
	l := Line{Indented: raw != strings.TrimLeft(raw, " \t")}
	s := strings.TrimSpace(raw)
	if l.Blank = s == "" || strings.Trim(s, "-_*= ") == ""; l.Blank {
		return l
	}
	if l.Fence = strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~"); l.Fence {
		return l
	}
	s, heading := l.strip(s)
	l.Text = s
	bare := strings.TrimLeft(s, "*_`")
	mark := s[:len(s)-len(bare)]
	for _, sep := range []string{":", "：", " - ", " – ", " — ", ""} {
		left, rest, found := cut(bare, sep)
		if !found || sep == "" && !heading && mark == "" {
			continue // a label alone on its line has to look like a title
		}
		if letters := lettersOf(left); letters != "" && known(letters) {
			l.Label, l.Text = letters, unwrap(rest, mark)
			return l
		}
	}
	return l
}

// strip takes off what makes a line an item, a quotation or a heading.
func (l *Line) strip(s string) (rest string, heading bool) {
	for {
		was := s
		s = strings.TrimSpace(strings.TrimPrefix(s, ">"))
		if n := len(bullet.FindString(s)); n > 0 {
			l.Bullet, s = true, s[n:]
		}
		if t := strings.TrimLeft(s, "#"); t != s && (t == "" || t[0] == ' ') {
			heading, s = true, strings.TrimSpace(t)
		}
		if s == was {
			return s, heading
		}
	}
}

// cut divides a line at the first separator, none being the line's end.
func cut(s, sep string) (left, rest string, found bool) {
	if sep == "" {
		return s, "", len(s) <= longest
	}
	left, rest, found = strings.Cut(s, sep)
	return left, rest, found && len(left) <= longest
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
	if mark == "" {
		return rest
	}
	if t, ok := strings.CutPrefix(rest, mark); ok {
		return strings.TrimSpace(t)
	}
	if strings.Count(rest, mark)%2 == 1 {
		rest = strings.TrimSuffix(rest, mark)
	}
	return strings.TrimSpace(rest)
}

// Lines are the lines of an answer, whatever ends them.
func Lines(text string) []string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

// Words are the words of a text in lower case, without what stands around them.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '/' && r != '\''
	})
}

// Placeholder says that a text only repeats what was asked for: <insight>.
func Placeholder(text string) bool {
	return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && !strings.Contains(text[1:], "<")
}

// Cut shortens a text to so many runes.
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}
