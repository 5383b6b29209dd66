package codecommit

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// Edit is what an answer wants done to one file: its whole new content, or its
// removal.
type Edit struct {
	Path string `json:"path"`
	// As it stood between the fences, the last line end included.
	Content string `json:"-"`
	Delete  bool   `json:"deleted,omitempty"`
	Line    int    `json:"-"` // of the opening fence, from 1
}

// MaxAnswer is the largest answer that is looked at, in bytes, and maxFiles how
// many files one may give.
const (
	MaxAnswer = 8 << 20
	maxFiles  = 2000
)

// Mistake is what a model did wrong. Its text is for the model as much as for a person.
type Mistake string

func (m Mistake) Error() string { return string(m) }

// wrong is a mistake in a line of an answer.
func wrong(line int, format string, args ...any) error {
	return Mistake(fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)))
}

const errNoFile = Mistake("the answer changes no file: give at least one as ^^^path, its whole content, ^^^end")

// Answer is an answer by kind of fence. The protocol v2 knows files alone.
type Answer struct {
	Said     []string // &&&: for the person, now
	Thoughts []string // %%%: for the calls that follow
	Edits    []Edit   // ^^^: files
	Calm     []string // $$$: nothing is to be changed, and why
}

// ParseAnswer reads an answer: files between ^^^path and ^^^end, removals as ^^^path and
// ^^^delete in the next line, and prose around them, which is nobody's business. What it
// returns with an error is for the person alone: their words, of the protocol v1, are
// theirs whatever else is wrong.
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
	heard := a
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
		const text = "the answer gives %d files, and more than %d are not taken: change fewer files at once"
		err = Mistake(fmt.Sprintf(text, n, maxFiles))
	case n == 0 && a.Calm == nil:
		err = errNoFile
	case n > 0 && a.Calm != nil:
		err = wrong(a.Edits[0].Line, "the answer says by $$$ that nothing is to be changed, and gives %q all the same", a.Edits[0].Path)
	}
	if err != nil {
		return heard, err
	}
	return a, nil
}

// block is what stands between two fences. Its path is the word after the first mark.
type block struct {
	Edit
	mark string
	body int // where the content begins
}

// scan finds the blocks of an answer. The protocol v1 is lenient: blanks may stand around a
// mark, of ^^^ any word begins a block and of the others start, and nothing is deleted.
func scan(text string, lenient bool, marks ...string) (found []block, err error) {
	if len(text) > MaxAnswer {
		const why = "the answer has %d bytes, and more than %d are not looked at: change fewer files at once"
		return nil, Mistake(fmt.Sprintf(why, len(text), MaxAnswer))
	}
	text = strings.TrimPrefix(text, "\ufeff")
	var open block // none while it has no line
	no, next := 0, 0
	for line := range strings.Lines(text) {
		at := next
		no, next = no+1, next+len(line)
		mark, word, ok := fence(strings.TrimRight(line, " \t\r\n"), lenient, marks, open)
		deletes := mark == "^^^" && word == "delete"
		switch {
		case !ok:
		case deletes && lenient:
			return found, wrong(no, "files cannot be deleted: ^^^delete means nothing here")
		case open.Line == 0 && (word == "end" || deletes):
			return found, wrong(no, "%s%s without a beginning that it belongs to", mark, word)
		case open.Line == 0 && (word == "" || strings.ContainsAny(word[:1], " \t")):
			return found, wrong(no, "no path follows ^^^ at once: write ^^^path/of/the/file")
		case open.Line == 0:
			open = block{Edit{Path: word, Line: no}, mark, next}
		case deletes && no != open.Line+1:
			return found, wrong(no, "^^^delete has to stand in the line after ^^^%s, with nothing between", open.Path)
		case mark != open.mark || word != "end" && !deletes:
			return found, wrong(no, "%s%s stands inside of %s%s, which began in line %d: end that one with %[3]send first (no line of a file's content can begin with ^^^)",
				mark, word, open.mark, open.Path, open.Line)
		default:
			open.Delete, open.Content = deletes, text[open.body:at]
			found, open = append(found, open), block{}
		}
	}
	if open.Line > 0 {
		return found, wrong(open.Line, "%s%s has no %[1]send: the answer was cut off, or the fence forgotten", open.mark, open.Path)
	}
	return found, nil
}

// fenceV1 is a line with a mark: the blanks before it, the mark, the blanks behind it, a word.
var fenceV1 = lazyregexp.New(`(?s)^([ \t]*)(&&&|%%%|\^\^\^|\$\$\$)([ \t]*)(.*)$`)

// fence is the mark of a line and the word that follows it, if the line is a fence. A run of
// more than three marks is a line under a headline, say, and none. Inside of a lenient file
// indented marks that name nothing are content: compilers underline what they quote.
func fence(line string, lenient bool, marks []string, open block) (mark, word string, ok bool) {
	if !lenient {
		word, ok = strings.CutPrefix(line, "^^^")
		return "^^^", word, ok && !strings.HasPrefix(word, "^")
	}
	m := fenceV1().FindStringSubmatch(line)
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
