package codecommit

import (
	"errors"
	"fmt"
	"slices"
)

// Edit is what an answer wants done to one file: its whole new content, or its
// removal.
type Edit struct {
	Path    string `json:"path"`
	Content string `json:"-"` // as it stood between the fences, the last line end included
	Delete  bool   `json:"deleted,omitempty"`
	Line    int    `json:"-"` // of the opening fence, from 1
}

// MaxAnswer is the largest answer that is looked at, in bytes, and MaxFiles how
// many files one may give.
const (
	MaxAnswer = 8 << 20
	MaxFiles  = 2000
)

// Error is why an answer cannot be understood. Its text is for the model as
// much as for a person.
type Error struct {
	Kind string // a word for it
	Line int    // from 1; 0 for the answer as a whole
	What string
}

// NoOperations is the kind of an answer that changes nothing.
const NoOperations = "no_operations"

// Error is the line and the sentence.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// Empty says whether an error is that an answer changes nothing.
func Empty(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == NoOperations
}

func wrong(kind string, line int, format string, args ...any) error {
	return &Error{Kind: kind, Line: line, What: fmt.Sprintf(format, args...)}
}

// ParseAnswer reads an answer of the protocol v2: files between ^^^path and ^^^end,
// removals as ^^^path and ^^^delete in the next line, and prose around them,
// which is nobody's business.
func ParseAnswer(text string) ([]Edit, error) {
	blocks, err := fences{mark: "^^^"}.scan(text)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, wrong(NoOperations, 0, "the answer changes no file: give at least one as ^^^path, its whole content, ^^^end")
	}
	return edits(blocks)
}

// Answer is an answer of the protocol v1, by kind of fence.
type Answer struct {
	Said     []string // &&&: for the person, now
	Thoughts []string // %%%: for the calls that follow
	Edits    []Edit   // ^^^: files
	Calm     []string // $$$: nothing is to be changed, and why
}

// ParseAnswerV1 reads an answer of the protocol v1, in one pass for each of the four
// kinds of fence, none of which looks at another. What it returns with an error
// is for the person alone: their words are theirs whatever else is wrong.
func ParseAnswerV1(text string) (Answer, error) {
	var blocks [4][]block
	var heard Answer
	for i, mark := range []string{"&&&", "%%%", "^^^", "$$$"} {
		var err error
		blocks[i], err = fences{mark, true}.scan(text)
		if i == 0 {
			heard.Said = contents(blocks[0])
		}
		if err != nil {
			return heard, err
		}
	}
	if err := apart(slices.Concat(blocks[:]...)); err != nil {
		return heard, err
	}
	a := Answer{Said: heard.Said, Thoughts: contents(blocks[1]), Calm: contents(blocks[3])}
	var err error
	if a.Edits, err = edits(blocks[2]); err != nil {
		return heard, err
	}
	switch {
	case len(a.Edits) == 0 && len(a.Calm) == 0:
		return heard, wrong(NoOperations, 0, "the answer gives no file and does not say by $$$ that none is needed")
	case len(a.Edits) > 0 && len(a.Calm) > 0:
		return heard, wrong("conflict", a.Edits[0].Line, "the answer says by $$$ that nothing is to be changed, and gives %q all the same", a.Edits[0].Path)
	}
	return a, nil
}

// apart refuses blocks that overlap.
func apart(all []block) error {
	slices.SortFunc(all, func(a, b block) int { return a.Line - b.Line })
	for i := 1; i < len(all); i++ {
		if was := all[i-1]; all[i].Line < was.end {
			return wrong("overlap", all[i].Line, "%s%s begins before %s%s of line %d has ended", all[i].mark, all[i].Path, was.mark, was.Path, was.Line)
		}
	}
	return nil
}

func contents(blocks []block) (all []string) {
	for _, b := range blocks {
		all = append(all, b.Content)
	}
	return all
}

// edits are those of blocks together: not too many, and no two of one path.
func edits(blocks []block) (all []Edit, err error) {
	if len(blocks) > MaxFiles {
		return nil, wrong("too_large", 0, "the answer gives %d files, and more than %d are not taken: change fewer files at once", len(blocks), MaxFiles)
	}
	first := map[string]int{}
	for _, b := range blocks {
		if at, ok := first[b.Path]; ok {
			return nil, wrong("duplicate", b.Line, "%q was given in line %d already: give each file once, whole", b.Path, at)
		}
		first[b.Path] = b.Line
		all = append(all, b.Edit)
	}
	return all, nil
}
