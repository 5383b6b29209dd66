package fence

import "strings"

// The marks and words of fences.
const (
	caret      = "^^^"
	endWord    = "end"
	deleteWord = "delete"
)

// Parse reads an answer of the protocol v2: files between ^^^path and ^^^end,
// removals as ^^^path and ^^^delete in the next line, and prose around them,
// which is nobody's business.
func Parse(text string) ([]Edit, error) {
	if err := tooLarge(text); err != nil {
		return nil, err
	}
	p := &parser{text: text}
	for l := range lines(text) {
		if err := p.take(l); err != nil {
			return nil, err
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	if len(p.edits) == 0 {
		return nil, wrong(NoOperations, 0, "the answer changes no file: give at least one as ^^^path, its whole content, ^^^end")
	}
	if err := together(p.edits); err != nil {
		return nil, err
	}
	return p.edits, nil
}

// parser is between two lines of an answer.
type parser struct {
	text  string
	edits []Edit
	open  *Edit
	body  int // where the open file's content begins
	last  int // number of the line before this one
}

func (p *parser) take(l line) error {
	defer func() { p.last = l.no }()
	word, ok := marked(l.text, caret)
	if !ok {
		return nil
	}
	if p.open == nil {
		return p.begin(l, word)
	}
	return p.close(l, word)
}

// begin is a fence outside of a file.
func (p *parser) begin(l line, word string) error {
	switch {
	case word == endWord || word == deleteWord:
		return wrong(Stray, l.no, "^^^%s without a file that it belongs to", word)
	case word == "":
		return wrong(Malformed, l.no, "^^^ without a path: write ^^^path/of/the/file")
	case strings.TrimLeft(word, " \t") != word:
		return wrong(Malformed, l.no, "a blank stands between ^^^ and the path: write ^^^%s", strings.TrimSpace(word))
	}
	p.open, p.body = &Edit{Path: word, Line: l.no}, l.end
	return nil
}

// close is a fence inside of a file, and has to end it.
func (p *parser) close(l line, word string) error {
	switch {
	case word == endWord:
		p.open.Content = p.text[p.body:l.start]
	case word == deleteWord && p.last == p.open.Line:
		p.open.Delete = true
	case word == deleteWord:
		return wrong(Malformed, l.no, "^^^delete has to stand in the line after ^^^%s, with nothing between", p.open.Path)
	default:
		return wrong(Nested, l.no, "^^^%s stands inside the file %q, which began in line %d: end that one with ^^^end first (no line of a file's content can begin with ^^^)", word, p.open.Path, p.open.Line)
	}
	p.edits = append(p.edits, *p.open)
	p.open = nil
	return nil
}

func (p *parser) finish() error {
	if p.open == nil {
		return nil
	}
	return wrong(Unterminated, p.open.Line, "the file %q has no ^^^end: the answer was cut off, or the fence forgotten", p.open.Path)
}

// Render writes edits as an answer. It is the inverse of Parse for contents that
// are empty or end a line, and have no fence among their lines.
func Render(edits []Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(caret + e.Path + "\n")
		if e.Delete {
			b.WriteString(caret + deleteWord + "\n")
			continue
		}
		b.WriteString(e.Content + caret + endWord + "\n")
	}
	return b.String()
}
