package verdict

import (
	"regexp"
	"strings"

	"abl/internal/nearest"
)

// fence is a line that opens or closes a code block.
type fence struct {
	mark byte
	size int
	info string
}

// fenceOf recognises a fence line. As in Markdown, three backquotes followed by
// a further one on the same line are inline code.
func fenceOf(line string) (fence, bool) {
	s := strings.TrimSpace(line)
	if !strings.HasPrefix(s, "```") && !strings.HasPrefix(s, "~~~") {
		return fence{}, false
	}
	f := fence{mark: s[0]}
	f.size = len(s) - len(strings.TrimLeft(s, s[:1]))
	f.info = strings.TrimSpace(s[f.size:])
	return f, f.mark == '~' || !strings.Contains(f.info, "`")
}

func (f fence) closedBy(line string) bool {
	end, ok := fenceOf(line)
	return ok && end.mark == f.mark && end.size >= f.size && end.info == ""
}

// structured is the beginning of an entry in a table or in a block quote.
var structured = regexp.MustCompile("^ *[>|][ >|*_#`-]*(?i:spec)\\b")

var (
	ruleLine = regexp.MustCompile(`^ *(?:-{3,}|\*{3,}|_{3,}|={3,}|(?:[-*_] ){2,}[-*_])$`)
	boldLine = regexp.MustCompile(`^ *(?:\*\*[^*]+\*\*|__[^_]+__):?$`)
)

// decoration reports lines that carry no statement: headings, titles in bold,
// rules.
func decoration(line string) bool {
	line = strings.TrimRight(line, " ")
	return ruleLine.MatchString(line) || boldLine.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "#")
}

var anyLabel = regexp.MustCompile("^[ >*_#`•–—\\-\\d.)\\p{So}\\x{FE0F}]*([A-Za-z]{4,12})[*_`]* *[:：]")

// nearMiss names the label that a line probably wanted to begin with, "" for none.
func nearMiss(line string) (word, meant string) {
	m := anyLabel.FindStringSubmatch(plainHead(line))
	if m == nil {
		return "", ""
	}
	if _, is := fieldOf(m[1]); is {
		return "", ""
	}
	return m[1], nearest.Word(m[1], fieldNames[:])
}
