package codecommit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Edit is a change of one file: its whole new content, or its removal.
type Edit struct {
	Path string `json:"path"`
	// The text between the fences, including the last line end.
	Content string `json:"-"`
	Delete  bool   `json:"deleted,omitempty"`
	Line    int    `json:"-"` // of the opening fence, from 1
}

// MaxAnswer is the largest accepted answer, in bytes. maxFiles is the largest number of files in it.
const (
	MaxAnswer = 8 << 20
	maxFiles  = 2000
)

// Mistake is an error of the model. Its text is for the model and for the user.
type Mistake string

func (m Mistake) Error() string { return string(m) }

// wrong returns a mistake in a line of an answer.
func wrong(line int, format string, args ...any) error {
	return Mistake(fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)))
}

const errNoFile = Mistake("the answer changes no file: give at least one as ^^^path, its whole content, ^^^end")

// Answer is a parsed answer. The protocol v2 has only files.
type Answer struct {
	Said     []string // &&&: messages to the user
	Thoughts []string // %%%: messages to later calls
	Edits    []Edit   // ^^^: files
	Calm     []string // $$$: reasons to change nothing
}

// ParseAnswer parses an answer: files between ^^^path and ^^^end, and removals as ^^^path with
// ^^^delete on the next line. It ignores other text. With an error it only returns the messages to
// the user, of the protocol v1.
func ParseAnswer(text string, v1 bool) (a Answer, err error) {
	marks := []string{"^^^"}
	if v1 {
		marks = []string{"&&&", "%%%", "^^^", "$$$"}
		said, err := scan(text, true, marks[0])
		for _, b := range said {
			a.Said = append(a.Said, b.Content)
		}
		if err != nil {
			return a, err
		}
	}
	messages := a
	blocks, err := scan(text, v1, marks...)
	for _, b := range blocks {
		switch b.mark {
		case "%%%":
			a.Thoughts = append(a.Thoughts, b.Content)
		case "$$$":
			a.Calm = append(a.Calm, b.Content)
		case "^^^":
			a.Edits = append(a.Edits, b.Edit)
		}
	}
	switch n := len(a.Edits); {
	case err != nil:
	case n > maxFiles:
		const text = "the answer changes %d files, more than the limit of %d: change fewer files"
		err = Mistake(fmt.Sprintf(text, n, maxFiles))
	case n == 0 && a.Calm == nil:
		err = errNoFile
	case n > 0 && a.Calm != nil:
		err = wrong(a.Edits[0].Line, "the answer says by $$$ that nothing changes, but also gives %q", a.Edits[0].Path)
	}
	if err != nil {
		return messages, err
	}
	return a, nil
}

// block is the text between two fences. Its path is the word after the first mark.
type block struct {
	Edit
	mark string
	body int // where the content begins
}

// scan finds the blocks of an answer. The protocol v1 is lenient: blanks may surround a mark, any
// word after ^^^ begins a block, the other marks need the word start, and files cannot be deleted.
func scan(text string, lenient bool, marks ...string) (found []block, err error) {
	if len(text) > MaxAnswer {
		const why = "the answer has %d bytes, more than the limit of %d: change fewer files"
		return nil, Mistake(fmt.Sprintf(why, len(text), MaxAnswer))
	}
	text = strings.TrimPrefix(text, "\ufeff")
	var open block // closed while Line is 0
	no, next := 0, 0
	for line := range strings.Lines(text) {
		at := next
		no, next = no+1, next+len(line)
		mark, word, ok := fence(strings.TrimRight(line, " \t\r\n"), lenient, marks, open)
		deletes := mark == "^^^" && word == "delete"
		switch {
		case !ok:
		case deletes && lenient:
			return found, wrong(no, "files cannot be deleted: ^^^delete is not supported here")
		case open.Line == 0 && (word == "end" || deletes):
			return found, wrong(no, "%s%s without a beginning", mark, word)
		case open.Line == 0 && (word == "" || strings.ContainsAny(word[:1], " \t")):
			return found, wrong(no, "no path follows ^^^ directly: write ^^^path/of/the/file")
		case open.Line == 0:
			open = block{Edit{Path: word, Line: no}, mark, next}
		case deletes && no != open.Line+1:
			return found, wrong(no, "^^^delete must be on the line after ^^^%s", open.Path)
		case mark != open.mark || word != "end" && !deletes:
			return found, wrong(no, "%s%s is inside of %s%s, which began in line %d: "+
				"end that one with %[3]send first (no line of a file's content can begin with ^^^)",
				mark, word, open.mark, open.Path, open.Line)
		default:
			open.Delete, open.Content = deletes, text[open.body:at]
			found, open = append(found, open), block{}
		}
	}
	if open.Line > 0 {
		return found, wrong(open.Line, "%s%s has no %[1]send: the answer was cut off, or the fence was forgotten", open.mark,
			open.Path)
	}
	return found, nil
}

// fenceV1 matches a line with a mark: blanks, the mark, blanks, a word.
var fenceV1 = regexp.MustCompile(`(?s)^([ \t]*)(&&&|%%%|\^\^\^|\$\$\$)([ \t]*)(.*)$`)

// fence returns the mark of a line and the word after it. ok is false if the line is not a fence. A
// run of more than three marks, such as a line under a headline, is not a fence. In a lenient file
// indented marks without a word are content: compilers underline code with them.
func fence(line string, lenient bool, marks []string, open block) (mark, word string, ok bool) {
	if !lenient {
		word, ok = strings.CutPrefix(line, "^^^")
		return "^^^", word, ok && !strings.HasPrefix(word, "^")
	}
	m := fenceV1.FindStringSubmatch(line)
	if m == nil || !slices.Contains(marks, m[2]) {
		return "", "", false
	}
	indent, mark, gap, word := m[1], m[2], m[3], m[4]
	switch {
	case word == "end":
		ok = true
	case mark != "^^^":
		ok = word == "start"
	case gap != "" || !strings.HasPrefix(word, "^"):
		ok = open.mark != mark || indent == "" || word == "delete" || word != "" && gap == ""
	}
	return mark, word, ok
}
