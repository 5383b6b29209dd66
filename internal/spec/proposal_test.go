package spec

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each case has lines of a spec and the proposal for the last one with a problem.
func TestProposals(t *testing.T) {
	const none = ""
	for _, c := range []struct{ name, text, want string }{
		{"colon", "- GET /a: 200", "- GET /a → 200"},
		{"colon-in-bold", "- **GET /a:** 200 OK", "- **GET /a** → 200 OK"},
		{"colon-after-bold", "- **GET /a**: 404 Not Found", "- **GET /a** → 404 Not Found"},
		{"colon-after-code", "- `GET /a`: `200`", "- `GET /a` → `200`"},
		{"dash", "- DELETE /a/1 - 204", "- DELETE /a/1 → 204"},
		{"em-dash", "* DELETE /a/1 — 204 No Content", "- DELETE /a/1 → 204 No Content"},
		{"numbered", "3. GET /a: 200", "3. GET /a → 200"},
		{"check-box", "- [x] GET /a: 200", "- GET /a → 200"},
		{"quotation", "> GET /a: 200", "- GET /a → 200"},
		{"parameter-in-the-path", "- GET /users/:id: 200", "- GET /users/:id → 200"},
		{"full-address", "- GET https://a.example/x?y=1: 200", "- GET https://a.example/x?y=1 → 200"},
		{"body-in-the-request", `- POST /a {"n": 1}: 201 {"id": 1}`, `- POST /a {"n": 1} → 201 {"id": 1}`},
		{"status-before-a-colon", `- GET /a returns 200: {"id": 1}`, `- GET /a → 200: {"id": 1}`},
		{
			"clause-and-reason",
			"- GET /a without a token: 401 Unauthorized",
			"- GET /a without a token → 401 Unauthorized",
		},
		{"time-and-reason", "- GET /a after a logout: HTTP 401", "- GET /a after a logout → HTTP 401"},
		{"returns", "- GET /a returns 200", "- GET /a → 200"},
		{"should-return", "- GET /a should return 200 OK", "- GET /a → 200 OK"},
		{
			"must-respond-with-a",
			"- GET /a without a token MUST respond with a 401",
			"- GET /a without a token → 401",
		},
		{"must-answer-with-a", "- GET /a without a token must answer with a 401", "- GET /a without a token → 401"},
		{"responds-with-status", "- `GET /a` responds with status code 404.", "- `GET /a` → status code 404."},
		{"paragraph", "GET /a returns 200 with a list", "- GET /a → 200 with a list"},
		{"command-and-exit-code", "- `notes add`: exit code 2", "- `notes add` → exit code 2"},
		{
			"command-exits",
			"- run `notes` without arguments exits with code 2",
			"- run `notes` without arguments → exits with code 2",
		},
		{
			"command-prints",
			"- `notes list` prints `milk` on standard output",
			"- `notes list` → prints `milk` on standard output",
		},

		{"status-as-the-action", `- 200: {"id": 1}`, none},
		{"status-in-the-action", `- GET /a 200: {"id": 1}`, none},
		{"status-and-words", "- 404: GET /a is unknown", none},
		{"equals", "- GET /a = 200", none},
		{"equals-in-code", "- `x = 1` is printed", none},
		{"equals-in-the-query", "- GET /a?x = 200", none},
		{"arrow-in-code", "- send `(a) => 200`", none},
		{"colon-in-JSON", `- GET /a {"status": 200}`, none},
		{"colon-in-code", "- GET /a `status: 200`", none},
		{"colon-in-quotation-marks", `- GET /a says "status: 200"`, none},
		{"code-mark-without-partner", "- GET /a?q=` returns 200", none},
		{"open-bracket", `- GET /a: 200 {"a": 1`, none},
		{"value-of-the-request", "- GET /a with limit: 200", none},
		{"range", "- GET /a with values 5 - 200", none},
		{"range-of-status-codes", "- GET /a: 200 - 299", none},
		{"unit", "- GET /a: 200 ms", none},
		{"request-body", `- POST /a: {"n": 1}`, none},
		{"purpose", "- GET /a: lists the notes", none},
		{"setting", "- max users: 200", none},
		{"label", "- Success: 200 OK", none},
		{"label-and-request", "- Request: GET /a", none},
		{"note", "- Note: this is a draft", none},
		{"two-requests", "- GET /a and GET /b: 200", none},
		{"two-requests-in-a-row", "- GET /a returns 200, GET /b returns 404", none},
		{"choice-of-methods", "- GET or POST /a: 200", none},
		{"two-status-codes", "- GET /a: 200, 404", none},
		{"choice-of-results", "- GET /a: 200 or 204", none},
		{"condition-in-the-result", "- GET /a returns 404 if the id is unknown", none},
		{"negation", "- GET /a must not return 200", none},
		{"no-longer", "- GET /a no longer returns 200", none},
		{"another-subject", "- GET /a when the cache returns 200", none},
		{"another-subject-with-that", "- GET /a with a token that returns 401", none},
		{"two-places-to-split", "- GET /a with x: 200 OK - 404 Not Found", none},
		{"colon-in-brackets", "- GET /a (was: 200, too): 201", "- GET /a (was: 200, too) → 201"},
		{"vague", "- GET /a: 200 with a fast answer", none},
		{"in-a-sentence", "- The server returns 404 for unknown ids.", none},
		{"other-status-later", "- GET /a: 200 and the mail is logged", none},
		{"option", "- `--quiet`: prints nothing", none},
		{"path-in-code", "- `/etc/x`: exit code 2", none},
		{"given-when", "- Given a user, when GET /a is called", none},
		{"given", "- Given a user", none},
		{"scenario", "Scenario: login", none},
		{"user-story", "- As a user I can log in", none},
		{"German", "- GET /a: liefert 200", none},
		{"German-sentence", "- Wenn das Passwort falsch ist, dann 401", none},
		{"German-label", "- Antwort: 200 OK", none},
		{"id", "- C3: GET /a: 200", none},
		{"link", "- [GET /a](https://a.example/x): 200", none},
		{"HTML", "<li>GET /a: 200</li>", none},
		{"too-long", "- GET /" + strings.Repeat("a", maxAbove) + ": 200", none},
		{"two-lines", "- GET /a: 200\n  and a header", none},
		{"items-below", "- GET /a: 200\n  - a header", none},
		{"below-a-request", "- GET /a: 200\n  - GET /b: 404", none},
		{"twice", "- GET /a: 200\n- GET /a: 404", none},
		{"a-contract-already", "- GET /a → 404\n- GET /a: 200", none},
		{"under-two-headings", "### x\n- GET /a: 200\n### y\n- GET /a: 404", "- GET /a → 404"},
		{"below-an-item", "- With a token\n  - GET /a: 200", "- GET /a → 200"},

		{"row-without-a-head", "| GET /a | 200 |", "- GET /a → 200"},
		{"row-with-method-and-path", "| GET | /a | 200 |", "- GET /a → 200"},
		{"row-in-code", "| `GET` | `/a` | `200` |", "- GET /a → `200`"},
		{"row-tight", "|GET /a|200|", "- GET /a → 200"},
		{"row-with-other-words", "| a | b |", none},
		{"row-with-a-purpose", "| GET /a | the list |", none},
		{"row-with-one-cell", "| GET /a |", none},
		{"row-of-a-setting", "| limit | 200 |", none},
		{"head-is-a-request", "| GET /a | 200 |\n|---|---|\n| a | b |", none},
		{
			"action-and-result",
			"| Action | Result |\n|---|---|\n| open `/` | the title is \"Board\" |",
			"- open `/` → the title is \"Board\"",
		},
		{
			"bold-head",
			"| **Request** | **Response** |\n|---|---|\n| GET /a | 200 {\"id\": 1} |",
			`- GET /a → 200 {"id": 1}`,
		},
		{"bar-in-a-cell", "| Action | Result |\n|---|---|\n| `a \\| b` | exit code 0 |", "- `a | b` → exit code 0"},
		{"number-of-the-row", "| # | Request | Expected |\n|---|---|---|\n| 1 | GET /a | 200 |", "- GET /a → 200"},
		{"name-of-the-row", "| No | Request | Expected |\n|---|---|---|\n| R1 | GET /a | 200 |", none},
		{
			"REST-table",
			"| Method | Path | Status | Response |\n|---|---|---|---|\n| GET | /a | 200 | {\"id\": 1} |",
			`- GET /a → 200 {"id": 1}`,
		},
		{
			"REST-table-with-purpose",
			"| Method | Path | Description |\n|---|---|---|\n| GET | /a | lists all |",
			none,
		},
		{
			"REST-table-with-more",
			"| Method | Path | Status | Auth |\n|---|---|---|---|\n| GET | /a | 200 | yes |",
			none,
		},
		{
			"REST-table-with-empty-cell",
			"| Method | Path | Status | Auth |\n|---|---|---|---|\n| GET | /a | 200 | |",
			"- GET /a → 200",
		},
		{"method-and-path", "| Method | Path |\n|---|---|\n| GET | /a |", none},
		{"endpoint-and-progress", "| Endpoint | Status |\n|---|---|\n| GET /a | done |", none},
		{"name-and-type", "| Name | Type |\n|---|---|\n| id | integer |", none},
		{"limit-of-a-request", "| Endpoint | Limit |\n|---|---|\n| GET /a | 200 |", none},
		{"German-head", "| Anfrage | Antwort |\n|---|---|\n| GET /a | 200 |", none},
		{"placeholder-in-a-cell", "| Action | Result |\n|---|---|\n| GET /a | TBD |", none},
		{"empty-result", "| Action | Result |\n|---|---|\n| GET /a | |", none},
		{"vague-result", "| Action | Result |\n|---|---|\n| log in | works |", none},
		{"two-results", "| Request | Result | Response |\n|---|---|---|\n| GET /a | 200 | [] |", none},
		{"arrow-in-a-row", "| Action | Result |\n|---|---|\n| GET /a → 200 | yes |", none},
		{"another-table", "| Action | Result |\n|---|---|\n\n| a | b |", none},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(head, 1) + "zero → 0\n\n" + c.text + "\n"
			_, problems := Parse("phase1.md", []byte(text), 1)
			if len(problems) == 0 {
				t.Fatal("got no problem, want one")
			}
			last := problems[len(problems)-1]
			got := proposed(last)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got == "" && !strings.HasSuffix(last.Hint, "abl spec draft .abl/specs/phase1.md") {
				t.Errorf("got the hint %q, want one that names abl spec draft", last.Hint)
			}
			pasted(t, text)
		})
	}
}

