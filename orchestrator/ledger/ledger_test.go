package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocarina/gocsv"
	"github.com/google/go-cmp/cmp"
)

func n(v int64) *int64 { return &v }

// sample is a row of one call.
func sample(call, model string) Row {
	return Row{
		Timestamp: "2026-11-21T10:00:00Z", Phase: "1", Step: "2", Role: "builder", Model: model,
		Input: n(100), Candidates: n(20), Cached: n(0), Total: n(120), SessionID: "s1",
		CostUSD: Unknown, Source: CLI, CallID: call, Agent: "gemini", DurationMS: n(1500), Outcome: "done",
	}
}

const sampleLine = "2026-11-21T10:00:00Z,1,2,builder,m,100,20,0,120,s1,,,unknown,cli,c1,gemini,1500,done\n"

// read gives the rows of a text and its bad lines as "number: reason".
func read(t *testing.T, text string) (rows []Row, bad []string) {
	t.Helper()
	err := Scan(strings.NewReader(text),
		func(r Row) { rows = append(rows, r) },
		func(line int, reason string) { bad = append(bad, fmt.Sprintf("%d: %s", line, reason)) })
	if err != nil {
		t.Fatal(err)
	}
	return rows, bad
}

// file makes a ledger with a content, or none with "-".
func file(t *testing.T, content string) (*Ledger, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if content != "-" {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(path), path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// listing is the names in the file's directory.
func listing(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestHeaderIsTheRowsTags(t *testing.T) {
	text, err := gocsv.MarshalString([]Row{})
	if err != nil || strings.TrimSpace(text) != Header {
		t.Errorf("gocsv writes %q, %v; want %q", text, err, Header)
	}
	for i := range columns {
		r := &Row{}
		if (r.text(i) == nil) == (r.number(i) == nil) {
			t.Errorf("column %q is no text and no number, or both", columns[i])
		}
	}
	for at, want := range map[int]string{inputColumn: "input", costColumn: "cost_usd"} {
		if columns[at] != want {
			t.Errorf("column %d is %q", at, columns[at])
		}
	}
}

func TestAppend(t *testing.T) {
	l, path := file(t, "-")
	for range 2 { // a repetition changes nothing
		notices, err := l.Append([]Row{sample("c1", "m"), sample("c1", "m2")})
		if err != nil || len(notices) > 0 {
			t.Fatal(notices, err)
		}
	}
	want := Header + "\n" + sampleLine + strings.Replace(sampleLine, ",m,", ",m2,", 1)
	if diff := cmp.Diff(want, content(t, path)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := l.Append([]Row{sample("c2", "m")}); err != nil {
		t.Fatal(err)
	}
	rows, bad := read(t, content(t, path))
	if diff := cmp.Diff([]Row{sample("c1", "m"), sample("c1", "m2"), sample("c2", "m")}, rows); diff != "" || len(bad) > 0 {
		t.Errorf("bad %v (-want +got)\n%s", bad, diff)
	}
	if got := listing(t, path); got != "tokens.csv" {
		t.Errorf("left %s", got)
	}
}

func TestAppendAfterATornAppend(t *testing.T) {
	both := []Row{sample("c1", "m"), sample("c1", "m2")}
	second := strings.Replace(sampleLine, ",m,", ",m2,", 1)
	whole := Header + "\n" + sampleLine + second
	for cut := len(Header) + 1; cut < len(whole); cut++ {
		l, path := file(t, whole[:cut])
		notices, err := l.Append(both)
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != whole {
			t.Fatalf("cut at %d: (-want +got)\n%s", cut, cmp.Diff(whole, got))
		}
		if torn := whole[strings.LastIndexByte(whole[:cut], '\n')+1 : cut]; torn != "" {
			if kept := content(t, path+".torn"); kept != torn+"\n" || len(notices) != 1 {
				t.Errorf("cut at %d: kept %q, want %q; %v", cut, kept, torn, notices)
			}
		} else if len(notices) > 0 {
			t.Errorf("cut at %d: %v", cut, notices)
		}
	}
}

func TestEnsureHeader(t *testing.T) {
	const foreign = "hello\n"
	for _, c := range []struct{ name, before, after, notices, files string }{
		{"absent", "-", Header + "\n", "", "tokens.csv"},
		{"empty", "", Header + "\n", "", "tokens.csv"},
		{"ours", Header + "\n" + sampleLine, Header + "\n" + sampleLine, "", "tokens.csv"},
		{"header cut off", "timestamp,pha", Header + "\n",
			"0: the last line was cut off and is now in tokens.csv.torn\n", "tokens.csv tokens.csv.torn"},
		{"header without an end", Header, Header + "\n",
			"0: the last line was cut off and is now in tokens.csv.torn\n", "tokens.csv tokens.csv.torn"},
		{"foreign line", Header + "\n" + foreign + sampleLine, Header + "\n" + sampleLine,
			"2: set aside in tokens.csv.aside: it has 1 fields, the header has 18\n", "tokens.csv tokens.csv.aside"},
		{"older", oldHeader + "\n\"2026-01-02 03:04:05\",\"1\",\"2\",\"builder\",\"m\",100,20,0,120,\"s1\"\n" + foreign,
			Header + "\n2026-01-02 03:04:05,1,2,builder,m,100,20,0,120,s1,,,,,,,,\n",
			"0: the file had an older form and was brought up to date, the old one is tokens.csv.old1\n" +
				"3: set aside in tokens.csv.aside: it has 1 fields, the header has 18\n", "tokens.csv tokens.csv.aside tokens.csv.old1"},
		{"older with a call that failed", oldHeader + "\n\"d\",\"1\",\"2\",\"builder\",\"unknown\",\"ERROR\",0,0,0,\"none\"\n",
			Header + "\nd,1,2,builder,unknown,,,,,none,,,,,,,,\n",
			"0: the file had an older form and was brought up to date, the old one is tokens.csv.old1\n", "tokens.csv tokens.csv.old1"},
		{"spreadsheet's", "\ufeff" + strings.ReplaceAll(Header+"\n"+sampleLine, ",", ";"), Header + "\n" + sampleLine,
			"0: the file had an older form and was brought up to date, the old one is tokens.csv.old1\n", "tokens.csv tokens.csv.old1"},
		{"CRLF", strings.ReplaceAll(Header+"\n"+sampleLine, "\n", "\r\n"), strings.ReplaceAll(Header+"\n"+sampleLine, "\n", "\r\n"), "", "tokens.csv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, path := file(t, c.before)
			notices, err := l.EnsureHeader()
			if err != nil {
				t.Fatal(err)
			}
			var told strings.Builder
			for _, n := range notices {
				fmt.Fprintf(&told, "%d: %s\n", n.Line, n.Text)
			}
			if diff := cmp.Diff(c.notices, told.String()); diff != "" {
				t.Errorf("notices (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.after, content(t, path)); diff != "" {
				t.Errorf("content (-want +got)\n%s", diff)
			}
			if got := listing(t, path); got != c.files {
				t.Errorf("files %s, want %s", got, c.files)
			}
			if strings.HasSuffix(c.files, "old1") && content(t, path+".old1") != c.before {
				t.Error("the copy differs from what was there")
			}
			if again, err := l.Append([]Row{sample("c9", "m")}); err != nil || len(again) > 0 {
				t.Errorf("append: %v, %v", again, err)
			}
		})
	}
}

func TestEnsureHeaderMakesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "tokens.csv")
	if _, err := Open(path).EnsureHeader(); err != nil || content(t, path) != Header+"\n" {
		t.Errorf("got %v", err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	for _, c := range []struct{ before, want string }{
		{"hello", "is not the header"},
		{"a,b\n1,2\n", "is not the header"},
		{"\n" + Header + "\n", "is not the header"},
		{strings.Replace(Header, "role", "roll", 1) + "\n", `its header lacks "role"`},
		{Header + ",role\n", `its header has "role" twice`},
		{Header + ",mine\n", `its header has "mine", which is no column of the ledger`},
		{Header + ",mine", `its header has "mine", which is no column of the ledger`},
		{strings.Repeat("x", 2*maxLine), "is not the header"},
		{"\x00\x00\n", "is not the header"},
	} {
		l, path := file(t, c.before)
		_, err := l.EnsureHeader()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%.40q: got %v, want %q", c.before, err, c.want)
		}
		if _, err := l.Append([]Row{sample("c1", "m")}); err == nil {
			t.Errorf("%.40q: appended", c.before)
		}
		if content(t, path) != c.before || listing(t, path) != "tokens.csv" {
			t.Errorf("%.40q was changed, or %s", c.before, listing(t, path))
		}
	}
}

func TestLinksAndFIFOsAreRefused(t *testing.T) {
	dir := t.TempDir()
	target, link, fifo := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	err := errors.Join(os.WriteFile(target, []byte(Header+"\n"), 0o600), os.Symlink(target, link), syscall.Mkfifo(fifo, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		if _, err := Open(path).Append([]Row{sample("c1", "m")}); err == nil {
			t.Errorf("%s was written to", path)
		}
	}
	if got := content(t, target); got != Header+"\n" {
		t.Errorf("the link's target became %q", got)
	}
}

func TestKeepNeverOverwrites(t *testing.T) {
	l, path := file(t, oldHeader+"\n")
	if err := os.WriteFile(path+".old1", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.EnsureHeader(); err != nil {
		t.Fatal(err)
	}
	if content(t, path+".old1") != "precious" || content(t, path+".old2") != oldHeader+"\n" {
		t.Errorf("files: %s", listing(t, path))
	}
}

func TestCellsAreNoFormulas(t *testing.T) {
	for _, c := range []struct{ in, cell, out string }{
		{"=1+1", "'=1+1", "=1+1"},
		{"+1", "'+1", "+1"},
		{"-1", "'-1", "-1"},
		{"@x", "'@x", "@x"},
		{"\t=x", "'=x", "=x"},
		{"\r=x", "'=x", "=x"},
		{" =x", "\"' =x\"", " =x"},
		{"'=x", "''=x", "'=x"},
		{"＝x", "'＝x", "＝x"},
		{"it's", "it's", "it's"},
		{"a;=b", `"a,=b"`, "a,=b"},
		{"a\nb\x1b[2J\u202e", "ab[2J", "ab[2J"},
		{"\u200b=x", "'=x", "=x"},
		{"\u00a0=x", "'\u00a0=x", "\u00a0=x"},
		{"a\u200d\U000e0041\u2028\ufeffb", "ab", "ab"},
		{"a,\"b\"", `"a,""b"""`, `a,"b"`},
		{"\xff", "\ufffd", "\ufffd"},
	} {
		r := sample("c1", c.in)
		data, err := encode([]Row{r})
		if err != nil {
			t.Fatal(err)
		}
		cell := strings.TrimSuffix(strings.TrimPrefix(string(data), "2026-11-21T10:00:00Z,1,2,builder,"), ",100,20,0,120,s1,,,unknown,cli,c1,gemini,1500,done\n")
		if cell != c.cell && `"`+cell+`"` != c.cell {
			t.Errorf("%q is written as %q, want %q", c.in, cell, c.cell)
		}
		rows, bad := read(t, Header+"\n"+string(data))
		if len(rows) != 1 || rows[0].Model != c.out {
			t.Errorf("%q came back as %v, %v; want %q", c.in, rows, bad, c.out)
		}
	}
}

func TestAppendFindsRowsByTheirCleanNames(t *testing.T) {
	l, path := file(t, "-")
	for range 2 {
		if _, err := l.Append([]Row{sample("=c1\n", "@m;")}); err != nil {
			t.Fatal(err)
		}
	}
	if rows, _ := read(t, content(t, path)); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestExport(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Header(), w.Write(sample("c1", "m")), w.Flush()); err != nil || b.String() != Header+"\n"+sampleLine {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want string
	}{
		{Row{}, ""}, {Row{Input: n(0), Total: n(0)}, ""}, {Row{Total: n(1)}, Unknown}, {Row{Thoughts: n(3)}, Unknown},
	} {
		if got := Cost(c.row); got != c.want {
			t.Errorf("%+v costs %q, want %q", c.row, got, c.want)
		}
	}
}

func TestDay(t *testing.T) {
	for in, want := range map[string]string{
		Stamp(time.Date(2026, 11, 21, 1, 0, 0, 0, time.FixedZone("", 7200))): "2026-11-20",
		"2026-11-21T01:00:00.123+02:00":                                      "2026-11-20",
		"2026-11-21 01:00:00":                                                "2026-11-21",
		"21.11.2026":                                                         Unknown,
		"":                                                                   Unknown,
	} {
		if got := (Row{Timestamp: in}).Day(); got != want {
			t.Errorf("%q is day %q, want %q", in, got, want)
		}
	}
}

// TestNothingIsLostThatIsSetAside has lines of all kinds, longer than any buffer too.
func TestNothingIsLostThatIsSetAside(t *testing.T) {
	long := strings.Repeat("long ", maxLine)
	foreign := []string{"hello", long, `2026,"open`, "\x00\xff", long[:maxLine], long[:maxLine-1]}
	text := Header + "\n"
	for i, line := range foreign {
		text += line + "\n" + strings.Replace(sampleLine, "c1", fmt.Sprint("c", i), 1)
	}
	text += strings.Replace(sampleLine, "c1", "c0", 1) + "cut off"
	l, path := file(t, text)
	notices, err := l.EnsureHeader()
	if err != nil || len(notices) != len(foreign)+2 {
		t.Fatalf("%v, %v", notices, err)
	}
	rows, bad := read(t, content(t, path))
	if len(rows) != len(foreign) || len(bad) > 0 {
		t.Errorf("%d rows are left, and %v", len(rows), bad)
	}
	var aside []string
	for line := range strings.Lines(content(t, path+".aside")) {
		if !strings.HasPrefix(line, "# 20") {
			aside = append(aside, strings.TrimSuffix(line, "\n"))
		}
	}
	want := append(foreign, strings.TrimSpace(strings.Replace(sampleLine, "c1", "c0", 1)))
	if diff := cmp.Diff(want, aside); diff != "" {
		t.Errorf("set aside (-want +got)\n%.2000s", diff)
	}
	if again, err := l.EnsureHeader(); err != nil || len(again) > 0 {
		t.Errorf("a second time: %v, %v", again, err)
	}
	if got := content(t, path+".torn"); got != "cut off\n" {
		t.Errorf("torn: %q", got)
	}
}

// TestModerniseKeepsForeignLinesInPlace is Append's way: it moves nothing away.
func TestModerniseKeepsForeignLinesInPlace(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	old := oldHeader + "\nd,1,2,builder,m,1,2,0,3,s\n" + long + "\nd,1,3,builder,m,1,2,0,3,s\n"
	l, path := file(t, old)
	if _, err := l.Append([]Row{sample("c1", "m")}); err != nil {
		t.Fatal(err)
	}
	want := Header + "\nd,1,2,builder,m,1,2,0,3,s,,,,,,,,\n" + long + "\nd,1,3,builder,m,1,2,0,3,s,,,,,,,,\n" + sampleLine
	if diff := cmp.Diff(want, content(t, path)); diff != "" {
		t.Errorf("(-want +got)\n%.2000s", diff)
	}
}

func TestACommaIsAPointWhereSemicolonsPartCells(t *testing.T) {
	text := strings.ReplaceAll(Header+"\n"+strings.Replace(sampleLine, "unknown", "POINT", 1), ",", ";")
	rows, bad := read(t, strings.Replace(text, "POINT", "1,25E-05", 1))
	if len(bad) > 0 || len(rows) != 1 {
		t.Fatal(rows, bad)
	}
	if usd, known := rows[0].Cost(); !known || usd.String() != "0.0000125" {
		t.Errorf("costs %s, %v", usd, known)
	}
}
