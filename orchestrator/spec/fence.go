package spec

import (
	"regexp"
	"strings"
)

var (
	fenceLine = regexp.MustCompile("^(?:```+[^`]*|~~~+.*)$")
	// A block in one of these holds contracts; one in another language is an
	// example, and "->" or "=>" in it are that language's.
	ownLanguage = regexp.MustCompile(`(?i)^(?:te?xt|plain|plaintext|contracts?|specs?|http|abl|markdown|md|gherkin|feature|cucumber|console|none)?$`)
)

// isFence recognises the line that opens or closes a code block.
func isFence(text string) bool {
	return (strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")) && fenceLine.MatchString(text)
}

// block is the code block that the marker is in.
type block struct {
	fence   string // that closes it, "" outside
	first   int    // index of the line that opened it
	foreign bool   // it is in some language
	speaks  bool   // it holds what may be contracts
	asks    bool   // there is a label of an action in it
	answers bool   // and one of a result
}

func (b *block) begin(i int, text string) kind {
	info := strings.TrimLeft(text, text[:1])
	lang, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	*b = block{fence: text[:len(text)-len(info)], first: i, foreign: !ownLanguage.MatchString(lang)}
	if b.foreign {
		return body
	}
	return blank
}

func (b *block) inside(m *marks, i int, text string) kind {
	closing := strings.HasPrefix(text, b.fence) && strings.Trim(text, b.fence[:1]) == ""
	if closing {
		foreign := b.foreign
		b.end(m, i)
		if foreign || m.kinds[i-1] == body {
			return body
		}
		return blank
	}
	b.listen(text)
	switch {
	case b.foreign:
		return body
	case text == "":
		return blank
	}
	return code
}

// listen notes what a line of the block may be.
func (b *block) listen(text string) {
	l, _ := labelOf(text)
	b.asks = b.asks || l.part == doing
	b.answers = b.answers || l.part == success || l.part == failure
	b.speaks = b.speaks || b.asks && b.answers || hasArrow(text) || strings.Contains(text, "|") && ruler.MatchString(text)
}

// end closes the block before line i. One in no language that holds nothing like
// a contract is an example too, the body of an answer say.
func (b *block) end(m *marks, i int) {
	if !b.foreign && !b.speaks {
		for j := b.first; j < i && j < len(m.kinds); j++ {
			m.kinds[j] = body
		}
	}
	*b = block{}
}