// A proposal instead of its line is a contract with the words of the line and without
// problems.
func TestProposalsPasted(t *testing.T) {
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for part := range strings.SplitSeq(string(data), "\n=") {
		in, _, _ := strings.Cut(part, "\n")
		if !strings.HasPrefix(in, "#") {
			count += pasted(t, fmt.Sprintf(head, 1)+odd.Replace(in))
		}
	}
	if count < 10 {
		t.Errorf("got %d proposals in testdata/lines.txt, want at least 10", count)
	}
}

// A proposal is right regardless of the lines above and below.
func TestProposalsInContext(t *testing.T) {
	above := []string{
		"", "x → y\n", "x → y\n\n", "- x → y\n", "- Login\n  ", "- Login:\n", "1. x → 1\n", "With a token:\n",
		"With a token:\n\n", "**Login**\n", "### GET /b\n\n", "words\n", "```\nx → y\n", "> words\n", "x {\n",
		"| Action | Result |\n|---|---|\n", "| Name | Type |\n|---|---|\n",
	}
	below := []string{
		"", "\n- x2 → y", "\nwords", "\n\nwords", "\n  words", "\n\n  words", "\n  - words", "\n  - x2 → y",
		"\n→ 3", "\n  → 3", "\n- → 3", "\n```json\n{}\n```", "\n  ```json\n  {}\n  ```", "\n|---|---|",
		"\n---", "\n===", "\n}", "\n~~~",
	}
	for _, line := range []string{
		"- GET /a: 200", "2. GET /a returns 200", "GET /a: 200", "> GET /a: 200", "- **GET /a:** 200",
		"- run `x y` exits with 1",
		"| GET /a | 200 |", "| GET | /a | 200 |", "| open `/` | the title is \"A\" |",
	} {
		t.Run(line, func(t *testing.T) {
			count := 0
			for _, a := range above {
				for _, b := range below {
					count += pasted(t, fmt.Sprintf(head, 1)+"zero → 0\n\n"+a+line+b+"\n")
				}
			}
			if count == 0 {
				t.Error("proposals: got none, want at least one")
			}
		})
	}
}

