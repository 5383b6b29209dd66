package codecommit

import "strings"

// block is one pair of fences of one kind.
type block struct {
	mark, word string // the word after the opening mark
	begin, end int    // lines of the fences
	content    string
	deleted    bool
	body       int // where the content begins
}

// scan walks over the lines of an answer and keeps the block that is open. fence says
// what a line's word after the mark is, and turn what becomes of the open block.
func scan(text, mark string, fence func(line string, open *block) (word string, ok bool), turn func(no int, word string, open *block) (done bool, err error)) (found []block, err error) {
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
		word, ok := fence(strings.TrimRight(line, " \t\r\n"), open)
		if !ok {
			continue
		}
		done, err := turn(no, word, open)
		switch {
		case err != nil:
			return found, err
		case open == nil:
			open = &block{mark: mark, word: word, begin: no, body: start}
		case done:
			open.end, open.deleted, open.content = no, word == "delete", text[open.body:at]
			found, open = append(found, *open), nil
		}
	}
	if open != nil {
		return found, wrong("unterminated", open.begin, "%s%s has no %send: the answer was cut off, or the fence forgotten", mark, open.word, mark)
	}
	return found, nil
}

// marked returns what follows a mark at the beginning of text. A run of more
// than three marks is a line under a headline, say, and no fence.
func marked(text, mark string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, mark)
	return rest, ok && !strings.HasPrefix(rest, mark[:1])
}

// strict are the files of an answer whose fences begin a line, each beginning with ^^^.
func strict(text string) ([]block, error) {
	fence := func(line string, _ *block) (string, bool) { return marked(line, "^^^") }
	return scan(text, "^^^", fence, func(no int, word string, open *block) (bool, error) {
		switch {
		case open == nil && (word == "end" || word == "delete"):
			return false, wrong("stray", no, "^^^%s without a file that it belongs to", word)
		case open == nil && word == "":
			return false, wrong("malformed", no, "^^^ without a path: write ^^^path/of/the/file")
		case open == nil && strings.TrimLeft(word, " \t") != word:
			return false, wrong("malformed", no, "a blank stands between ^^^ and the path: write ^^^%s", strings.TrimSpace(word))
		case open == nil || word == "end" || word == "delete" && no == open.begin+1:
			return true, nil
		case word == "delete":
			return false, wrong("malformed", no, "^^^delete has to stand in the line after ^^^%s, with nothing between", open.word)
		}
		return false, wrong("nested", no, "^^^%s stands inside the file %q, which began in line %d: end that one with ^^^end first (no line of a file's content can begin with ^^^)", word, open.word, open.begin)
	})
}

// lenient are the blocks of one kind of an answer that may have blanks around its
// marks. Of ^^^ any word begins one, of the others start; but inside of a file indented
// marks that name nothing are content: compilers underline what they quote.
func lenient(text, mark string) ([]block, error) {
	fence := func(line string, open *block) (string, bool) {
		flush := strings.TrimLeft(line, " \t")
		rest, ok := marked(flush, mark)
		name := strings.TrimLeft(rest, " \t")
		switch {
		case !ok || name == "end":
		case mark != "^^^":
			ok = name == "start"
		case open != nil && flush != line && name != "delete":
			ok = name != "" && name == rest
		}
		return name, ok
	}
	return scan(text, mark, fence, func(no int, word string, open *block) (bool, error) {
		switch {
		case word == "delete" && mark == "^^^":
			return false, wrong("malformed", no, "files cannot be deleted: ^^^delete means nothing here")
		case open == nil && word == "end":
			return false, wrong("stray", no, "%send ends nothing", mark)
		case open == nil && word == "":
			return false, wrong("malformed", no, "%s stands alone: a path or start has to follow", mark)
		case open == nil || word == "end":
			return true, nil
		}
		return false, wrong("nested", no, "%s%s stands inside of %s%s, which began in line %d: end that one with %send first", mark, word, mark, open.word, open.begin, mark)
	})
}
