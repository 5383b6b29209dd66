package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff writes what changes of a file, in the unified form. A text that is nil is a file
// that is not there. Of texts that do not differ it writes the names: a caller's may have
// differed before they were made safe to show.
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
		if i > 2 && text != "" && end { // behind the names
			lines[i] = paint(colours).in(map[byte]tone{'+': good, '-': bad, '@': quiet}[text[0]], text) + "\n"
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

// side is the name of one side of a diff, and its text.
func side(name string, text *string) (string, []byte) {
	if text == nil {
		return "/dev/null", nil
	}
	return name, []byte(*text)
}
