package git

import (
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/utils/diff"
)

// change puts a text in the place of the lines from..to of another.
type change struct {
	from, to int
	text     string
}

// mergeLines merges two changes of a text by lines: what both changed alike counts once; false
// where their changes touch.
func mergeLines(base, ours, theirs string) (string, bool) {
	lines, at := strings.SplitAfter(base, "\n"), 0
	a, b := changes(base, ours), changes(base, theirs)
	var out strings.Builder
	for len(a) > 0 || len(b) > 0 {
		var e change
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			e, a, b = a[0], a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].to < b[0].from: // git, too, wants a line between them
			e, a = a[0], a[1:]
		case len(a) == 0 || b[0].to < a[0].from:
			e, b = b[0], b[1:]
		default:
			return "", false
		}
		out.WriteString(strings.Join(lines[at:e.from], "") + e.text)
		at = e.to
	}
	return out.String() + strings.Join(lines[at:], ""), true
}

// changes are what makes one text of another, in order; no two touch.
func changes(from, to string) (all []change) {
	const equal, deleted = 0, -1 // what go-git's diff calls them
	at, open := 0, false
	for _, d := range diff.DoWithTimeout(from, to, 10*time.Second) { // else coarser
		lines := len(slices.Collect(strings.Lines(d.Text)))
		if d.Type == equal {
			at, open = at+lines, false
			continue
		}
		if !open {
			all, open = append(all, change{from: at, to: at}), true
		}
		if e := &all[len(all)-1]; d.Type == deleted {
			at += lines
			e.to = at
		} else {
			e.text += d.Text
		}
	}
	return all
}
