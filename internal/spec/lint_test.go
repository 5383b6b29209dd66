package spec

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "# Phase %d: T\n\n## Context\n\nWhy.\n\n## Contracts\n\n"

// specs writes specs, phase 1 first, and reads them.
func specs(t *testing.T, texts ...string) Set {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		if !strings.HasPrefix(text, "# ") {
			text = fmt.Sprintf(head, i+1) + text
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", i+1)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := LoadDir(dir)
	return set
}

// lintedAs returns problems as "phase:line code", with "!" before those that stop the phase.
func lintedAs(problems []Problem) string {
	var all []string
	for _, p := range problems {
		mark := ""
		if p.Stops() {
			mark = "!"
		}
		all = append(all, fmt.Sprintf("%s%d:%d %s", mark, p.Phase, p.Line, p.Code))
	}
	return strings.Join(all, ", ")
}

func TestOneContract(t *testing.T) {
	for _, c := range []struct{ contract, want string }{
		{"GET /health → 200 {\"status\": \"ok\"}", ""},
		{"POST /auth/login {valid credentials} → 200 {token}", ""},
		{"POST /links with a new address U → 201 {\"code\": C}, C being 6 characters out of a-z and 0-9", ""},
		{"GET /C after DELETE /links/C → 404 {\"error\": E}", ""},
		{"read word.txt → it says \"right\"", ""},
		{"GET /fast → 200 with the text \"works fine, etc.\"", ""},
		{"run `sort --stable and quick` → the lines in order", ""},
		{"run tool --fast with 3 files → exit code 0", ""},

		{"GET / → a fast answer", "vague"},
		{"GET / → it works properly", "vague"},
		{"open / → the page should be nice and easy", "vague"},
		{"GET /a, /b, etc. → 200", "vague"},
		{"POST / with a bad body → an error", "vague"},
		{"POST / → success", "vague"},
		{"POST / → 200", ""},
		{"POST / → 201 with an id, TBD", "vague"},
		{"GET / → 200 with name, mail and so on", "vague"},

		{"POST /a and GET /b → 200", "two-actions"},
		{"log in and then open /x → the page X", "two-actions"},
		{"POST /a with x and y → 200", ""},
		{"Success: → 200", "label-action"},
		{"**Fail (no token):** 401 → {}", "label-action"},
		{"after DELETE /a, GET /a → 404", ""},
		{"GET /a after a POST /b, with c → 200", ""},
		{"after POST /a, DELETE /a and GET /a → 404", "two-actions"},

		{"GET /a → 302 → 200", "two-results"},
		{"GET /a → 302, then 200", "two-results"},
		{"GET /a → 200 or 204", "either"},
		{"GET /a → either a list or nothing", "either"},
		{"GET /a → 200 with 100 links", ""},
		{"GET /a → 200 {\"a\": 1 or 2}", ""},

		{"call the function add → 3", "untestable"},
		{"POST /users → the password is hashed", "untestable"},
		{"POST /users → a row in the database", "untestable"},
		{"build → 90 % code coverage", "untestable"},

		{"connect to port 25 → connection refused", "absence"},
		{"connect to port 25 → connection refused (absence)", ""},
		{"stop it → nothing listens on the port", "absence"},
		{"GET /gone → 404", ""},
		{"GET /gone → 404 (absence)", "absence-answer"},
		{"run it without a file → exit code 2 (absence)", "absence-answer"},

		{"GET /a →", "!no-result"},
		{"GET /a → ???", "!no-result"},
		{"GET /a → TODO", "!no-result"},
		{"→ 200", "!no-action"},
		{"- GET /a", "!no-arrow"},
	} {
		set := specs(t, "zero → 0\n\n"+c.contract+"\n\nlast → 0\n")
		want := ""
		if c.want != "" {
			want = "1:11 " + c.want
			if strings.HasPrefix(c.want, "!") {
				want = "!1:11 " + c.want[1:]
			}
		}
		all := set.Lint()
		if got := lintedAs(all); got != want {
			t.Errorf("%q: got %q, want %q", c.contract, got, want)
		}
		for _, p := range all {
			if p.Text == "" || p.Hint == "" || !strings.HasSuffix(p.File, "/phase1.md") || strings.HasPrefix(p.Code, "no-") != (p.Contract == "") {
				t.Errorf("problem of %q: got %+v, want one with a text, a hint, the file and its contract",
					c.contract, p)
			}
		}
	}
}

func TestBetweenContracts(t *testing.T) {
	for _, c := range []struct {
		name, one, two, want string
	}{
		{"the-same-twice", "a → b\nc → d\n**a** → `b`\n", "", "1:11 duplicate"},
		{"the-same-in-two-phases", "a → b\n", "c → d\na → b.\n", "2:10 duplicate"},
		{"another-status", "GET /a → 200\nGET /a → HTTP 404\n", "", "!1:10 contradiction"},
		{"another-status-in-two-phases", "GET /a → 200 {a}\n", "GET /a → status 404\n", "!2:9 contradiction"},
		{"another-exit-code", "tool x → exit 0\ntool x → exits with 1\n", "", "!1:10 contradiction"},
		{"another-result", "GET /a → 200 {a}\nGET /a → 200 {b}\n", "", "1:10 contradiction"},
		{"another-result-in-two-phases", "GET /a → a list\n", "GET /a → a table\n", "2:9 contradiction"},
		{"another-status-and-the-case-with-it", "GET /me → 200 when logged in\nGET /me → 401 otherwise\n", "", "1:10 contradiction"},
		{"another-case", "GET /a with x → 200\nGET /a with y → 404\n", "", ""},
		{"under-different-headings", "### Known\nGET /a → 200\n### Unknown\nGET /a → 404\n", "", ""},
		{"steps-in-order", "- Twice\n  1. GET /a → 200\n  2. GET /a → 404\n", "", ""},
		{"numbers-without-a-parent", "1. GET /a → 200\n2. GET /a → 404\n", "", ""},
		{"the-same-under-different-headings", "### Known\nGET /a → 200\n### Unknown\nGET /a → 200\n", "", ""},
		{"under-different-leads", "With a token:\n\nGET /me → 200\n\nWithout a token:\n\nGET /me → 401\n", "", ""},
		{"in-different-lists", "- POST /a\n  - good → 200\n- POST /b\n  - good → 201\n", "", ""},
		{"headings-of-two-phases", "### Links\nGET /a → 200\n", "### Gone links\nGET /a → 404\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := []string{c.one}
			if c.two != "" {
				texts = append(texts, c.two)
			}
			set := specs(t, texts...)
			if got := lintedAs(set.Lint()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSections(t *testing.T) {
	for text, want := range map[string]string{
		"# Phase 1: T\na → b\n":                               "1:1 no-contracts, 1:1 no-context",
		"# Phase 1: T\n## Contracts\na → b\n":                 "1:1 no-context",
		"# Phase 1: T\n## Context\nwhy\n## Else\na → b\n":     "1:1 no-contracts",
		"# Phase 1: T\n## Context\nx\n## Contracts\nsoon\n":   "!1:0 no-contract, 1:5 untested",
		"# Phase 1: T\n\na → b\n→ c is what we want in prose": "1:1 no-contracts, 1:1 no-context, !1:4 no-action",
		"# Phase 1\na → b\n":                                  "!1:1 title",
	} {
		set := specs(t, text)
		if got := lintedAs(set.Lint()); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A phase is stopped only by errors in its own spec. The user cannot change an earlier one, and a
// later one does not matter yet.
func TestStops(t *testing.T) {
	set := specs(t, "a →\nb → c\n", "fine → 1\n", "b → c\nd →\nGET /a → 200\nGET /a → 404\n")
	for n, want := range map[int]string{1: "!1:9 no-result", 2: "", 3: "!3:10 no-result, !3:12 contradiction"} {
		if got := lintedAs(set.Stops(n)); got != want {
			t.Errorf("phase %d: got %q, want %q", n, got, want)
		}
		if stops := set.Check(n); len(stops) > 0 {
			t.Errorf("problems of reading phase %d: got %v, want none", n, stops)
		}
	}
}

// Lint finds nothing in the specs of abl's templates and examples.
func TestOurOwnSpecs(t *testing.T) {
	for _, dir := range []string{"../../examples/demo/.abl/specs", "../../.abl-template/project/.abl/specs"} {
		set, _ := LoadDir(dir)
		for _, p := range set.Lint() {
			t.Errorf("problems: got %s (%s), want none", p, p.Code)
		}
		if len(set.Numbers()) == 0 {
			t.Errorf("specs in %s: got none, want at least one", dir)
		}
	}
}

// No spec in a test of this repository has an error, except those that are meant to.
func TestTestsRun(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.Name() != "specs" || filepath.Base(filepath.Dir(path)) != ".abl" {
			return nil
		}
		set, _ := LoadDir(path)
		for _, p := range set.Lint() {
			if p.Stops() {
				t.Errorf("errors: got %s (%s), want none", p, p.Code)
			}
		}
		count++
		return nil
	})
	if err != nil || count < 4 {
		t.Errorf("directories of specs: got %d, error %v, want at least 4", count, err)
	}
}

// docs/specs.md describes exactly the codes that exist.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	_, list, _ := strings.Cut(string(page), "## `abl spec lint`")
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)`: ").FindAllStringSubmatch(list, -1) {
		explained[m[1]] = true
	}
	used := map[string]bool{}
	code := regexp.MustCompile(`(?:warn|wrong|fatal)\([^"]*?, "([a-z-]+)",|report\([^,]*?, [^,]*?, "([a-z-]+)",|{"([a-z-]+)", (?:in|any)|Code: +"([a-z-]+)"`)
	for _, dir := range []string{"."} {
		files, _ := filepath.Glob(dir + "/*.go")
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range code.FindAllStringSubmatch(string(source), -1) {
				used[strings.Join(m[1:], "")] = true
			}
		}
	}
	if diff := cmp.Diff(used, explained); diff != "" {
		t.Errorf("codes in docs/specs.md (-want +got)\n%s", diff)
	}
}

// Lint terminates for any spec, and its problems name existing lines.
func FuzzAll(f *testing.F) {
	f.Add("a → b\na → c or d\n", "POST /a and GET /b → 200, 404\n")
	f.Fuzz(func(t *testing.T, one, two string) {
		dir := t.TempDir()
		for i, text := range []string{one, two} {
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", i+1)), fmt.Appendf(nil, head+"%s", i+1, text), 0o600)
		}
		set, _ := LoadDir(dir)
		for _, p := range set.Lint() {
			s, sound := set.Phase(p.Phase)
			if p.Code == "" || p.Text == "" || sound && p.Line > strings.Count(s.Text, "\n")+1 {
				t.Errorf("got %+v, want a code, a text and a line of the spec", p)
			}
		}
	})
}

// Realistic specs run, and Lint reports only the listed problems.
func TestReasonableSpecs(t *testing.T) {
	want := map[string]string{"auth": "1:15 contradiction"}
	files, err := filepath.Glob("testdata/lint/*.md")
	if err != nil || len(files) < 8 {
		t.Fatalf("specs in testdata/lint: got %d, error %v, want at least 8", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{string(data)}
		if strings.HasPrefix(texts[0], "# Phase 2") {
			texts = append([]string{"a → b\n"}, texts...)
		}
		set := specs(t, texts...)
		if got := lintedAs(set.Lint()); got != want[strings.TrimSuffix(filepath.Base(file), ".md")] {
			t.Errorf("problems of %s: got %q, want %q", file, got, want[strings.TrimSuffix(filepath.Base(file), ".md")])
		}
	}
}
