package git

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/utils/diff"
)

// change replaces the lines from..to of a text.
type change struct {
	from, to int
	lines    [][]byte

	first, last int // between which it can stand, where lines repeat
}

// mergeLines merges two changes of a text by lines, as git does: what both changed alike
// counts once; false where their changes touch.
func mergeLines(base, ours, theirs []byte) ([]byte, bool) {
	lines, at := bytes.SplitAfter(base, []byte("\n")), 0
	a, b := changes(base, ours, lines), changes(base, theirs, lines)
	var out []byte
	for len(a) > 0 || len(b) > 0 {
		var e change
		switch {
		case len(a) > 0 && len(b) > 0 && alike(a[0], b[0]):
			e, a, b = a[0], a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].last < b[0].first: // git, too, wants a line between them
			e, a = a[0], a[1:]
		case len(a) == 0 || b[0].last < a[0].first:
			e, b = b[0], b[1:]
		default:
			return nil, false
		}
		out = append(append(out, bytes.Join(lines[at:e.from], nil)...), bytes.Join(e.lines, nil)...)
		at = e.to
	}
	return append(out, bytes.Join(lines[at:], nil)...), true
}

func alike(a, b change) bool {
	return a.from == b.from && a.to == b.to && slices.EqualFunc(a.lines, b.lines, bytes.Equal)
}

// changes are what takes the lines of one text to those of another, in order; no two touch.
func changes(from, to []byte, base [][]byte) (all []change) {
	const equal, deleted = 0, -1 // what go-git's diff calls them
	at, open := 0, false
	for _, d := range diff.DoWithTimeout(string(from), string(to), 10*time.Second) { // else coarser
		lines := bytes.SplitAfter([]byte(d.Text), []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		if d.Type == equal {
			at, open = at+len(lines), false
			continue
		}
		if !open {
			all, open = append(all, change{from: at, to: at}), true
		}
		e := &all[len(all)-1]
		if d.Type == deleted {
			at += len(lines)
			e.to = at
		} else {
			e.lines = append(e.lines, lines...)
		}
	}
	for i := range all {
		all[i].slide(base)
	}
	return all
}

// slide finds how far up and down what a change takes away, or adds, is followed by the same.
func (e *change) slide(base [][]byte) {
	e.first, e.last = e.from, e.to
	for _, lines := range [][][]byte{base[e.from:e.to], e.lines} {
		n, up, down := len(lines), 0, 0
		for n > 0 && up < e.from && bytes.Equal(base[e.from-up-1], lines[n-1-up%n]) {
			up++
		}
		for n > 0 && e.to+down < len(base) && bytes.Equal(base[e.to+down], lines[down%n]) {
			down++
		}
		e.first, e.last = min(e.first, e.from-up), max(e.last, e.to+down)
	}
}
