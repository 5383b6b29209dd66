package spec

import "testing"

// A separator stands between two texts, and a space after a label without its value.
func TestPhrase(t *testing.T) {
	var p phrase
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"Input:", "Input:"}, {"x", "Input: x"}, {"", "Input: x"}, {"y", "Input: x, y"},
	} {
		if p.add(", ", c.text); p.String() != c.want {
			t.Errorf("after %q: got %q, want %q", c.text, p.String(), c.want)
		}
	}
}
