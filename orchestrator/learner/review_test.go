package learner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// short prints a review in one line: states, and the text of issues.
func short(r CodeReview) string {
	var parts []string
	for _, f := range r.Findings {
		part := f.State
		if f.State == Issues {
			part = fmt.Sprintf("%q", f.Text)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestParseReview(t *testing.T) {
	const none = "unknown unknown unknown unknown unknown"
	for _, c := range []struct{ name, text, want string }{
		{"as-asked", "ARCHITECTURE: OK\nDESIGN: OK\nCODE_QUALITY: long functions\nSECURITY: OK\nTESTS: none for errors are there\n", `ok ok "long functions" ok "none for errors are there"`},
		{"nothing", "", none},
		{"prose", "The code looks good. I would refactor it.", none},
		{"the-question-repeated", "ARCHITECTURE: <issues or OK>\nTESTS: <issues or OK>", none},
		{"the-question-then-the-answer", "SECURITY: <issues or OK>\n\nSECURITY: SQL is built by hand", `unknown unknown unknown "SQL is built by hand" unknown`},
		{"bold", "**ARCHITECTURE:** OK\n**DESIGN**: Ok.\n**Code Quality: a `mess` of globals**\n__SECURITY__: no issues found\n* **TESTS:** `go test` is **missing**", "ok ok \"a `mess` of globals\" ok \"`go test` is **missing**\""},
		{"headings", "## Architecture\n\nOK\n\n## Design\nToo many layers\nand names\n### Code-Quality\n- ok\n### 4. Security\n- key in source\n- no TLS\n", `ok "Too many layers and names" ok "key in source no TLS" unknown`},
		{"substrings-of-labels", "REDESIGN: all of it\nLATEST: 1\nSECURITYX: y\nMY TESTS: z", none},
		{"a-label-within-a-sentence", "The weakest part is SECURITY: keys", none},
		{"no-issues-in-many-words", "DESIGN: No issues found.\nSECURITY: None\nTESTS: No issues\nARCHITECTURE: OK - simple and flat\nCODE_QUALITY: Good, readable code", "ok ok ok ok ok"},
		{"praise-that-is-taken-back", "ARCHITECTURE: OK, but main does everything\nDESIGN: Good overall; consider an interface\nSECURITY: no issues except the key in run.sh\nTESTS: not ok\nCODE_QUALITY: okayish", `"OK, but main does everything" "Good overall; consider an interface" "okayish" "no issues except the key in run.sh" "not ok"`},
		{"numbers-other-separators-windows", "1. ARCHITECTURE - OK\r\n2) DESIGN – OK\r\n> CODE QUALITY： OK\r\n", "ok ok ok unknown unknown"},
		{"fenced", "```\nSECURITY: OK\n```\nARCHITECTURE: OK", "ok unknown unknown ok unknown"},
		{"twice", "TESTS: OK\nTESTS: no test of the server", `unknown unknown unknown unknown "OK no test of the server"`},
		{"no-tests-at-all", "TESTS: none\nSECURITY: none of the inputs is checked", `unknown unknown unknown "none of the inputs is checked" "none"`},
		{"a-finding-below-an-OK", "SECURITY: OK\n- key in source\nTESTS: OK\nAll branches are covered.", `unknown unknown unknown "OK key in source" ok`},
		{"praise-in-other-words", "ARCHITECTURE: Fine\nDESIGN: Looks good.\nCODE_QUALITY: All good!\nSECURITY: Looks fine to me\nTESTS: Looks good, but no test of the server", `ok ok ok ok "Looks good, but no test of the server"`},
		{"closing-words", "SECURITY: OK\nTESTS: OK\n\nOverall, I would still split main.\nLet me know!", "unknown unknown unknown ok ok"},
		{"closing-words-below-a-finding", "TESTS: too few\n\nThe program does what it says.", `unknown unknown unknown unknown "too few The program does what it says."`},
		{"a-finding-after-a-blank-line", "TESTS: OK\n\nThe server is not tested.", `unknown unknown unknown unknown "OK The server is not tested."`},
		{"closing-praise", "ARCHITECTURE: No issues found. Great work!\nDESIGN: None\nThe code is clean and well structured.\nCODE_QUALITY: No problems were found; nice job\nSECURITY: No issues found.\nTESTS: no issues found\n\nWell done!", "ok ok ok ok ok"},
		{"no-praise", "ARCHITECTURE: No good layers\nDESIGN: No issues. Great, but one file\nSECURITY: No issues. The key is in run.sh\nTESTS: None. Great work!\nCODE_QUALITY: nothing good", `"No good layers" "No issues. Great, but one file" "nothing good" "No issues. The key is in run.sh" "None. Great work!"`},
		{"words-of-praise-that-praise-nothing", "SECURITY: Well-known default passwords are used\nDESIGN: No issues. Well, main does everything\nCODE_QUALITY: Nice to have: comments", `unknown "No issues. Well, main does everything" "Nice to have: comments" "Well-known default passwords are used" unknown`},
		{"a-score", "SECURITY (9/10): OK", "unknown unknown unknown ok unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := short(ParseReview(c.text)); got != c.want {
				t.Errorf("got %s, want\n%s", got, c.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	got := ParseReview("SECURITY: " + strings.Repeat("x ", 2000) + "\nTESTS: ok").Summary()
	if lines := strings.Split(got, "\n"); len(lines) != 6 || lines[0] != "ARCHITECTURE: no answer" || len(lines[3]) > 1300 || lines[4] != "TESTS: OK" {
		t.Errorf("summary: got %d lines, %.200q, want 6 with a shortened SECURITY and TESTS: OK", len(lines), got)
	}
}

// A review, however it was worded, reads the same when its summary is read.
func FuzzReview(f *testing.F) {
	f.Add("**ARCHITECTURE:** OK\n- DESIGN: x\n\n# TESTS\ny")
	f.Add("SECURITY: TESTS: OK\n> > * `TESTS` - z")
	f.Fuzz(func(t *testing.T, text string) {
		r := ParseReview(text)
		if len(r.Findings) != 5 {
			t.Fatalf("findings in %q: got %d, want 5", text, len(r.Findings))
		}
		again := ParseReview(strings.ReplaceAll(r.Summary(), ": no answer", ":"))
		for i, f := range r.Findings {
			if f.State != again.Findings[i].State {
				t.Errorf("%s of %q in the summary %q: got %s, want %s",
					f.Category, text, r.Summary(), again.Findings[i].State, f.State)
			}
			if strings.Contains(f.Text, "\n") {
				t.Errorf("finding in %q: got %q, want a single line", text, f.Text)
			}
		}
	})
}

// A reviewer may print as much as a call may: lines without end under one label.
func TestReviewWithoutEnd(t *testing.T) {
	r := ParseReview("SECURITY:\n" + strings.Repeat("a\n", 2<<20))
	if len(r.Findings) == 0 || !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.State == Issues }) {
		t.Errorf("findings: got %v, want one with issues", r.Findings)
	}
}
