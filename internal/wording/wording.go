// Package wording puts what is said to people into words that every package says alike.
package wording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/xrash/smetrics"
)

// OneLine joins a text of several lines.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Unix is a text whose lines end as they do on Unix, without a byte order mark.
func Unix(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
}

// Cut keeps a text to so many characters, the last of which shows that it was longer.
func Cut(text string, most int) string {
	end, count := 0, 0
	for at := range text {
		if count++; count == most {
			end = at
		}
		if count > most {
			return text[:end] + "…"
		}
	}
	return text
}

// CutMark is the end of a text that Short has cut.
const CutMark = " … [cut]"

// Short keeps a text to so many bytes, and says so.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	whole := strings.ToValidUTF8(text[:most-len(CutMark)], "") // drops a character cut in two
	return strings.TrimRightFunc(whole, unicode.IsSpace) + CutMark
}

// Count is a number of things: 1 call, 2 calls.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Thousands groups digits: 1,234,567.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// OneOf lists words: a, b or c.
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// longest is the longest word that is compared, in bytes; the work grows with
// its square.
const longest = 64

// Near is the known word that word is most probably a slip of, "" when none is
// near: a third of the letters may differ, and one always. Case is no difference.
func Near(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	best, near := max(1, len(word)/3)+1, ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best {
			best, near = d, k
		}
	}
	return near
}

// distance counts the insertions, deletions and replacements that turn a into b. The
// same letters in another order, the commonest slip, are one.
func distance(a, b string) int {
	d := smetrics.WagnerFischer(a, b, 1, 1, 1)
	if inOrder(a) == inOrder(b) {
		d = min(d, 1)
	}
	return d
}

func inOrder(word string) string { return string(slices.Sorted(slices.Values([]byte(word)))) }
