// Package fence reads the answers of a model that speaks in fences: lines that
// begin with three marks and say that a file begins, ends or goes. It is pure,
// holds no line back whatever its length, and understands an answer whole or
// not at all: half an answer must never reach a disk.
package fence

import (
	"errors"
	"fmt"
	"strings"
)

// Edit is what an answer wants done to one file: its whole new content, or its
// removal.
type Edit struct {
	Path    string
	Content string // as it stood between the fences, the last line end included
	Delete  bool
	Line    int // of the opening fence, from 1
}

// MaxAnswer is the largest answer that is looked at, in bytes, and MaxFiles how
// many files one may give.
const (
	MaxAnswer = 8 << 20
	MaxFiles  = 2000
)

// Kind says what is wrong with an answer.
type Kind string

// The kinds.
const (
	TooLarge     Kind = "too_large"
	NoOperations Kind = "no_operations"
	Unterminated Kind = "unterminated"
	Stray        Kind = "stray"
	Nested       Kind = "nested"
	Malformed    Kind = "malformed"
	Duplicate    Kind = "duplicate"
	Overlap      Kind = "overlap"
	Conflict     Kind = "conflict"
)

// Error is why an answer cannot be understood. Its text is for the model as
// much as for a person.
type Error struct {
	Kind Kind
	Line int // from 1; 0 for the answer as a whole
	What string
}

// Error is the line and the sentence.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// Is says whether an error is of that kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

func wrong(kind Kind, line int, format string, args ...any) *Error {
	return &Error{Kind: kind, Line: line, What: fmt.Sprintf(format, args...)}
}

// line is one line of an answer: where it begins and ends, its line feed
// included.
type line struct {
	no         int
	start, end int
	text       string // without line feed, carriage return and trailing blanks
}

// lines splits text, which is never copied.
func lines(text string) func(yield func(line) bool) {
	return func(yield func(line) bool) {
		for no, start := 1, 0; start < len(text); no++ {
			end := len(text)
			if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
				end = start + i + 1
			}
			l := line{no: no, start: start, end: end, text: strings.TrimRight(text[start:end], " \t\r\n")}
			if no == 1 {
				l.text = strings.TrimPrefix(l.text, "\ufeff")
			}
			if !yield(l) {
				return
			}
			start = end
		}
	}
}

// marked returns what follows a mark at the beginning of text. A run of more
// than three marks is a line under a headline, say, and no fence.
func marked(text, mark string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, mark)
	if !ok || strings.HasPrefix(rest, mark[:1]) {
		return "", false
	}
	return rest, true
}

func tooLarge(text string) error {
	if len(text) <= MaxAnswer {
		return nil
	}
	return wrong(TooLarge, 0, "the answer has %d bytes, and more than %d are not looked at: change fewer files at once", len(text), MaxAnswer)
}

// together is about the edits of an answer together: how many they are, and that
// no two name one path.
func together(edits []Edit) error {
	if len(edits) > MaxFiles {
		return wrong(TooLarge, 0, "the answer gives %d files, and more than %d are not taken: change fewer files at once", len(edits), MaxFiles)
	}
	first := map[string]int{}
	for _, e := range edits {
		if at, ok := first[e.Path]; ok {
			return wrong(Duplicate, e.Line, "%q was given in line %d already: give each file once, whole", e.Path, at)
		}
		first[e.Path] = e.Line
	}
	return nil
}
