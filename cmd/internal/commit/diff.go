package commit

import (
	"fmt"
	"strings"

	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/orchestrator/codecommit/fence"
)

// plan shows what a dry run would change, as a diff.
func (s *session) plan(edits []fence.Edit) {
	if s.in.Bool("json") {
		return
	}
	const most = 64 << 20
	colour := view.ColoursFor(s.in.Bare.Stdout)
	for _, e := range edits {
		old, err := hostfs.Read(s.root, e.Path, most)
		from, to := "a/"+e.Path, "b/"+e.Path
		if err != nil {
			from = "/dev/null"
		}
		if e.Delete {
			to = "/dev/null"
		}
		fmt.Fprintf(s.in.Result, "%s\n%s\n", colour.Quiet("--- "+s.in.Outlet.Line(from)), colour.Quiet("+++ "+s.in.Outlet.Line(to)))
		for _, l := range unified(split(string(old)), split(e.Content)) {
			text := strings.ReplaceAll(s.in.Outlet.String(l), "\n", " ")
			switch l[0] {
			case '+':
				text = colour.Good(text)
			case '-':
				text = colour.Bad(text)
			case '@':
				text = colour.Quiet(text)
			}
			fmt.Fprintln(s.in.Result, text)
		}
	}
	s.say("this would be done to " + counted(len(edits), "file", "files") + "; nothing was changed")
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += " (without a line end)"
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// around is how many equal lines stand around a change.
const around = 3

// op is a line of a diff: ' ', '-' or '+' and the text.
type op struct {
	mark byte
	text string
}

// unified writes the difference of two texts in hunks.
func unified(a, b []string) []string {
	ops := compare(a, b)
	var out []string
	aLine, bLine := 1, 1
	for i := 0; i < len(ops); {
		if ops[i].mark == ' ' {
			i, aLine, bLine = i+1, aLine+1, bLine+1
			continue
		}
		begin := max(0, i-around)
		end, last := i, i
		for end < len(ops) && end-last <= 2*around {
			if ops[end].mark != ' ' {
				last = end
			}
			end++
		}
		end = min(last+1+around, len(ops))
		a0, b0 := aLine-(i-begin), bLine-(i-begin)
		an, bn := 0, 0
		var lines []string
		for _, o := range ops[begin:end] {
			if o.mark != '+' {
				an++
			}
			if o.mark != '-' {
				bn++
			}
			lines = append(lines, string(o.mark)+o.text)
		}
		out = append(append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@", a0, an, b0, bn)), lines...)
		aLine, bLine, i = a0+an, b0+bn, end
	}
	return out
}

// compare finds what is common to two texts. Their equal beginnings and ends are
// cut off first; what is left and too large to compare counts as replaced.
func compare(a, b []string) []op {
	const most = 4 << 20 // cells of the table
	var head, tail []op
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head, a, b = append(head, op{' ', a[0]}), a[1:], b[1:]
	}
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for _, l := range a[len(a)-n:] {
		tail = append(tail, op{' ', l})
	}
	a, b = a[:len(a)-n], b[:len(b)-n]
	if len(a)*len(b) > most {
		for _, l := range a {
			head = append(head, op{'-', l})
		}
		for _, l := range b {
			head = append(head, op{'+', l})
		}
		return append(head, tail...)
	}
	return append(append(head, common(a, b)...), tail...)
}

// common is the longest common subsequence, by the table of lengths.
func common(a, b []string) []op {
	width := len(b) + 1
	table := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	var ops []op
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			ops, i, j = append(ops, op{' ', a[i]}), i+1, j+1
		case j == len(b) || i < len(a) && table[(i+1)*width+j] >= table[i*width+j+1]:
			ops, i = append(ops, op{'-', a[i]}), i+1
		default:
			ops, j = append(ops, op{'+', b[j]}), j+1
		}
	}
	return ops
}
