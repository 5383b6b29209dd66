package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A contract with a placeholder as its action or result is an error and does not count.
func TestPlaceholders(t *testing.T) {
	for _, c := range []struct{ name, line, code string }{
		{"the-form", "- ACTION → EXPECTED RESULT", "no-result"},
		{"expected-result", "- GET /a → EXPECTED RESULT", "no-result"},
		{"expected-result-and-more", "- GET /a → 200 EXPECTED RESULT", "no-result"},
		{"expected-result-in-bold", "- GET /a → **EXPECTED RESULT**", "no-result"},
		{"expected-result-in-small-letters", "- GET /a → expected result", "no-result"},
		{"the-expected-response", "- GET /a → the expected response", "no-result"},
		{"with-a-stroke", "- GET /a → EXPECTED_RESULT", "no-result"},
		{"result", "- GET /a → RESULT", "no-result"},
		{"angle-brackets", "- GET /a → <expected result>", "no-result"},
		{"escaped-angle-brackets", `- GET /a → \<result\>`, "no-result"},
		{"square-brackets", "- GET /a → [result]", "no-result"},
		{"two-braces", "- GET /a → {{response}}", "no-result"},
		{"TBD", "- GET /a → TBD", "no-result"},
		{"TBC-in-brackets", "- GET /a → [tbc]", "no-result"},
		{"TODO-with-words", "- GET /a → TODO: ask the team", "no-result"},
		{"TODO-in-brackets-after", "- GET /a → TODO (status)", "no-result"},
		{"XXX", "- GET /a → xxx", "no-result"},
		{"dots", "- GET /a → ...", "no-result"},
		{"question-marks", "- GET /a → ???", "no-result"},
		{"stroke", "- GET /a → ____", "no-result"},
		{"dash", "- GET /a → —", "no-result"},
		{"to-be-decided", "- GET /a → to be decided", "no-result"},
		{"in-the-result-below", "- GET /a\n  → TBD", "no-result"},
		{"action", "- ACTION → 200", "no-action"},
		{"action-TODO", "- TODO → 200", "no-action"},
		{"action-dots", "- … → 200", "no-action"},
		{"action-in-brackets", "- <action> → 200", "no-action"},
		{"action-TODO-with-words", "- TODO: log in → 200", "no-action"},

		{"field", "- POST /login → {token}", ""},
		{"status-in-braces", `- GET /a → 200 {"status": "open"}`, ""},
		{"todo-list", "- GET /todo → 200 with the TODO list", ""},
		{"printed-todo", "- run `next` → todo: buy milk", ""},
		{"quoted", "- GET /a → 200 with the text \"EXPECTED RESULT\"", ""},
		{"in-code", "- run `x` → prints `EXPECTED RESULT` in a line", ""},
		{"words-with-result", "- run `sum 1 2` → the result is 3", ""},
		{"action-with-capitals", "- ACTION BUTTON is pressed → the page closes", ""},
		{"check-mark", "- press x → ✓", ""},
		{"list", "- GET /a → []", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(head, 1) + "zero → 0\n\n" + c.line + "\n"
			s, problems := Parse("phase1.md", []byte(text), 1)
			var got []string
			for _, p := range problems {
				got = append(got, p.Code)
				if !p.Error || p.Hint == "" || p.Line != 11 {
					t.Errorf("got %+v, want an error in line 11 with a hint", p)
				}
			}
			want := strings.Fields(c.code)
			if !slices.Equal(got, want) || len(s.Contracts) != 2-len(want) {
				t.Errorf("got %q and %d contracts, want %q and %d", got, len(s.Contracts), want, 2-len(want))
			}
		})
	}
}
