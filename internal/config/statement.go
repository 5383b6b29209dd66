package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/joho/godotenv"
)

// statement is one variable; a quoted value may go over several lines.
type statement struct {
	line    int
	text    string // as it stands in the file
	bare    string // without the comment after an unquoted value
	open    bool   // its quote is not closed
	tail    bool   // something follows the closing quote
	comment bool   // an unquoted value ends at " #"
}

var (
	// head is what stands before the value. Names are those that every shell
	// and container can hold.
	head        = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=`)
	bareComment = regexp.MustCompile(`[ \t]#`)
)

func statements(text string) []statement {
	var out []statement
	for line := 1; text != ""; {
		st := next(text)
		st.line = line
		line += strings.Count(st.text, "\n") + 1
		text = strings.TrimPrefix(text[len(st.text):], "\n")
		if trimmed := strings.TrimSpace(st.text); trimmed != "" && trimmed[0] != '#' {
			out = append(out, st)
		}
	}
	return out
}

// next takes the first statement off text: a line, or as many lines as its
// quoted value needs.
func next(text string) statement {
	line, _, _ := strings.Cut(text, "\n")
	start := len(head.FindString(line))
	if start == 0 {
		return statement{text: line, bare: line}
	}
	value := strings.TrimLeft(text[start:], " \t")
	if value == "" || (value[0] != '"' && value[0] != '\'') {
		return unquoted(line, start)
	}
	end := closing(value)
	if end < 0 {
		return statement{text: line, open: true}
	}
	rest, _, _ := strings.Cut(value[end+1:], "\n")
	after := strings.TrimSpace(rest)
	quoted := text[:len(text)-len(value)+end+1]
	return statement{text: quoted + rest, bare: quoted, tail: after != "" && after[0] != '#'}
}

func unquoted(line string, start int) statement {
	st := statement{text: line, bare: line}
	if at := bareComment.FindStringIndex(line[start:]); at != nil {
		st.bare, st.comment = line[:start+at[0]], true
	}
	return st
}

// closing is the index of the quote that ends a quoted value, -1 for none.
func closing(value string) int {
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case value[0]:
			return i
		}
	}
	return -1
}

// read gives the statement to godotenv, whose reading of quotes and escapes
// other tools share. Its own errors quote the line, and with it the secret, so
// none of them leaves here.
func (s statement) read() (name, value string, err error) {
	at := head.FindStringSubmatch(s.text)
	switch {
	case at == nil:
		return "", "", errors.New("want NAME=value")
	case s.open:
		return "", "", errors.New("the quote is not closed")
	case s.tail:
		return "", "", errors.New("something follows the closing quote")
	}
	hide, restore := standIns(s.bare)
	vars, err := godotenv.Unmarshal(s.bare[:len(at[0])] + hide.Replace(s.bare[len(at[0]):]))
	value, ok := vars[at[1]]
	if err != nil || !ok || len(vars) != 1 {
		return "", "", errors.New("cannot be read as NAME=value")
	}
	return at[1], restore.Replace(value), nil
}

// standIns hides, behind characters that text has not, what godotenv would get
// wrong: it expands "$", with no way to switch this off, takes a quote after an
// escaped backslash for an escaped one, and trims an escaped quote at the end.
// Backslashes mean something within double quotes only.
func standIns(text string) (hide, restore *strings.Replacer) {
	free := unused(text, 3)
	value := strings.TrimLeft(text[len(head.FindString(text)):], " \t")
	if !strings.HasPrefix(value, `"`) {
		return strings.NewReplacer("$", free[0], `\'`, free[2], `\`, free[1]),
			strings.NewReplacer(free[0], "$", free[1], `\`, free[2], `\'`)
	}
	return strings.NewReplacer("$", free[0], `\\`, free[1], `\"`, free[2]),
		strings.NewReplacer(free[0], "$", free[1], `\`, free[2], `"`)
}

// unused returns n private-use characters that text has not.
func unused(text string, n int) []string {
	var out []string
	for r := '\uE000'; len(out) < n; r++ {
		if !strings.ContainsRune(text, r) {
			out = append(out, string(r))
		}
	}
	return out
}
