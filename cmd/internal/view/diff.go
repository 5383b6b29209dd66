package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff writes a unified diff of a file. A nil text means that the file does not exist. If the texts are
// equal it writes only the header: they may have differed before they were redacted.
func Diff(w io.Writer, name string, from, to *string, colours bool) error {
	before, old := side("a/"+name, from)
	after, text := side("b/"+name, to)
	out := string(diff.Diff(before, old, after, text))
	if out == "" {
		out = fmt.Sprintf("diff %s %s\n", before, after)
	}
	lines := strings.SplitAfter(out, "\n")
	for i, line := range lines {
		text, end := strings.CutSuffix(line, "\n")
		if i > 2 && text != "" && end { // after the header
			lines[i] = paint(colours).in(map[byte]tone{'+': good, '-': bad, '@': quiet}[text[0]], text) + "\n"
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

// side returns the name and the text of one side of a diff.
func side(name string, text *string) (string, []byte) {
	if text == nil {
		return "/dev/null", nil
	}
	return name, []byte(*text)
}
