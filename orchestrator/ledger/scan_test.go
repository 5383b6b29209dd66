package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScanGoesOn(t *testing.T) {
	good := func(call string) string { return strings.Replace(sampleLine, "c1", call, 1) }
	text := Header + "\n" + good("c1") +
		"foreign\n" +
		good("c1") + // repeated
		"\n" +
		`2026,1,2,"builder,m,1,1,1,1,s,,,,,c2,g,1,done` + "\n" + // an open quote
		good("c3") +
		strings.Replace(good("c4"), "100", "many", 1) +
		strings.Replace(good("c5"), "100", "-1", 1) +
		strings.Repeat("x", 3*maxLine) + "\n" +
		"\x00\x00\x00\n" +
		good("c6") +
		good("c7")[:60]
	rows, bad := read(t, text)
	var calls []string
	for _, r := range rows {
		calls = append(calls, r.CallID)
	}
	if !slices.Equal(calls, []string{"c1", "c3", "c6"}) {
		t.Errorf("rows of %v", calls)
	}
	want := []string{
		"3: it has 1 fields, the header has 18",
		"4: it repeats line 2, the same call and model",
		"6: a quoted field is not closed",
		`8: input is "many", which is no count`,
		`9: input is "-1", which is no count`,
		"10: it is longer than 65536 bytes",
		"11: it has 1 fields, the header has 18",
		"13: it is cut off: it has no line end",
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestScanUnderstandsSpreadsheets(t *testing.T) {
	want := sample("c1", "m")
	for name, text := range map[string]string{
		"semicolons": strings.ReplaceAll(Header+"\n"+sampleLine, ",", ";"),
		"tabs":       strings.ReplaceAll(Header+"\n"+sampleLine, ",", "\t"),
		"BOM, CRLF":  "\ufeff" + strings.ReplaceAll(Header+"\n"+sampleLine, "\n", "\r\n"),
		"quotes":     `"` + strings.ReplaceAll(Header, ",", `","`) + "\"\n\"" + strings.ReplaceAll(strings.TrimSpace(sampleLine), ",", `","`) + "\"\n",
		"capitals":   strings.ToUpper(Header) + "\n" + sampleLine,
		"reordered":  reorder(Header + "\n" + sampleLine),
		"more":       Header + ",mine\n" + strings.TrimSpace(sampleLine) + ",x\n",
	} {
		rows, bad := read(t, text)
		if diff := cmp.Diff([]Row{want}, rows); diff != "" || len(bad) > 0 {
			t.Errorf("%s: bad %v (-want +got)\n%s", name, bad, diff)
		}
	}
	if rows, bad := read(t, ""); len(rows)+len(bad) > 0 {
		t.Errorf("an empty file has %v, %v", rows, bad)
	}
	var foreign *Foreign
	if err := Scan(strings.NewReader("a,b\n"), func(Row) {}, func(int, string) {}); !errors.As(err, &foreign) {
		t.Errorf("got %v", err)
	}
}

// reorder turns the columns of a text around.
func reorder(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		slices.Reverse(fields)
		fmt.Fprintln(&b, strings.Join(fields, ","))
	}
	return b.String()
}
