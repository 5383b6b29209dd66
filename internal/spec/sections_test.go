package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines below a heading that ended the Contracts section are reported at that heading.
func TestEndOfContracts(t *testing.T) {
	const (
		ended = "this heading ended the Contracts section, so nothing below it is tested: "
		after = "this heading is after the end of the Contracts section, so nothing below it is tested: "
		low   = "if there are contracts below it, begin it with ###; move other lines to the Context"
	)
	for _, c := range []struct{ name, text, want string }{
		{"item", "## Errors\n- GET /b", "11: " + ended + `line 12 "GET /b"; ` + low},
		{"row", "## Errors\n| a | b |", "11: " + ended + `line 12 "| a | b |"; ` + low},
		{"paragraph", "## Errors\nGET /b is\nunknown", "11: " + ended + `line 12 "GET /b is unknown"; ` + low},
		{"code-block", "## Errors\n```sh\ncurl /b\n```", "11: " + ended + `line 12 "curl /b"; ` + low},
		{"empty", "## Errors", ""},
		{"arrow", "## Errors\n- GET /b → 404",
			`12: "GET /b → 404" is outside the Contracts section, so it is not a contract; ` +
				"move it there: the heading in line 11 ended the section"},
		{"arrow-below-an-item", "## Errors\n- GET /b\n  - known → 200",
			`13: "known → 200" is outside the Contracts section, so it is not a contract; ` +
				"move it there: the heading in line 11 ended the section"},
		{"row-with-an-arrow", "## Errors\n| GET /b → 404 |",
			`12: "| GET /b → 404 |" is outside the Contracts section, so it is not a contract; ` +
				"move it there: the heading in line 11 ended the section"},
		{"both", "## Errors\n- GET /b\n- GET /c → 404",
			"11: " + ended + `line 12 "GET /b"; ` + low + "\n" +
				`13: "GET /c → 404" is outside the Contracts section, so it is not a contract; ` +
				"move it there: the heading in line 11 ended the section"},
		{"items-below-items", "## Errors\n- GET /b\n  - known",
			"11: " + ended + `line 12 "GET /b", line 13 "known"; ` + low},
		{"many", "## Errors\n- a\n- b\n- c\n- d\n- e\n- f\n- g",
			"11: " + ended + `line 12 "a", line 13 "b", line 14 "c", line 15 "d", line 16 "e", and 2 more; ` + low},
		{"headings-below", "## Errors\n### Users\n- a\n### Notes\n- b",
			"11: " + ended + `line 13 "a", line 15 "b"; ` + low},
		{"second-heading", "## Errors\n- a\n## More\n- b",
			"11: " + ended + `line 12 "a"; ` + low + "\n" + "13: " + after + `line 14 "b"; ` + low},
		{"second-heading-only", "## Errors\n\n## More\n- b", "13: " + after + `line 14 "b"; ` + low},
		{"underlined", "Errors\n------\n- a", "11: " + ended + `line 13 "a"; ` + low},
		{"Context", "## Context\n- a", ""},
		{"after-a-Context", "## Context\n- a\n## Errors\n- b", "13: " + after + `line 14 "b"; ` + low},
		{"below-a-lower-heading", "### Users\n- b → c\n## Errors\n- a", "13: " + ended + `line 14 "a"; ` + low},
		{"Context-in-the-section", "### Context\n- a\n### Users\n- b → c", ""},
		{"contracts-again", "## Errors\n- a\n## More contracts\n- b → c\n## Notes\n- d",
			"11: " + ended + `line 12 "a"; ` + low + "\n" + "15: " + ended + `line 16 "d"; ` + low},
		{"lower-section", "## API\n### Contracts of it\n- b → c\n## Notes\n- d", "14: " + ended +
			`line 15 "d"; ` + strings.Replace(low, "###", "####", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := Parse("phase1.md", fmt.Appendf(nil, head+"a → b\n\n%s\n", 1, c.text), 1)
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d: %s; %s", p.Line, p.Text, p.Hint))
				if p.Code != "outside" || p.Stops() {
					t.Errorf("got %+v, want a warning with the code outside", p)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Headings before the Contracts section do not end it.
func TestBeforeContracts(t *testing.T) {
	_, problems := Parse("phase1.md", []byte("# Phase 1: T\n\n- why\n\n## Goals\n- fast\n\n## Contracts\n- a → b\n"), 1)
	if len(problems) > 0 {
		t.Errorf("got %v, want no problem", problems)
	}
}
