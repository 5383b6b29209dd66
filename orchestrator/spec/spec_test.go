package spec

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// show prints contracts as "line id: action → result", one a line.
func show(contracts []Contract) string {
	var b strings.Builder
	for _, c := range contracts {
		mark := ""
		if c.Absence {
			mark = " (absence)"
		}
		fmt.Fprintf(&b, "%d %s: %s → %s%s\n", c.Line, c.ID, c.Action, c.Result, mark)
	}
	return b.String()
}

func TestContractsInTheFormsPeopleWrite(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain lines", "GET / → 200\nGET /x → 404\n", "2 P1.C1: GET / → 200\n3 P1.C2: GET /x → 404\n"},
		{"letters", "a -> b\nc => d\ne --> f\ng ==> h\n",
			"2 P1.C1: a → b\n3 P1.C2: c → d\n4 P1.C3: e → f\n5 P1.C4: g → h\n"},
		{"unicode without spaces", "GET /→200\n", "2 P1.C1: GET / → 200\n"},
		{"letters inside words", "see ptr->field and x=>y\na -> b\n", "3 P1.C1: a → b\n"},
		{"lists", "- a → b\n* c → d\n+ e → f\n1. g → h\n2) i → j\n- [ ] k → l\n",
			"2 P1.C1: a → b\n3 P1.C2: c → d\n4 P1.C3: e → f\n5 P1.C4: g → h\n6 P1.C5: i → j\n7 P1.C6: k → l\n"},
		{"a list mark alone", "-  \n  a → b\n", "3 P1.C1: a → b\n"},
		{"nested lists", "- Login\n  - good → 200\n  - bad → 401\n", "3 P1.C1: good → 200\n4 P1.C2: bad → 401\n"},
		{"indented on", "POST /login\n  with a wrong password\n    → 401\n    and no cookie\nGET / → 200\n",
			"2 P1.C1: POST /login with a wrong password → 401 and no cookie\n6 P1.C2: GET / → 200\n"},
		{"list item indented on", "- POST /a\n  → 200 {id}\n- GET /a → 200\n",
			"2 P1.C1: POST /a → 200 {id}\n4 P1.C2: GET /a → 200\n"},
		{"arrow at the line's end", "POST /a →\n200\n", "2 P1.C1: POST /a → 200\n"},
		{"arrow at the line's start", "POST /a\n→ 200\nPOST /b\n-> 201\n", "2 P1.C1: POST /a → 200\n4 P1.C2: POST /b → 201\n"},
		{"brackets close later", "GET /a → 200 {\n  \"id\": 1\n}\nGET /b → 200\n",
			"2 P1.C1: GET /a → 200 { \"id\": 1 }\n5 P1.C2: GET /b → 200\n"},
		{"two under a title line", "Login:\n  a → b\n  c → d\n", "3 P1.C1: a → b\n4 P1.C2: c → d\n"},
		{"paragraph with indented contract after one", "a → b\n  c → d\n", "2 P1.C1: a → b\n3 P1.C2: c → d\n"},
		{"emphasis", "- **GET /** → `200`\n- `GET /x → 404`\n- **POST /y → 201**\n- `a` and `b` → `c` or `d`\n",
			"2 P1.C1: GET / → 200\n3 P1.C2: GET /x → 404\n4 P1.C3: POST /y → 201\n5 P1.C4: `a` and `b` → `c` or `d`\n"},
		{"arrow in code before the arrow", "send `a → b` → 200\n", "2 P1.C1: send `a → b` → 200\n"},
		{"table", "| Action | Expected result |\n|---|---|\n| GET / | 200 |\n| **POST /** | `201` |\n",
			"4 P1.C1: GET / → 200\n5 P1.C2: POST / → 201\n"},
		{"table with more columns", "| # | Request | Note | Response |\n|--|--|--|--|\n| 1 | GET / | x | 200 |\n",
			"4 P1.C1: GET / → 200\n"},
		{"table of arrows", "| # | Contract |\n|:-:|---|\n| 1 | GET / → 200 |\n| 2 | a \\| b → c |\n",
			"4 P1.C1: GET / → 200\n5 P1.C2: a | b → c\n"},
		{"two columns among contracts", "## Contracts\nWhat | Why\n--- | ---\nGET / | 200\n\nafter\n", "5 P1.C1: GET / → 200\n"},
		{"two columns elsewhere", "a → b\n\n| Term | Meaning |\n|---|---|\n| x | y |\n", "2 P1.C1: a → b\n"},
		{"code block", "```\nGET / → 200\n# words\nGET /x → 404\n```\n", "3 P1.C1: GET / → 200\n5 P1.C2: GET /x → 404\n"},
		{"code block of another language", "```js\nconst f = (a) => b\n```\na → b\n", "5 P1.C1: a → b\n"},
		{"result with a body", "- GET /a → 200 with:\n  ```json\n  {\"id\": 1}\n  ```\n- GET /b → 200\n",
			"2 P1.C1: GET /a → 200 with: {\"id\": 1}\n6 P1.C2: GET /b → 200\n"},
		{"quoted", "> - GET /a\n>   → 200\n> GET /b → 201\n", "2 P1.C1: GET /a → 200\n4 P1.C2: GET /b → 201\n"},
		{"heading", "## Contracts\n### GET / → 200\nwords\n", "3 P1.C1: GET / → 200\n"},
		{"comment", "<!-- a → b -->\n<!--\nc → d\n-->\ne → f\n", "6 P1.C1: e → f\n"},
		{"absence", "GET /gone → 404 (absence)\n", "2 P1.C1: GET /gone → 404 (absence)\n"},
		{"context is never a contract", "## Context\nbrowser → server\n## Rules\na → b\n", "5 P1.C1: a → b\n"},
		{"only the contracts section", "intro → text\n## Contracts (ACTION → RESULT)\na → b\n### Contract 2: c → d\n### Other\ne → f\n## Notes\nx → y\n",
			"4 P1.C1: a → b\n5 P1.C2: Contract 2: c → d\n7 P1.C3: e → f\n"},
		{"sections without heading marks", "**Context**\nx → y\n\n**Contracts:**\na → b\n\n# End\nv → w\n", "6 P1.C1: a → b\n"},
		{"numbered section", "## 2. Contracts\na → b\n", "3 P1.C1: a → b\n"},
		{"prose in between", "Some words.\na → b\n\nOther words\n\n- c → d\n", "3 P1.C1: a → b\n7 P1.C2: c → d\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ends := range []string{"\n", "\r\n"} {
				text := strings.ReplaceAll("\ufeff# Phase 1: Title\n"+c.text, "\n", ends)
				s, problems := Parse("phase1.md", []byte(text), 1)
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				if diff := cmp.Diff(c.want, show(s.Contracts)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				law(t, s)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ in, action, result string }{
		{"a → b → c", "a", "b → c"},
		{"send `a → b` → 200", "send `a → b`", "200"},
		{"`a → b`", "a", "b"},
		{"**a -> b**", "a", "b"},
		{"`a` -> `b` or `c`", "a", "`b` or `c`"},
		{"x->y => z", "x->y", "z"},
		{"→", "", ""},
	} {
		action, result, ok := split(c.in)
		if !ok || action != c.action || result != c.result {
			t.Errorf("%q is %q and %q, %v; want %q and %q", c.in, action, result, ok, c.action, c.result)
		}
	}
}

// law: a contract's text is found where the contract says.
func law(t *testing.T, s Spec) {
	t.Helper()
	lines := strings.Split(s.Text, "\n")
	ids := map[string]bool{}
	for _, c := range s.Contracts {
		if phase, _, _ := strings.Cut(c.ID, "."); ids[c.ID] || phase != fmt.Sprintf("P%d", s.Number) || c.Number() == 0 {
			t.Errorf("id %q, after %v", c.ID, ids)
		}
		ids[c.ID] = true
		if c.Line < 1 || c.Line > len(lines) {
			t.Fatalf("%s: line %d of %d", c.ID, c.Line, len(lines))
		}
		first, _, _ := strings.Cut(c.Text, "\n")
		rest := strings.Join(lines[c.Line-1:], "\n")
		if at := strings.Index(rest, c.Text); at < 0 || !strings.Contains(lines[c.Line-1], first) {
			t.Errorf("%s: %q is not at line %d: %q", c.ID, c.Text, c.Line, lines[c.Line-1])
		}
		if c.Action == "" || c.Result == "" || strings.Contains(c.Says(), "\n") {
			t.Errorf("%s: action %q, result %q", c.ID, c.Action, c.Result)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "phase1.md: the spec is empty"},
		{"white space", "\ufeff \r\n", "phase1.md: the spec is empty"},
		{"too large", "# Phase 1: x\na → b\n" + strings.Repeat("x", MaxBytes), "phase1.md: the spec is larger than 1048576 bytes"},
		{"not UTF-8", "# Phase 1: x\na → b\n\xff", "phase1.md:3: this is not UTF-8 text"},
		{"NUL", "# Phase 1: x\na \x00→ b", "phase1.md:2: this is not UTF-8 text"},
		{"no title", "words\na → b", `phase1.md:1: the first line is "words", want "# Phase 1: Title"`},
		{"title without text", "# Phase 1:\na → b", `phase1.md:1: the first line is "# Phase 1:", want "# Phase 1: Title"`},
		{"title on line 2", "\n# Phase 1: x\na → b", `phase1.md:1: the first line is "", want "# Phase 1: Title"`},
		{"number", "# Phase 2: x\na → b", "phase1.md:1: the first line says phase 2, the file's name says 1"},
		{"huge number", "# Phase 99999999999999999999: x\na → b",
			"phase1.md:1: the first line says phase 99999999999999999999, the file's name says 1"},
		{"no contract", "# Phase 1: x\nwords", "phase1.md: there is no contract"},
		{"only prose arrows", "# Phase 1: x\na → b\n## Contracts\nnone yet", "phase1.md: there is no contract"},
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
p:8: this comment is not closed, so all after it is left out
`
	var got strings.Builder
	for _, line := range []int{4, 6, 8} {
		for _, p := range problems {
			if p.Line == line {
				fmt.Fprintln(&got, p)
				if p.Fatal {
					t.Errorf("%v is fatal", p)
				}
			}
		}
	}
	if got.String() != want || len(problems) != 3 {
		t.Errorf("got\n%v\nwant\n%s", problems, want)
	}
	if len(s.Contracts) != 1 {
		t.Errorf("contracts: %v", s.Contracts)
	}
}

func TestSpecKeepsThePersonsText(t *testing.T) {
	unix, _ := Parse("p", []byte("# Phase 3: A title\n\n## Context\nwhy\n\n## Contracts\na → b\n"), 3)
	dos, _ := Parse("p", []byte("\ufeff# Phase 3: A title\r\n\r\n## Context\r\nwhy\r\n\r\n## Contracts\r\na → b\r\n"), 3)
	if diff := cmp.Diff(unix, dos); diff != "" {
		t.Errorf("line ends change the spec:\n%s", diff)
	}
	if unix.Title != "A title" || !unix.HasContext || unix.Contracts[0].ID != "P3.C1" {
		t.Errorf("got %+v", unix)
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
		{"the same", old, true},
		{"other line ends", "# Phase 1: x\r\na → b\r\nc → d\r\n", true},
		{"one more", old + "c → d\n", true},
		{"words", old + "\nWhy it is so.\n", true},
		{"empty lines", old + "\n \n", true},
		{"edited", "# Phase 1: x\na → c\nc → d\n", false},
		{"taken out", "# Phase 1: x\n", false},
		{"put before", "# Phase 1: x\nc → d\na → b\n", false},
		{"the last line goes on", old + "  and c\n", false},
		{"the result goes on", old + "→ c\n", false},
		{"it is no contract any more", old + "## Contracts\nc → d\n", false},
	} {
		if got := parse(c.now).Extends(was.SHA256, len(was.Text)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	open := parse("# Phase 1: x\na → 20")
	if now := parse("# Phase 1: x\na → 200"); now.Extends(open.SHA256, len(open.Text)) {
		t.Error("a longer last line is taken for an append")
	}
	if now := parse("# Phase 1: x\na → 20\nc → d"); !now.Extends(open.SHA256, len(open.Text)) {
		t.Error("a line after a last one without an end is taken for an edit")
	}
	words := parse("# Phase 1: x\na → b\nThis is law")
	if now := parse("# Phase 1: x\na → b\nThis is lawless\n"); now.Extends(words.SHA256, len(words.Text)) {
		t.Error("a last line that goes on is taken for an append")
	}
	if was.Extends(open.SHA256, len(open.Text)) || was.Extends(was.SHA256, -1) || was.Extends(was.SHA256, 1000) {
		t.Error("sizes that do not fit are taken for an append")
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
	files, _ := filepath.Glob("testdata/specs/*.txtar")
	for _, file := range files {
		if a, err := txtar.ParseFile(file); err == nil {
			f.Add(odd.Replace(string(a.Files[0].Data)))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := Parse("phase1.md", []byte(text), 1)
		law(t, s)
		if len(s.Contracts) == 0 && len(problems) == 0 {
			t.Error("no contract and no problem")
		}
		again, _ := Parse("phase1.md", []byte(s.Text), 1)
		if !strings.HasPrefix(s.Text, "\ufeff") && !cmp.Equal(s.Contracts, again.Contracts) {
			t.Errorf("parsed again: %s", cmp.Diff(s.Contracts, again.Contracts))
		}
	})
}

// A spec of the largest size takes time in proportion, whatever is in it. The
// test is its own clock: quadratic work on these would outlast any deadline.
func TestLargestSpecs(t *testing.T) {
	for _, line := range []string{"a → b\n", "  x\n", "→ \n", "`→", "- a →\n", "|a|b|\n|-|-|\n", "```\n", "```js\n", "(\n)\n", "<!--\n"} {
		head := "# Phase 1: x\na → b\n"
		text := head + strings.Repeat(line, (MaxBytes-len(head))/len(line))
		s, problems := Parse("phase1.md", []byte(text), 1)
		if len(s.Contracts) == 0 || len(problems) > 2*maxTold {
			t.Errorf("%q: %d contracts, %d problems", line, len(s.Contracts), len(problems))
		}
	}
}
