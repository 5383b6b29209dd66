package spec

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// law checks that contracts have unique ids, existing lines, and action and result on one line
// each.
func law(t *testing.T, s Spec) {
	t.Helper()
	lines := strings.Split(s.Text, "\n")
	ids := map[string]bool{}
	for _, c := range s.Contracts {
		if ids[c.ID] || !regexp.MustCompile(fmt.Sprintf(`^P%d\.C[1-9]\d*$`, s.Number)).MatchString(c.ID) {
			t.Errorf("id: got %q after %v, want a new one of phase %d", c.ID, ids, s.Number)
		}
		ids[c.ID] = true
		if c.Line < 1 || c.Line > len(lines) {
			t.Fatalf("line of %s: got %d, want 1 to %d", c.ID, c.Line, len(lines))
		}
		if c.Action == "" || c.Result == "" || strings.Contains(c.Says(), "\n") {
			t.Errorf("%s: got action %q, result %q, want both, each on one line", c.ID, c.Action, c.Result)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "phase1.md: the spec is empty"},
		{"white space", "\ufeff \r\n", "phase1.md: the spec is empty"},
		{"too large", "# Phase 1: x\na → b\n" + strings.Repeat("x", MaxBytes), "phase1.md: the spec is larger than 1048576 bytes"},
		{"not UTF-8", "# Phase 1: x\na → b\n\xff", "phase1.md:3: the spec is not UTF-8 text"},
		{"NUL", "# Phase 1: x\na \x00→ b", "phase1.md:2: the spec is not UTF-8 text"},
		{"no title", "words\na → b", `phase1.md:1: the first line is "words", want "# Phase 1: Title"`},
		{"no title after front matter", "---\na: b\n---\n\nwords\na → b", `phase1.md:5: the first line is "words", want "# Phase 1: Title"`},
		{"front matter without an end", "---\n# Phase 1: x\na → b", `phase1.md:1: the first line is "---", want "# Phase 1: Title"`},
		{"title without text", "# Phase 1:\na → b", `phase1.md:1: the first line is "# Phase 1:", want "# Phase 1: Title"`},
		{"title on line 2", "\n# Phase 1: x\na → b", `phase1.md:1: the first line is "", want "# Phase 1: Title"`},
		{"number", "# Phase 2: x\na → b", "phase1.md:1: the first line has phase number 2, but the file name has 1"},
		{"huge number", "# Phase 99999999999999999999: x\na → b",
			"phase1.md:1: the first line has phase number 99999999999999999999, but the file name has 1"},
		{"too many", "# Phase 1: x\n" + strings.Repeat("a → b\n", MaxContracts+1), "phase1.md:1002: the spec has more than 1000 contracts"},
		{"no contract", "# Phase 1: x\nwords", "phase1.md: there is no contract"},
		{"no contract among contracts", "# Phase 1: x\n## Contracts\n", "phase1.md: there is no contract"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := Parse("phase1.md", []byte(c.text), 1)
			if len(problems) != 1 || problems[0].String() != c.want || !problems[0].Fatal || problems[0].Phase != 1 {
				t.Errorf("got %v, want a fatal %q", problems, c.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	s, problems := Parse("p", []byte("# Phase 1: x\na → b\n\n→ c\n\nd →\n\n<!-- e → f\n"), 1)
	want := `p:4: "→ c" has no action
p:6: "d →" has no result
p:8: this comment is not closed, so the rest of the spec is ignored
`
	var got strings.Builder
	for _, line := range []int{4, 6, 8} {
		for _, p := range problems {
			if p.Line == line {
				fmt.Fprintln(&got, p)
				if p.Fatal {
					t.Errorf("problem: got %v as an error, want a warning", p)
				}
			}
		}
	}
	if got.String() != want || len(problems) != 3 {
		t.Errorf("problems: got\n%v\nwant\n%s", problems, want)
	}
	if len(s.Contracts) != 1 {
		t.Errorf("contracts: got %v, want one", s.Contracts)
	}
}

func TestTextIsKept(t *testing.T) {
	unix, _ := Parse("p", []byte("# Phase 3: A title\n\n## Context\nwhy\n\n## Contracts\na → b\n"), 3)
	dos, _ := Parse("p", []byte("\ufeff# Phase 3: A title\r\n\r\n## Context\r\nwhy\r\n\r\n## Contracts\r\na → b\r\n"), 3)
	if diff := cmp.Diff(unix, dos, cmpopts.EquateComparable(Contract{})); diff != "" {
		t.Errorf("spec with other line ends (-want +got)\n%s", diff)
	}
	if unix.Title != "A title" || !unix.HasContext || unix.Contracts[0].ID != "P3.C1" {
		t.Errorf("spec: got %+v, want A title, a context and the id P3.C1", unix)
	}
}

func TestExtends(t *testing.T) {
	const old = "# Phase 1: x\na → b\n"
	parse := func(text string) Spec {
		s, _ := Parse("p", []byte(text), 1)
		return s
	}
	was := parse(old)
	for _, c := range []struct {
		name, now string
		want      bool
	}{
		{"the-same", old, true},
		{"other-line-ends", "# Phase 1: x\r\na → b\r\nc → d\r\n", true},
		{"one-more", old + "c → d\n", true},
		{"words", old + "\nWhy it is so.\n", true},
		{"empty-lines", old + "\n \n", true},
		{"edited", "# Phase 1: x\na → c\nc → d\n", false},
		{"taken-out", "# Phase 1: x\n", false},
		{"put-before", "# Phase 1: x\nc → d\na → b\n", false},
		{"the-last-line-goes-on", old + "  and c\n", false},
		{"another-result", old + "→ c\n", true}, // an error, which leaves the contract what it was
		{"it-is-no-contract-any-more", old + "## Contracts\nc → d\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(c.now).Extends(was.SHA256, len(was.Text)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	open := parse("# Phase 1: x\na → 20")
	if now := parse("# Phase 1: x\na → 200"); now.Extends(open.SHA256, len(open.Text)) {
		t.Error("Extends with a longer last line: got true, want false")
	}
	if now := parse("# Phase 1: x\na → 20\nc → d"); !now.Extends(open.SHA256, len(open.Text)) {
		t.Error("Extends with a line after a last one without an end: got false, want true")
	}
	words := parse("# Phase 1: x\na → b\nThis is law")
	if now := parse("# Phase 1: x\na → b\nThis is lawless\n"); now.Extends(words.SHA256, len(words.Text)) {
		t.Error("Extends with longer words on the last line: got true, want false")
	}
	if was.Extends(open.SHA256, len(open.Text)) || was.Extends(was.SHA256, -1) || was.Extends(was.SHA256, 1000) {
		t.Error("Extends with sizes that do not fit: got true, want false")
	}
}

// sameWithoutLabels checks that each contract with an arrow stays one if labels are not read.
func sameWithoutLabels(t *testing.T, s Spec) {
	t.Helper()
	r := &reader{Spec: Spec{Number: 1, File: s.File}, most: maxProblems, counted: map[bool]int{}}
	lines := strings.Split(s.Text, "\n")
	r.chapter(r.parseTree(lines, skipFrontMatter(lines)))
	for _, c := range r.Contracts[:min(len(r.Contracts), MaxContracts)] {
		if !slices.ContainsFunc(s.Contracts, func(now Contract) bool { return now.Line == c.Line && now.Says() == c.Says() }) {
			t.Errorf("contract on line %d: got none or another one, want %q", c.Line, c.Says())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"# Phase 1: x\n\n## Context\nwhy\n\n## Contracts\n- a → b\n  → c\n> - d\n>   -> e\n",
		"# Phase 1: x\n| Action | Result |\n|---|---|\n| a | b |\n| c \\| d | e → f |\n```json\n{}\n```\n",
		"# Phase 1: x\n```\na → b\n~~~\n**c** => `d`\n<!-- x\n-\n  \n  e → f {\n}\n",
		"# Phase 1: x\n### a\nInput: b\n- Then c\n- And\n  d\n#### Fail\n\n- e → f\n",
	} {
		f.Add(seed)
	}
	data, _ := os.ReadFile("testdata/lines.txt")
	for text := range strings.SplitSeq(string(data), "\n=") {
		f.Add("# Phase 1: x\n" + odd.Replace(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := Parse("phase1.md", []byte(text), 1)
		law(t, s)
		if len(s.Contracts) == 0 && len(problems) == 0 {
			t.Error("Parse: got no contract and no problem, want at least one of them")
		}
		sameWithoutLabels(t, s)
		again, _ := Parse("phase1.md", []byte(s.Text), 1)
		if !strings.HasPrefix(s.Text, "\ufeff") && !slices.Equal(s.Contracts, again.Contracts) {
			t.Errorf("contracts parsed again (-want +got)\n%s",
				cmp.Diff(s.Contracts, again.Contracts, cmpopts.EquateComparable(Contract{})))
		}
	})
}

// The time for a spec of the maximum size is linear in its size. There is no deadline: quadratic
// work would exceed the timeout of go test.
func TestLargestSpecs(t *testing.T) {
	if testing.Short() {
		t.Skip("the largest specs take half a second each")
	}
	for _, c := range []struct{ above, line string }{
		{"", "a → b\n"}, {"", "  x\n"}, {"", "→ \n"}, {"", "`→"}, {"", "- a →\n"}, {"", "|a|b|\n|-|-|\n"}, {"", "```\n"}, {"", "```js\n"}, {"", "(\n)\n"}, {"", "<!--\n"},
		{"", "When a\nThen b\n"}, {"\nWhen a\nThen b\n", "And c\n"},
		{"\nWhen " + strings.Repeat("a", MaxBytes/4) + "\n", "Then b\n"},
	} {
		line, head := c.line, "# Phase 1: x\na → b\n"+c.above
		text := head + strings.Repeat(line, (MaxBytes-len(head))/len(line))
		s, problems := Parse("phase1.md", []byte(text), 1)
		if len(s.Contracts) == 0 || len(problems) > 2*maxProblems {
			t.Errorf("spec of %q: got %d contracts and %d problems, want at least 1 and at most %d",
				line, len(s.Contracts), len(problems), 2*maxProblems)
		}
	}
}

// YAML front matter is not a part of a spec, and line numbers still count it.
func TestFrontMatterIsSkipped(t *testing.T) {
	for _, c := range []struct{ name, front string }{
		{"dashes", "---\ntitle: x → y\ntags: [a, b]\n---\n"},
		{"dots", "---\ntitle: x\n...\n"},
		{"blank-lines-after-it", "---  \ntitle: x\n---\n\n\n"},
		{"empty", "---\n---\n"},
		{"crlf", "---\r\ntitle: x\r\n---\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, problems := Parse("phase1.md", []byte(c.front+"# Phase 1: Links\n\nGET / → 200\n"), 1)
			want := strings.Count(c.front, "\n") + 3
			if len(problems) > 0 || s.Title != "Links" || len(s.Contracts) != 1 || s.Contracts[0].Line != want || s.Contracts[0].Says() != "GET / → 200" {
				t.Errorf("got %q, %+v, %v, want Links with one contract in line %d", s.Title, s.Contracts, problems, want)
			}
		})
	}
}
