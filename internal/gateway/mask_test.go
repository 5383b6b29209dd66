package gateway

import (
	"strings"
	"testing"
)

// FuzzMask: the key is never in what passes, the length stays, and without a key
// in it the text stays as it is, wherever it is cut.
func FuzzMask(f *testing.F) {
	f.Add("abcabd", "xxabcabdyy", 4)
	f.Add("aaaa", "aaaaaaaaaaa", 3)
	f.Add("abab", "abaabab", 5)
	f.Add("k", "kkk", 1)
	f.Fuzz(func(t *testing.T, key, text string, cut int) {
		if key == "" || len(key) > 100 || len(text) > 1000 || strings.Contains(key, "*") {
			return
		}
		at := (cut & 0xffff) % (len(text) + 1)
		m := mask{key: []byte(key)}
		got := string(m.pass([]byte(text[:at])))
		got += string(m.pass([]byte(text[at:]))) + string(m.held)
		if len(got) != len(text) || strings.Contains(got, key) {
			t.Fatalf("key %q: %q became %q", key, text, got)
		}
		if want := strings.ReplaceAll(text, key, strings.Repeat("*", len(key))); got != want {
			t.Fatalf("key %q: %q became %q, want %q", key, text, got, want)
		}
	})
}