func FuzzProposals(f *testing.F) {
	for _, seed := range []string{
		"- GET /a: 200\n",
		"| Action | Result |\n|---|---|\n| GET /a | 200 |\n",
		"1. run `a b` with x exits with 1\n\nwith:\n",
		"| Method | Path | Status |\n|-|-|-|\n| GET | /a | 404 |\n```\n| GET /b | 200 |\n",
		"> **GET /a:** returns 200: {\"a\": 1}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { pasted(t, fmt.Sprintf(head, 1)+text) })
}

// dropped matches the words of a line that its proposal replaces with the arrow, and the number of a
// table row.
var dropped = regexp.MustCompile(`(?i)^(?:should|must|shall|will|returns?|responds?|answers?|` +
	`repl(?:y|ies)|gives?|yields?|with|an?|the|x|\d+)$`)

var wordIn = regexp.MustCompile(`[\p{L}\p{N}]+`)

// pasted replaces lines of a spec with their proposals, one at a time and all together, and counts
// the proposals.
func pasted(t *testing.T, text string) (count int) {
	t.Helper()
	was, problems := Parse("phase1.md", []byte(text), 1)
	lines := strings.Split(was.Text, "\n")
	all := slices.Clone(lines)
	var at []int
	for _, p := range problems {
		line := proposed(p)
		if line == "" {
			continue
		}
		count++
		old := lines[p.Line-1]
		line = old[:len(old)-len(strings.TrimLeft(old, " \t"))] + line
		now := slices.Clone(lines)
		now[p.Line-1], all[p.Line-1] = line, line
		at = append(at, p.Line)
		sameWords(t, old, line)
		clean(t, now, p.Line)
	}
	if count > 1 {
		clean(t, all, at...)
	}
	return count
}

// sameWords checks that a proposal has exactly the words of its line.
func sameWords(t *testing.T, old, line string) {
	t.Helper()
	before, after := wordIn.FindAllString(old, -1), wordIn.FindAllString(line, -1)
	for _, word := range after {
		if i := slices.Index(before, word); i >= 0 {
			before = slices.Delete(before, i, i+1)
		} else {
			t.Errorf("for %q got %q, want no word %q", old, line, word)
		}
	}
	for _, word := range before {
		if !dropped.MatchString(word) {
			t.Errorf("for %q got %q, want the word %q", old, line, word)
		}
	}
}

// clean checks that each of the lines is a contract with the words before and after its arrow,
// without problems.
func clean(t *testing.T, lines []string, at ...int) {
	t.Helper()
	text := strings.Join(lines, "\n")
	s, problems := Parse("phase1.md", []byte(text), 1)
	r := &reader{Spec: s, most: MaxBytes, counted: map[bool]int{}}
	seen := map[string]Contract{}
	for _, c := range s.Contracts {
		r.lintContract(c)
		r.compareWithEarlier(c, seen)
	}
	for _, n := range at {
		action, result, _ := strings.Cut(lines[n-1], " → ")
		i := slices.IndexFunc(s.Contracts, func(c Contract) bool { return c.Line == n })
		if i < 0 {
			t.Errorf("contract on line %d of %q: got none, problems %v, want %q", n, text, problems, lines[n-1])
			continue
		}
		c := s.Contracts[i]
		if want := tidy(action[len(itemMark(action)):]); c.Action != want || c.Result != tidy(result) {
			t.Errorf("got %q → %q, want %q → %q", c.Action, c.Result, want, tidy(result))
		}
		for _, p := range append(problems, r.problems...) {
			if p.Line == n {
				t.Errorf("%q, pasted into %q: got %q, want no problem", lines[n-1], text, p.Text)
			}
		}
	}
}
