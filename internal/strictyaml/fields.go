package strictyaml

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxWord bounds what Nearest compares: a longer word is no slip of a key.
const maxWord = 64

// fieldsOf maps the keys of a struct type to the indexes of its fields.
func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		fields[name] = i
	}
	return fields
}

// unknownKey words the answer to a key that the struct at parent lacks.
func unknownKey(word, parent string, fields map[string]int) string {
	known := slices.Sorted(maps.Keys(fields))
	msg := fmt.Sprintf("unknown key %q", word)
	if parent != "" {
		msg += " in " + parent
	}
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", msg, near)
	}
	return msg + "; known are " + strings.Join(known, ", ")
}

// Nearest returns the known word that word is most probably a slip of, or ""
// when none is near.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, near := max(1, len(word)/3)+1, ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < best {
			best, near = d, k
		}
	}
	return near
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
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

func step(rows [][]int, a, b string, i, j int) int {
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
