package learner

import (
	"regexp"
	"strings"
	"unicode"

	"abl/internal/lazyregexp"
)

// line is one line of a model's answer. Asked for plain labelled lines, models
// decorate them with bullets, numbers, headings, bold type and fences all the same.
type line struct {
	label    string // that it begins with, in upper case; "" for none
	text     string // what follows the label, or the whole line without its bullet
	bullet   bool   // it is an item of a list
	indented bool
	blank    bool // it says nothing: a rule or a fence is blank, too
}

// dress is what makes a line a quotation, a heading or an item of a list.
var dress = lazyregexp.New(`^(?:[\s\p{Z}]|>|#+(?: |$)|(?:[-+*•‣◦–]|\d{1,3}[.)])(?:\s|$))*`)

// labels recognise a line that begins with one of some names: emphasis, the name, and a
// colon or a dash, or nothing more. A number or a remark in brackets may follow the name.
func labels(names ...string) *regexp.Regexp {
	const between = "[ \\d_*`#./-]*"
	name := strings.ReplaceAll(strings.Join(names, "|"), "_", between)
	return regexp.MustCompile("^([*_`]*)" + between + "((?i:" + name + "))(?:" +
		between + `(?:\([^:：]*)?[:：]|` + between + `?(?:\(.*?)? [-–—] |(` + between + `(?:\(.*)?\n))`)
}

// longest is how far into a line a label may reach, in bytes.
const longest = 64

// readLine takes a line apart. What is before a colon and none of the labels is text.
func readLine(raw string, labels *regexp.Regexp) line {
	s := strings.TrimSpace(raw)
	marks := dress().FindString(s)
	l := line{indented: raw != strings.TrimLeft(raw, " \t"), bullet: strings.Trim(marks, "># \t\u00a0") != ""}
	l.blank = strings.Trim(s, "-_*= ") == "" || strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~")
	l.text = strings.TrimSpace(s[len(marks):])
	at := labels.FindStringSubmatchIndex((l.text + "\n")[:min(len(l.text)+1, longest)])
	if l.blank || at == nil || at[6] >= 0 && at[3] == 0 && !strings.Contains(marks, "#") {
		return l // a label alone on its line has to look like a title
	}
	rest, emphasis := l.text[min(at[1], len(l.text)):], l.text[:at[3]]
	l.label, l.text = strings.ToUpper(l.text[at[4]:at[5]]), unwrap(rest, emphasis)
	return l
}

// unwrap takes the other end of the label's own marks off what follows it.
func unwrap(rest, mark string) string {
	rest = strings.TrimPrefix(strings.TrimSpace(rest), mark)
	if strings.Count(rest, mark)%2 == 1 {
		rest = strings.TrimSuffix(rest, mark)
	}
	return strings.TrimSpace(rest)
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
