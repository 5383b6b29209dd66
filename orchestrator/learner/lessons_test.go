package learner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLessons(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    string
		text    string
		want    []string
		dropped string // reasons
	}{
		{"as-asked", LabelLearning, "LEARNING: Bind to 0.0.0.0\nLEARNING: Read the port from $PORT\n", []string{"Bind to 0.0.0.0", "Read the port from $PORT"}, ""},
		{"nothing", LabelLearning, "", nil, ""},
		{"prose", LabelLearning, "I looked at the code. It is fine.\n", nil, ""},
		{"decorated", LabelLearning, "Here they are:\n\n- **LEARNING:** Use WAL mode\n2. LEARNING 2: Close `rows`\n### Learning: Cache the regexp\n> learning - log to stderr\n```\nLEARNINGS: Test with -race\n```\n",
			[]string{"Use WAL mode", "Close `rows`", "Cache the regexp", "log to stderr", "Test with -race"}, ""},
		{"on-the-next-line-and-over-two-lines", LabelMistake, "MISTAKE:\n\n  Forgot to close the\n  response body\nMISTAKE: Used a global\n   for the store\nThat is all.\n", []string{"Forgot to close the response body", "Used a global for the store"}, ""},
		{"a-list-without-labels", LabelMistake, "## Mistakes\n- no timeout on the client\n- stdin was read in a loop\n\nGood luck.\n", []string{"no timeout on the client", "stdin was read in a loop"}, ""},
		{"labels-win-over-a-list", LabelLearning, "- just a thought of mine\nLEARNING: Use a pool", []string{"Use a pool"}, ""},
		{"the-other-label", LabelLearning, "MISTAKE: Used a global\n", nil, ""},
		{"what-says-nothing", LabelLearning, "LEARNING: Task completed successfully\nLEARNING: Generated code executed.\nLEARNING: the file generation approach worked!\nLEARNING: Code produced valid output\nLEARNING: The task was completed as expected\nLEARNING: <specific actionable insight>\nLEARNING: None\nLEARNING: ok\nLEARNING: ...\n",
			nil, "generic generic generic generic generic generic generic generic generic"},
		{"what-only-looks-like-it", LabelLearning, "LEARNING: Tests passed for task: create web server\nLEARNING: Build succeeded without errors\nLEARNING: Code passed linting checks\nLEARNING: Architecture passed review - structure is appropriate\nLEARNING: Security passed review - no vulnerabilities found\nLEARNING: Generated code executed faster with a cached regexp\nLEARNING: Use jq\n",
			[]string{"Tests passed for task: create web server", "Build succeeded without errors", "Code passed linting checks", "Architecture passed review - structure is appropriate", "Security passed review - no vulnerabilities found", "Generated code executed faster with a cached regexp", "Use jq"}, ""},
		{"no-mistakes", LabelMistake, "MISTAKE: No mistakes were made in this cycle.\nMISTAKE: none found\nMISTAKE: N/A", nil, "generic generic generic"},
		{"twice", LabelMistake, "MISTAKE: No TLS.\nMISTAKE: no  tls", []string{"No TLS.", "no tls"}, ""},
		{"one-line-end-of-a-mac-a-mark-in-front", LabelLearning, "\ufeffLEARNING: Use go vet\rLEARNING: Use gofmt -l", []string{"Use go vet", "Use gofmt -l"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ParseLessons(c.kind, c.text)
			var why []string
			for _, d := range got.Dropped {
				why = append(why, d.Why)
			}
			if diff := cmp.Diff(append([]string{}, c.want...), got.Items); diff != "" || strings.Join(why, " ") != c.dropped {
				t.Errorf("got dropped %q, want %q; items (-want +got)\n%s", why, c.dropped, diff)
			}
		})
	}
}

func TestLessonsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "LEARNING: lesson %d %s\n", i, strings.Repeat("é", 600))
	}
	got := ParseLessons(LabelLearning, b.String())
	if len(got.Items) != maxItems || len([]rune(got.Items[0])) != maxItem || len(got.Dropped) != 5000-maxItems {
		t.Errorf("lessons: got %d items of %d runes, %d dropped, want %d of %d, %d dropped",
			len(got.Items), len([]rune(got.Items[0])), len(got.Dropped), maxItems, maxItem, 5000-maxItems)
	}
}

func TestMerge(t *testing.T) {
	text, added := mergeLessons("# mine, stays\n\n- Bind to 0.0.0.0.  \n* Use WAL\n", []string{"bind to  0.0.0.0", "Use WAL!", "Log to stderr", "log to STDERR…"})
	want := "# mine, stays\n- Bind to 0.0.0.0.\n* Use WAL\n- Log to stderr\n"
	if text != want || len(added) != 1 {
		t.Errorf("merged lessons: got %q, added %q, want %q, one added", text, added, want)
	}
	if again, added := mergeLessons(text, []string{"Log to stderr"}); again != text || len(added) != 0 {
		t.Errorf("lessons merged twice: got %q, added %q, want %q, none added", again, added, text)
	}
	if text, _ := mergeLessons("", nil); text != "" {
		t.Errorf("lessons merged from nothing: got %q, want none", text)
	}
}

func TestMergeForgetsTheOldest(t *testing.T) {
	var text string
	for i := range 300 {
		text, _ = mergeLessons(text, []string{fmt.Sprintf("lesson %d %s", i, strings.Repeat("x", 300))})
	}
	items := filled(text)
	if len(text) > maxBytes || len(items) > maxLines || !strings.HasPrefix(items[len(items)-1], "- lesson 299 ") || !slices.IsSortedFunc(items, func(a, b string) int {
		var x, y int
		fmt.Sscanf(a, "- lesson %d", &x)
		fmt.Sscanf(b, "- lesson %d", &y)
		return x - y
	}) {
		t.Errorf("lessons: got %d bytes, %d lessons, the last %.20q, want at most %d, %d, in order until lesson 299",
			len(text), len(items), items[len(items)-1], maxBytes, maxLines)
	}
}

// FuzzLessons checks that a stored lesson is recognized again in any answer.
func FuzzLessons(f *testing.F) {
	f.Add("LEARNING: a b\n- **LEARNING:** c d.", "- a b\n")
	f.Add("1. Learning 1 - x y\n  z\n\x00\xff", "# t\r\n* q")
	f.Fuzz(func(t *testing.T, text, file string) {
		for _, kind := range []string{LabelLearning, LabelMistake} {
			found := ParseLessons(kind, text)
			once, _ := mergeLessons(file, found.Items)
			twice, added := mergeLessons(once, found.Items)
			if len(once) < maxBytes/2 && strings.Count(once, "\n") < maxLines && (twice != once || len(added) > 0) {
				t.Errorf("lessons of %q merged twice with %q: got %q, added %q, want %q, none added",
					text, file, twice, added, once)
			}
			for _, item := range found.Items {
				if strings.ContainsAny(item, "\r\n") {
					t.Errorf("item of %q: got %q, want a single line", text, item)
				}
			}
		}
	})
}
