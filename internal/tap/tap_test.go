package tap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/wording"
)

// show returns the results of an output and its problems.
func show(d Document) string {
	var b strings.Builder
	var ids []string
	for _, p := range d.Points {
		for _, id := range p.IDs {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		r := d.Of(id)
		fmt.Fprintf(&b, "%s %s", id, r.Status)
		if r.Why != "" {
			fmt.Fprintf(&b, ": %s", r.Why)
		}
		b.WriteString("\n")
		for _, p := range r.Points {
			for _, key := range slices.Sorted(maps.Keys(p.Fields)) {
				fmt.Fprintf(&b, "  %s=%q\n", key, p.Fields[key])
			}
		}
	}
	for _, p := range d.Problems {
		mark := "~"
		if p.Doubt {
			mark = "!"
		}
		fmt.Fprintf(&b, "%s%d %s\n", mark, p.Line, p.Text)
	}
	return b.String()
}

const (
	both   = "P1.C1 ok\nP1.C2 ok\n"
	sample = "1..2\nok 1 - P1.C1 GET /health → 200\nok 2 - P1.C2 GET /x → 404\n"
	noPlan = "!0 the plan (1..n) is missing, so some tests may not have run\n"
)

// plan1 adds a plan before lines.
func plan1(n int, lines ...string) string {
	return fmt.Sprintf("1..%d\n%s\n", n, strings.Join(lines, "\n"))
}

func TestParse(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct{ name, text, want string }{
		{"plain", sample, both},
		{"a version", "TAP version 13\n" + sample, both},
		{"plan at the end", "ok 1 - P1.C1\nok 2 - P1.C2\n1..2\n", both},
		{"plan with a remark", plan1(2, "ok 1 - P1.C1", "ok 2 - P1.C2 # all of them"), both},
		{"CRLF", strings.ReplaceAll(sample, "\n", "\r\n"), both},
		{"byte order mark", "\ufeff" + sample, both},
		{"no last line end", strings.TrimSpace(sample), both},
		{"tabs and many spaces", "1..2\nok\t1\t-\tP1.C1\tx\nok   2   -   P1.C2   y   \n", both},
		{"without numbers and dashes", plan1(2, "ok P1.C1", "ok - P1.C2"), both},
		{"out of order", plan1(2, "ok 2 - P1.C2", "ok 1 - P1.C1"), "P1.C2 ok\nP1.C1 ok\n"},
		{"comments, pragma and empty lines", "# begin\n\npragma +strict\n" + sample + "\n# end\n", both},
		{"lower case ids, brackets, colons", plan1(2, "ok 1 - [p1.c1] x", "ok 2 - P1.C2: y"), both},
		{"an id later in the text is a word", plan1(1, "ok 1 - P1.C1 as after P1.C2"), "P1.C1 ok\n"},
		{"its own id again", plan1(1, "ok 1 - P1.C1: P1.C1 GET /"), "P1.C1 ok\n"},
		{"invalid UTF-8 and control characters", plan1(1, "ok 1 - P1.C1 \xff\x00\x1b[2J\u202e"), "P1.C1 ok\n"},

		{"not ok", plan1(2, "ok 1 - P1.C1", "not ok 2 - P1.C2"), "P1.C1 ok\nP1.C2 not ok\n"},
		{"diagnostics", plan1(1, "not ok 1 - P1.C1", "  ---", "  input: 'GET /x, it''s'", "  Observed: \"404 \\\"no\\\"\"", "  body: |", "    a", "      b", "  ...", "# done"),
			"P1.C1 not ok\n  body=\"a\\n  b\"\n  input=\"GET /x, it's\"\n  observed=\"404 \\\"no\\\"\"\n"},
		{"diagnostics as people write them", plan1(1, "not ok 1 - P1.C1", "    ---", "    no key", "    headers:", "      a: 1", "      b: 2", "    observed: 'open", "", "    url: http://x", "    ..."),
			"P1.C1 not ok\n  headers=\"a: 1\\nb: 2\"\n  observed=\"'open\"\n  url=\"http://x\"\n"},
		{"diagnostics with empty lines and lists", plan1(1, "not ok 1 - P1.C1", "  ---", "", "  a:", "    - x", "      y", "", "      z", "  b: >-", "     c", "    d", "  ...", "ok # more"),
			"P1.C1 not ok\n  a=\"- x\\n  y\\n\\n  z\"\n  b=\"c\\nd\"\n!0 the plan has 1 test, but the output has 2 test lines\n"},
		{"a backslash at the end", plan1(1, `ok 1 - P1.C1 a\`), "P1.C1 ok\n"},
		{"diagnostics as comments", plan1(1, "not ok 1 - P1.C1", "# Failed test", "#   got: 500"), "P1.C1 not ok\n  comment=\"Failed test\\n  got: 500\"\n"},

		{"missing line", plan1(2, "ok 1 - P1.C1"), "P1.C1 ok\n!0 the plan has 2 tests, but the output has 1 test line\n"},
		{"line too many", plan1(1, "ok 1 - P1.C1", "ok 2 - P1.C2"),
			both + "!0 the plan has 1 test, but the output has 2 test lines\n!3 the number of this line is not in the plan 1..1\n"},
		{"no plan", "ok 1 - P1.C1\n", "P1.C1 ok\n" + noPlan},
		{"nothing", "", noPlan},
		{"an empty plan", "1..0 # SKIP no app\n", "!0 the plan has no tests\n"},
		{"two runs, one behind the other", "1..1\nok 1 - P1.C1\n1..1\nok 1 - P2.C1\n",
			"P1.C1 ok\nP2.C1 ok\n!0 the plan has 1 test, but the output has 2 test lines\n!3 this is a second plan, want one plan for all tests\n!4 line 2 already has the number 1\n"},
		{"a number of nothing", plan1(1, "ok 0 - P1.C1"), "P1.C1 ok\n!2 the number of this line is not in the plan 1..1\n"},
		{"a huge number is text", plan1(1, "ok 99999999999 - P1.C1"), ""},
		{"bail out", plan1(2, "ok 1 - P1.C1", "Bail out! no app"),
			"P1.C1 ok\n!0 the plan has 2 tests, but the output has 1 test line\n!3 the tests bailed out: Bail out! no app\n"},
		{"bail out of a subtest", plan1(1, "    Bail out!", "ok 1 - P1.C1"), "P1.C1 ok\n!2 the tests bailed out: Bail out!\n"},

		{"skipped", plan1(2, "ok 1 - P1.C1 # SKIP no app", "ok 2 - P1.C2 # todo later"),
			"P1.C1 void: line 2 is marked SKIP\nP1.C2 void: line 3 is marked TODO\n"},
		{"skipped, in other hands", plan1(3, "ok 1 - P1.C1 #skipped", "ok 2 # SKIP P1.C2", "not ok 3 - P1.C3# TODO"),
			"P1.C1 void: line 2 is marked SKIP\nP1.C3 void: line 4 is marked TODO\n"},
		{"no such mark", plan1(2, `ok 1 - P1.C1 GET /a#todo {"t": "# skip"}`, `ok 2 - P1.C2 POST \# TODO`), both},
		{"twice", plan1(2, "ok 1 - P1.C1", "not ok 2 - P1.C1"), "P1.C1 twice: lines 2 and 3 both name it\n"},
		{"one line for several", plan1(5, "ok 1 - P1.C1, P1.C2", "ok 2 - P1.C3-P1.C5 all", "ok 3 - P2.C1/C2", "not ok 4 P2.C3 and P2.C4: x", "ok 5 - (P3.C1) (P3.C2)"),
			"P1.C1 void: line 2 names several contracts\nP1.C2 void: line 2 names several contracts\n" +
				"P1.C3 void: line 3 names several contracts\nP1.C5 void: line 3 names several contracts\n" +
				"P2.C1 void: line 4 names several contracts\nP2.C2 void: line 4 names several contracts\n" +
				"P2.C3 void: line 5 names several contracts\nP2.C4 void: line 5 names several contracts\n" +
				"P3.C1 void: line 6 names several contracts\nP3.C2 void: line 6 names several contracts\n"},
		{"a range with dots", plan1(1, "ok 1 - P1.C1..C3"), "P1.C1 void: line 2 names several contracts\nP1.C3 void: line 2 names several contracts\n"},
		{"no ids", plan1(4, "ok 1 - P1.C1.2", "ok 2 - P1.C1a", "ok 3 - xP1.C1", "ok 4 - P01.C1"), ""},
		{"not ok without an id", plan1(2, "ok 1 - P1.C1", "not ok 2 - setup"), "P1.C1 ok\n!3 this line is not ok and names no contract\n"},
		{"too long a line", plan1(1, "ok 1 - P1.C1 "+long+" # SKIP"), "P1.C1 void: line 2 is longer than 32768 bytes\n"},

		{"noise", "Starting…\n" + sample + "done in 3 s\n", both + "~1 not TAP, so ignored (2 lines)\n"},
		{"words that begin alike", plan1(1, "okay 1 - P1.C1", "OK 1 - P1.C1", "not  ok 1 - P1.C1", "notok 1", "ok 1 - P1.C1"),
			"P1.C1 ok\n~2 not TAP, so ignored (4 lines)\n"},
		{"a subtest", plan1(1, "# Subtest: x", "    ok 1 - P1.C2", "    not ok 2 - P1.C1", "    1..2", "ok 1 - P1.C1"),
			"P1.C1 ok\n~3 not TAP, so ignored (3 lines)\n"},
		{"a carriage return begins no line", plan1(1, "not ok 1 - P1.C1 got\rok 2 - P1.C2"), "P1.C1 not ok\n"},

		{"TAP of the app in a block", plan1(1, "not ok 1 - P1.C1", "  ---", "  observed: |", "    1..9", "    ok 2 - P1.C2", "    ...", "  ok 3 - P1.C3", "  ..."),
			"P1.C1 not ok\n  observed=\"1..9\\nok 2 - P1.C2\\n...\\nok 3 - P1.C3\"\n"},
		{"TAP of the app breaks out of its block", plan1(2, "not ok 1 - P1.C1", "  ---", "  observed: a", "ok 2 - P1.C2", "  ..."),
			"P1.C1 not ok\n  observed=\"a\"\nP1.C2 ok\n" +
				"!5 this line breaks the block that begins on line 3: indent or quote the output of the app\n" +
				"~6 not TAP, so ignored (1 line)\n"},
		{"TAP of the app beside the test's own", plan1(2, "ok 1 - P1.C1", "ok 2 - P1.C2", "not ok 2 - P1.C2"),
			"P1.C1 ok\nP1.C2 twice: lines 3 and 4 both name it\n!0 the plan has 2 tests, but the output has 3 test lines\n!4 line 3 already has the number 2\n"},
		{"a block without end", plan1(2, "not ok 1 - P1.C1", "  ---", "  observed: a", "  ok 2 - P1.C2"),
			"P1.C1 not ok\n  observed=\"a\\nok 2 - P1.C2\"\n!0 the plan has 2 tests, but the output has 1 test line\n" +
				"!3 the block that begins here has no end (...), so the lines below may be output of the app\n"},
		{"a block that belongs to nothing", plan1(1, "  ---", "  a: 1", "  ...", "ok 1 - P1.C1"), "P1.C1 ok\n~2 not TAP, so ignored (3 lines)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Parse([]byte(c.text), true)
			if diff := cmp.Diff(c.want, show(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// An incomplete output is in doubt, and its last line is ignored.
func TestTorn(t *testing.T) {
	d := Parse([]byte("1..2\nok 1 - P1.C1\nok 2 - P1.C2"), false)
	want := "P1.C1 ok\n!0 the plan has 2 tests, but the output has 1 test line\n!2 the output ends here, because it was cut or its program was stopped\n"
	if diff := cmp.Diff(want, show(d)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	huge := sample + strings.Repeat("# x\n", MaxBytes/4)
	if d := Parse([]byte(huge), true); len(d.Doubts()) != 1 {
		t.Errorf("doubts about an output of %d bytes: got %v, want one", len(huge), d.Doubts())
	}
	many := strings.Repeat("ok - P1.C1\n", MaxPoints+1) + fmt.Sprintf("1..%d\n", MaxPoints+1)
	if d := Parse([]byte(many), true); len(d.Doubts()) == 0 || len(d.Points) != MaxPoints {
		t.Errorf("%d test lines: got %d and doubts %v, want %d and at least one doubt",
			MaxPoints+1, len(d.Points), d.Doubts(), MaxPoints)
	}
}

// An output that exceeds the limits is cut, and reported if it matters.
func TestLimits(t *testing.T) {
	var ids, fields []string
	for i := range 2 * maxIDs {
		ids = append(ids, fmt.Sprintf("P1.C%d", i+1))
		fields = append(fields, fmt.Sprintf("  f%d: %s", i, strings.Repeat("v", 2*MaxValue)), "   "+strings.Repeat("w", MaxValue))
	}
	lines := []string{"ok 1 - " + strings.Join(ids, " "), "ok 2 - P2.C1 " + strings.Repeat("é", maxText), "  ---"}
	lines = append(append(lines, fields...), "  ...", "ok 3 - P2.C2 "+strings.Repeat("x", MaxLine-len("ok 3 - P2.C2 ")), "ok 4 - P2.C3 # SKIP "+strings.Repeat("x", 2*maxText))
	for range 2 * MaxValue {
		lines = append(lines, "# c")
	}
	d := Parse([]byte(plan1(4, lines...)), true)
	var got strings.Builder
	for _, p := range d.Points {
		fmt.Fprintf(&got, "%d ids, %d fields, void %q;", len(p.IDs), len(p.Fields), p.Void())
		for key, text := range p.Fields {
			if len(text) > MaxValue || !strings.HasSuffix(text, wording.CutMark) {
				t.Errorf("value of %s: got %d bytes, want at most %d that end in %q",
					key, len(text), MaxValue, wording.CutMark)
			}
		}
	}
	want := `50 ids, 0 fields, void "names several contracts";1 ids, 100 fields, void "";` +
		`1 ids, 0 fields, void "";1 ids, 1 fields, void "is marked SKIP";`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d := Parse([]byte(strings.Repeat("1..1\n", 2*maxProblems)), true); len(d.Problems) != maxProblems {
		t.Errorf("problems: got %d, want %d", len(d.Problems), maxProblems)
	}
}

func TestOf(t *testing.T) {
	d := Parse([]byte("1..3\nok 1 - P1.C1 # SKIP\nok 2 - P1.C2, P1.C3\nok 3 - other\n  ok 4 - P1.C4\nOK P1.C5\n"), true)
	for id, want := range map[string]string{
		"P1.C1": "void false line 2 is marked SKIP",
		"P1.C2": "void true line 3 names several contracts",
		"P1.C3": "void true line 3 names several contracts",
		"P1.C4": "missing false no test line names it",
		"P1.C5": "missing false no test line names it",
		"P1.C6": "missing false no test line names it",
	} {
		r := d.Of(id)
		if got := fmt.Sprintf("%s %v %s", r.Status, d.Passes(id), r.Why); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	var strange []int
	for _, p := range d.Strange(func(id string) bool { return id == "P1.C1" }) {
		strange = append(strange, p.Line)
	}
	if !slices.Equal(strange, []int{3, 4}) {
		t.Errorf("strange lines: got %v, want [3 4]", strange)
	}
	var none Document
	if r := none.Of("P1.C1"); r.Status != Missing || none.Passes("P1.C1") {
		t.Errorf("result without an output: got %+v, want status %s and no pass", r, Missing)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", sample, "\ufeffTAP version 14\r\n1..1\r\nnot ok 1 - P1.C1\r\n  ---\r\n  observed: \"\\u001b\"\r\n  text: |\r\n    a\r\n   b\r\n  ...\r\n",
		"ok 1 - P1.C1, C2 \\# \\\\ # SKIP \\# x\n# a\n#  b\n  ---\n  # c\n  comment: |-\n  ...\n1..1", "ok - - 1 # todo\nBail out!\n    ok\n  ---\n",
		"ok 1 - P1.C1\u3000: P1.C2\n", "ok 0\nok 1 - # SKIP\n  ---\n  \n  a: \"|\"\n  b: >\n  \"\n",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		d := Parse(data, whole)
		for _, p := range d.Points {
			for _, id := range p.IDs {
				r := d.Of(id)
				if r.Status == OK && (!d.Passes(id) || len(r.Points) != 1 || !r.Points[0].OK) {
					t.Errorf("result of %s: got %+v, want status %s only for one test line that is ok", id, r, OK)
				}
			}
		}
		if !whole && len(d.Doubts()) == 0 {
			t.Error("doubts about a torn output: got none, want at least one")
		}
	})
}
