// Package wording puts what is said to people into words that every package says alike.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
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
	letters := []rune(strings.ToLower(word))
	best, near := max(1, len(letters)/3)+1, ""
	for _, k := range known {
		if d := distance(letters, []rune(strings.ToLower(k))); d < best {
			best, near = d, k
		}
	}
	return near
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
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
