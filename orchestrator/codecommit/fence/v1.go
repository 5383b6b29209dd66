package fence

import (
	"slices"
	"strings"
)

// Answer is an answer of the protocol v1, by kind of fence.
type Answer struct {
	Said     []string // &&&: for the person, now
	Thoughts []string // %%%: for the calls that follow
	Edits    []Edit   // ^^^: files
	Calm     []string // $$$: nothing is to be changed, and why
}

// block is one pair of fences of one kind.
type block struct {
	mark, word string // the word after the opening mark
	begin, end int    // lines of the fences
	content    string
}

const startWord = "start"

// ParseV1 reads an answer of the protocol v1, in one pass for each of the four
// kinds of fence, none of which looks at another. What it returns with an error
// is for the person alone: their words are theirs whatever else is wrong.
func ParseV1(text string) (Answer, error) {
	var a Answer
	if err := tooLarge(text); err != nil {
		return a, err
	}
	said, err := pass(text, "&&&")
	a.Said = contents(said)
	if err != nil {
		return a, err
	}
	all := said
	for _, mark := range []string{"%%%", caret, "$$$"} {
		blocks, err := pass(text, mark)
		if err != nil {
			return Answer{Said: a.Said}, err
		}
		switch mark {
		case "%%%":
			a.Thoughts = contents(blocks)
		case "$$$":
			a.Calm = contents(blocks)
		default:
			a.Edits = edits(blocks)
		}
		all = append(all, blocks...)
	}
	if err := a.check(all); err != nil {
		return Answer{Said: a.Said}, err
	}
	return a, nil
}

// check is about the blocks together.
func (a *Answer) check(all []block) error {
	if err := apart(all); err != nil {
		return err
	}
	if err := together(a.Edits); err != nil {
		return err
	}
	switch {
	case len(a.Edits) == 0 && len(a.Calm) == 0:
		return wrong(NoOperations, 0, "the answer gives no file and does not say by $$$ that none is needed")
	case len(a.Edits) > 0 && len(a.Calm) > 0:
		return wrong(Conflict, a.Edits[0].Line, "the answer says by $$$ that nothing is to be changed, and gives %q all the same", a.Edits[0].Path)
	}
	return nil
}

// apart refuses blocks that overlap.
func apart(all []block) error {
	slices.SortFunc(all, func(a, b block) int { return a.begin - b.begin })
	for i := 1; i < len(all); i++ {
		if was := all[i-1]; all[i].begin < was.end {
			return wrong(Overlap, all[i].begin, "%s%s begins before %s%s of line %d has ended", all[i].mark, all[i].word, was.mark, was.word, was.begin)
		}
	}
	return nil
}

// pass finds the blocks of one kind.
func pass(text, mark string) ([]block, error) {
	var found []block
	var open *block
	body := 0
	for l := range lines(text) {
		word, ok := fenceWord(l.text, mark, open != nil)
		switch {
		case !ok:
		case word == deleteWord && mark == caret:
			return found, wrong(Malformed, l.no, "files cannot be deleted: ^^^delete means nothing here")
		case open == nil && word == endWord:
			return found, wrong(Stray, l.no, "%send ends nothing", mark)
		case open == nil && word == "":
			return found, wrong(Malformed, l.no, "%s stands alone: a path or start has to follow", mark)
		case open == nil:
			open, body = &block{mark: mark, word: word, begin: l.no}, l.end
		case word == endWord:
			open.end, open.content = l.no, text[body:l.start]
			found, open = append(found, *open), nil
		default:
			return found, wrong(Nested, l.no, "%s%s stands inside of %s%s, which began in line %d: end that one with %send first", mark, word, mark, open.word, open.begin, mark)
		}
	}
	if open != nil {
		return found, wrong(Unterminated, open.begin, "%s%s has no %send", mark, open.word, mark)
	}
	return found, nil
}

// fenceWord is what follows the mark in a line that is a fence of its kind.
// Blanks may stand before the mark and after it. Of ^^^ any word is one, but
// inside of a file indented marks that name nothing are content: compilers
// underline what they quote.
func fenceWord(text, mark string, inside bool) (string, bool) {
	flush := strings.TrimLeft(text, " \t")
	word, ok := marked(flush, mark)
	if !ok {
		return "", false
	}
	name := strings.TrimLeft(word, " \t")
	switch {
	case name == endWord:
		return name, true
	case mark != caret:
		return name, name == startWord
	case inside && flush != text && name != deleteWord && (name == "" || name != word):
		return "", false
	}
	return name, true
}

func contents(blocks []block) []string {
	var all []string
	for _, b := range blocks {
		all = append(all, b.content)
	}
	return all
}

func edits(blocks []block) []Edit {
	var all []Edit
	for _, b := range blocks {
		all = append(all, Edit{Path: b.word, Content: b.content, Line: b.begin})
	}
	return all
}

// RenderV1 writes an answer in fences, the inverse of ParseV1 as Render is of
// Parse.
func RenderV1(a Answer) string {
	var b strings.Builder
	put := func(mark, word, content string) { b.WriteString(mark + word + "\n" + content + mark + endWord + "\n") }
	for _, s := range a.Said {
		put("&&&", startWord, s)
	}
	for _, s := range a.Thoughts {
		put("%%%", startWord, s)
	}
	for _, e := range a.Edits {
		path := e.Path
		if strings.HasPrefix(path, "^") {
			path = " " + path // four carets are no fence
		}
		put(caret, path, e.Content)
	}
	for _, s := range a.Calm {
		put("$$$", startWord, s)
	}
	return b.String()
}
