package ignore

import (
	"strings"
	"testing"
	"time"
)

func TestIgnored(t *testing.T) {
	for _, c := range []struct {
		rules string
		in    string // ignored; a folder ends with /
		out   string
	}{
		{"foo", "foo a/foo foo/", "foobar a/xfoo"},
		{"foo/", "foo/ a/foo/", "foo a/foo"},
		{"/foo", "foo", "a/foo"},
		{"a/b", "a/b", "x/a/b b"},
		{"*.log", "x.log a/y.log .log", "x.logs"},
		{"*.log\n!keep.log", "x.log", "keep.log"},
		{"!x\nx", "x", ""},
		{"**/a/b", "a/b a/a/b x/a/y/a/b", "b a/x/b"},
		{"*\n!src/", "src/x a", "src/"},
		{"*.log\n!/keep", "keep/x.log", "keep/x"},
		{"**/b", "b a/b a/c/b", "ab"},
		{"a/**", "a/b a/b/c a/d/", "a"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb ab"},
		{"a/**/b\n!a/b/", "a/b a/x/b a/x/b/", "a/b/"},
		{"a**b", "ab axb x/ab", "ax/b"},
		{"a/x**/b", "a/xy/b", "a/y/b"},
		{"a/*/b", "a/x/b", "a/b a/x/y/b"},
		{"?", "a b", "ab"},
		{"[a-c]x", "ax cx", "dx"},
		{"[!a-c]x", "dx", "ax"},
		{"[[:digit:][:space:]]", "7", "x"},
		{"[[:nonsense:]]", "", "n :"},
		{"[[:NONSENSE:]]", "", "N] :]"},
		{"[[:alpha:]", "", "a : [a"},
		{"[[:space:]-_]", "· - _", "A"},
		{"[[:punct:]]", ". - : [ ] ` ~", "a 0 ·"},
		{"[a", "", "a [a"},
		{"[-a]", "- a", "b"},
		{"[a-]", "- a", "b"},
		{"[!-x]", "a", "- x"},
		{"[a-c-x]", "b - x", "e"},
		{"[--]", "-", "a"},
		{"[]-]", "] -", "a"},
		{"[!]", "", "! ]"},
		{"a[/x]b", "axb", "a/b"},
		{`.env[-_]key`, ".env-key .env_key", ".env key"},
		{`\#x`, "#x", "x"},
		{`\!x`, "!x", "x"},
		{`a\`, "", `a a\`},
		{`\*`, "*", "x"},
		{`\/x`, "", "x a/x"},
		{"x\\ ", "x·", "x"},
		{"x   ", "x", ""},
		{"x\\   ", "x·", "x x··"},
		{"?", "x", "é"}, // of two bytes
		{"#x", "", "#x x"},
		{"x\r", "x", ""},
		{"\xef\xbb\xbfx", "x", ""},
		{"x\x00y", "x", "xy"},
		{"/", "", "x"},
		{"a/b/*", "a/b/c", "a/b/c/d a/b"},
		{"*", "x a/ a/b", ""},
		{"conf**/x", "conf/x conf1/x", "con/x conf confx conf1/2/x"},
		{"[c-a]", "c", "a b"},
		{`a\\   `, `a\`, "a"},
	} {
		rules := (*Rules)(nil).Below("", []byte(c.rules))
		check := func(paths string, want bool) {
			for path := range strings.SplitSeq(paths, " ") {
				path = strings.ReplaceAll(path, "·", " ")
				name, dir := strings.CutSuffix(path, "/")
				if name != "" && rules.Ignored(name, dir) != want {
					t.Errorf("rules %q: Ignored(%q): got %v, want %v", c.rules, path, !want, want)
				}
			}
		}
		check(c.in, true)
		check(c.out, false)
	}
}

func TestNearerRulesOutrank(t *testing.T) {
	rules := Exclude([]byte("*.a\n*.b")).Below("", []byte("!x.a\n*.c")).Below("sub/", []byte("!x.c\n/only"))
	for path, want := range map[string]bool{
		"sub/y.a": true, "sub/x.a": false, "sub/x.b": true, "sub/x.c": false, "sub/y.c": true,
		"sub/only": true, "sub/deep/only": false,
	} {
		if got := rules.Ignored(path, false); got != want {
			t.Errorf("Ignored(%q): got %v, want %v", path, got, want)
		}
	}
}

// A pattern that would take a backtracking matcher years is matched within the timeout of go test.
func TestNoBackTracking(t *testing.T) {
	rules := Exclude([]byte("x/" + strings.Repeat("*a", 200) + "*b\n" + strings.Repeat("**/a*/", 60) + "b"))
	start := time.Now()
	if rules.Ignored("x/"+strings.Repeat("a", 3000), false) || rules.Ignored(strings.Repeat("a/", 1500)+"c", false) {
		t.Error("Ignored of long paths: got true, want false")
	}
	t.Logf("took %v", time.Since(start))
}

// No rule panics, and a name with every byte escaped matches only itself.
func FuzzRules(f *testing.F) {
	f.Add([]byte("*.log\n!a/**/b\n[!a-z]"), "a/x/b")
	f.Add([]byte(`[[:alpha:]\]-x]`), "a")
	f.Add([]byte("**"), "")
	f.Fuzz(func(t *testing.T, rules []byte, path string) {
		Exclude(rules).Ignored(path, len(rules)%2 == 0)
		if strings.ContainsAny(path, "/\n\x00\r") || path == "" {
			return
		}
		var quoted strings.Builder
		for i := range len(path) {
			quoted.WriteByte('\\')
			quoted.WriteByte(path[i])
		}
		own := Exclude([]byte(quoted.String()))
		if !own.Ignored(path, false) || own.Ignored(path+"x", false) {
			t.Errorf("quoted rule of %q: got matches %v and, of a longer path, %v, want true and false",
				path, own.Ignored(path, false), own.Ignored(path+"x", false))
		}
	})
}
