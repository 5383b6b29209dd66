package view

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	calls := Table{Header: []string{"ID", "PHASE 1", "CONTRACT"}, Flex: 2, Rows: [][]string{
		{"P1.C1", "pass", "GET /links/{id} → 302 with the address"}, {"P1.C2", "FAIL", "漢字 → 404"}}}
	sums := Table{Header: []string{"PHASE", "ROWS", "TOOL", "TOTAL"}, Right: true, Drop: []int{2, 1}, Rows: [][]string{
		{"1", "3", "?", "1200"}, {"all", "14", "?", "980"}}}
	cases := []struct {
		name    string
		table   Table
		columns int
		colours bool
		want    string
	}{
		{"in a pipe nothing is folded", calls, 0, false, `
ID     PHASE 1  CONTRACT
P1.C1  pass     GET /links/{id} → 302 with the address
P1.C2  FAIL     漢字 → 404
`},
		{"a narrow terminal folds one column", calls, 40, false, `
ID     PHASE 1  CONTRACT
P1.C1  pass     GET /links/{id} → 302
                with the address
P1.C2  FAIL     漢字 → 404
`},
		{"verdicts are in colour", calls, 80, true, `
ID     PHASE 1  CONTRACT
P1.C1  [32mpass[0m     GET /links/{id} → 302 with the address
P1.C2  [31mFAIL[0m     漢字 → 404
`},
		{"numbers are aligned right", sums, 80, false, `
PHASE  ROWS  TOOL  TOTAL
1         3     ?   1200
all      14     ?    980
`},
		{"columns of numbers are left out", sums, 20, false, `
PHASE  ROWS  TOTAL
1         3   1200
all      14    980
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "[3", "\x1b[3")
			want = strings.ReplaceAll(want, "[0m", "\x1b[0m")
			if got := c.table.Text(c.columns, c.colours); got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
		})
	}
}

// A long line is folded with an indent, and only a verdict at its beginning is in colour.
func TestLines(t *testing.T) {
	text := "contracts\n  FAIL       P1.C2  GET /b → 404 and pass on\n  passing is no verdict\n"
	want := "contracts\n  \x1b[31mFAIL\x1b[0m       P1.C2  GET /b\n    → 404 and pass on\n  passing is no verdict\n"
	if got := Lines(text, 30, true); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if got := Lines(text, 0, false); got != text {
		t.Errorf("got in a pipe\n%q\nwant\n%q", got, text)
	}
}
