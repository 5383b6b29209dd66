package codecommit

import "strings"

// block is one pair of fences of one kind. Its path is the word after the opening mark.
type block struct {
	Edit
	mark string
	end  int // line of the closing fence
	body int // where the content begins
}

// fences are the blocks of one kind that an answer may have. The protocol v1 is
// lenient: blanks may stand around a mark, of ^^^ any word begins a block and of the
// others start, and nothing is deleted.
type fences struct {
	mark    string
	lenient bool
}

// scan walks over the lines of an answer and keeps the block that is open.
func (f fences) scan(text string) (found []block, err error) {
	if len(text) > MaxAnswer {
		return nil, wrong("too_large", 0, "the answer has %d bytes, and more than %d are not looked at: change fewer files at once", len(text), MaxAnswer)
	}
	var open *block
	no, start := 0, 0
	for line := range strings.Lines(text) {
		no++
		at := start
		start += len(line)
		if no == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		word, ok := f.word(strings.TrimRight(line, " \t\r\n"), open)
		if !ok {
			continue
		}
		if err := f.check(no, word, open); err != nil {
			return found, err
		}
		if open == nil {
			open = &block{Edit: Edit{Path: word, Line: no}, mark: f.mark, body: start}
			continue
		}
		open.end, open.Delete, open.Content = no, word == "delete", text[open.body:at]
		found, open = append(found, *open), nil
	}
	if open != nil {
		return found, wrong("unterminated", open.Line, "%s%s has no %send: the answer was cut off, or the fence forgotten", f.mark, open.Path, f.mark)
	}
	return found, nil
}

// word is what follows the mark on a line that is a fence. A run of more than three
// marks is a line under a headline, say, and none. Inside of a lenient file indented
// marks that name nothing are content: compilers underline what they quote.
func (f fences) word(line string, open *block) (word string, ok bool) {
	flush := line
	if f.lenient {
		flush = strings.TrimLeft(line, " \t")
	}
	rest, ok := strings.CutPrefix(flush, f.mark)
	ok = ok && !strings.HasPrefix(rest, f.mark[:1])
	if !f.lenient {
		return rest, ok
	}
	word = strings.TrimLeft(rest, " \t")
	switch {
	case !ok || word == "end":
	case f.mark != "^^^":
		ok = word == "start"
	case open != nil && flush != line && word != "delete":
		ok = word != "" && word == rest
	}
	return word, ok
}

// check refuses a fence that neither begins a block nor ends the open one.
func (f fences) check(no int, word string, open *block) error {
	deletes := word == "delete" && f.mark == "^^^"
	switch {
	case deletes && f.lenient:
		return wrong("malformed", no, "files cannot be deleted: ^^^delete means nothing here")
	case open == nil && (word == "end" || deletes):
		return wrong("stray", no, "%s%s without a beginning that it belongs to", f.mark, word)
	case open == nil && word == "":
		return wrong("malformed", no, "%s stands alone: write ^^^path/of/the/file", f.mark)
	case open == nil && strings.TrimLeft(word, " \t") != word:
		return wrong("malformed", no, "a blank stands between ^^^ and the path: write ^^^%s", strings.TrimSpace(word))
	case open == nil, word == "end", deletes && no == open.Line+1:
		return nil
	case deletes:
		return wrong("malformed", no, "^^^delete has to stand in the line after ^^^%s, with nothing between", open.Path)
	}
	return wrong("nested", no, "%s%s stands inside of %s%s, which began in line %d: end that one with %send first (no line of a file's content can begin with ^^^)",
		f.mark, word, f.mark, open.Path, open.Line, f.mark)
}
