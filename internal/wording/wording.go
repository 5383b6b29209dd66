// Package wording formats text, numbers and lists for messages.
package wording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// OneLine joins the lines of a text.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Unix returns a text with Unix line ends and without a byte order mark.
func Unix(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
}

// Cut cuts a text to most characters, the last of which is an ellipsis.
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

// Short cuts a text to most bytes, with CutMark at the end.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	whole := strings.ToValidUTF8(text[:most-len(CutMark)], "") // drops an incomplete character
	return strings.TrimRightFunc(whole, unicode.IsSpace) + CutMark
}

// Count returns a number with a noun: "1 call", "2 calls".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Thousands groups digits: "1,234,567".
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// OneOf joins words: "a, b or c".
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Few joins the first texts, at most most of them, and the number of the others.
func Few(texts []string, most int, between string) string {
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, between)
}

// longest is the maximum length of a compared word in bytes. The work grows with the square of the
// length.
const longest = 64

// Near returns the most similar known word, "" if none is similar. Up to a third of the letters may
// differ, and always one. It ignores case.
func Near(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	letters := []rune(strings.ToLower(word))
	best, near := max(1, len(letters)/3)+1, ""
	for _, k := range known {
		if d := distance(letters, []rune(strings.ToLower(k))); d < best {
			best, near = d, k
		}
	}
	return near
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbours that
// turn a into b.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			rows[i][j] = step(rows, a, b, i, j)
		}
	}
	return rows[len(a)][len(b)]
}

func step(rows [][]int, a, b []rune, i, j int) int {
	replace := rows[i-1][j-1]
	if a[i-1] != b[j-1] {
		replace++
	}
	d := min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, rows[i-2][j-2]+1)
	}
	return d
}
