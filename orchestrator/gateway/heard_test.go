package gateway

import (
	"strings"
	"testing"
)

// In whatever pieces an answer comes, what is kept of it is its end.
func TestEndIsTheLastBytes(t *testing.T) {
	for _, sizes := range [][]int{{1}, {10}, {4, 6}, {11}, {3, 25}, {10, 1}, {7, 7, 7}, {10, 10}, {1, 9, 2, 30, 1}} {
		e, all := &end{make([]byte, 0, 10)}, ""
		for i, n := range sizes {
			piece := strings.Repeat(string(rune('a'+i)), n-1) + "|"
			all += piece
			e.note([]byte(piece))
		}
		if want := all[max(len(all)-10, 0):]; string(e.text) != want {
			t.Errorf("%v: %q, want %q", sizes, e.text, want)
		}
	}
}
