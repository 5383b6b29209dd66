package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocarina/gocsv"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"abl/internal/usage"
)

func n(v int64) *int64 { return &v }

// sample returns a row of one call.
func sample(call, model string) Row {
	return Row{
		Timestamp: "2026-11-21T10:00:00Z", Phase: "1", Step: "2", Role: "builder", Model: model,
		Count:     usage.Count{Input: n(100), Candidates: n(20), Cached: n(0), Total: n(120)},
		SessionID: "s1", CostUSD: Unknown, Source: CLI, CallID: call, Agent: "gemini", DurationMS: n(1500), Outcome: "done",
	}
}

const sampleLine = "2026-11-21T10:00:00Z,1,2,builder,m,100,20,0,120,s1,,,unknown,cli,c1,gemini,1500,done\n"

// read returns the rows of a text, and its bad lines as "number: reason".
func read(t *testing.T, text string) (rows []Row, bad []string) {
	t.Helper()
	err := Open("tokens.csv").ScanText([]byte(text),
		func(r Row) { rows = append(rows, r) },
		func(line int, reason string) { bad = append(bad, fmt.Sprintf("%d: %s", line, reason)) })
	if err != nil {
		t.Fatal(err)
	}
	return rows, bad
}

// file creates a ledger with a content, or none for "-".
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

// listing returns the names in the file's directory.
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
	want, got := strings.Split(Header, ","), strings.Split(strings.TrimSpace(text), ",")
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("columns of the struct: got %q, error %v, want %q", got, err, want)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(f.Tag.Get("csv"), ",")
		if is := f.Type == reflect.TypeFor[*int64](); name != "" && name != "-" && is != slices.Contains(counts, name) {
			t.Errorf("column %q: got a count %t, want %t", name, slices.Contains(counts, name), is)
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
		t.Errorf("files: got %s, want tokens.csv", got)
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
				t.Errorf("cut at %d: got %q with notices %v, want %q with one notice", cut, kept, notices, torn+"\n")
			}
		} else if len(notices) > 0 {
			t.Errorf("notices after a cut at %d: got %v, want none", cut, notices)
		}
	}
}

func TestEnsureHeader(t *testing.T) {
	const foreign, ended = "hello\n", "moved the incomplete last line to tokens.csv.torn"
	const fewer = "added the missing columns"
	before := strings.TrimSuffix(Header, ",outcome") // what an abl before the last column wrote
	for _, c := range []struct{ name, before, after, notices, files string }{
		{"absent", "-", Header + "\n", "", "tokens.csv"},
		{"empty", "", Header + "\n", "", "tokens.csv"},
		{"ours", Header + "\n" + sampleLine, Header + "\n" + sampleLine, "", "tokens.csv"},
		{"last line cut off", Header + "\n" + sampleLine + "2026", Header + "\n" + sampleLine, ended, "tokens.csv tokens.csv.torn"},
		{"foreign line", Header + "\n" + foreign + sampleLine, Header + "\n" + foreign + sampleLine,
			"line 2 is not counted: not a row of the ledger: wrong number of fields", "tokens.csv"},
		{"ten columns", oldHeader + "\n\"2026-01-02 03:04:05\",\"1\",\"2\",\"builder\",\"m\",100,20,0,120,\"s1\"\n" + foreign,
			Header + "\n\"2026-01-02 03:04:05\",\"1\",\"2\",\"builder\",\"m\",100,20,0,120,\"s1\",,,,,,,,\nhello\n",
			fewer + "\nline 3 is not counted: not a row of the ledger: wrong number of fields", "tokens.csv"},
		{"a call that failed", oldHeader + "\n2026-01-02 03:04:05,1,2,builder,m,ERROR,0,0,0,s1\n",
			Header + "\n2026-01-02 03:04:05,1,2,builder,m,ERROR,0,0,0,s1,,,,,,,,\n", fewer, "tokens.csv"},
		{"a column less", before + "\n" + strings.Replace(sampleLine, ",done", "", 1),
			Header + "\n" + strings.Replace(sampleLine, ",done", ",", 1), fewer, "tokens.csv"},
		{"a column less, CRLF", before + "\r\n" + strings.Replace(sampleLine, ",done\n", "\r\n", 1),
			Header + "\n" + strings.Replace(sampleLine, ",done", ",", 1), fewer, "tokens.csv"},
		{"CRLF", strings.ReplaceAll(Header+"\n"+sampleLine, "\n", "\r\n"), strings.ReplaceAll(Header+"\n"+sampleLine, "\n", "\r\n"), "", "tokens.csv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, path := file(t, c.before)
			notices, err := l.EnsureHeader()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.notices, strings.Join(notices, "\n")); diff != "" {
				t.Errorf("notices (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.after, content(t, path)); diff != "" {
				t.Errorf("content (-want +got)\n%s", diff)
			}
			if got := listing(t, path); got != c.files {
				t.Errorf("files: got %s, want %s", got, c.files)
			}
			if again, err := l.Append([]Row{sample("c9", "m")}); err != nil || len(again) > 0 {
				t.Errorf("Append: got notices %v, error %v, want none", again, err)
			}
		})
	}
}

func TestEnsureHeaderMakesTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "tokens.csv")
	if _, err := Open(path).EnsureHeader(); err != nil || content(t, path) != Header+"\n" {
		t.Errorf("EnsureHeader: got error %v, want none, and the header in the file", err)
	}
}

func TestNeutral(t *testing.T) {
	row := func(role, rest string) string {
		return "2026-11-21T10:00:00Z,1,2," + role + ",m,100,20,0,120,s1" + rest + "\n"
	}
	const more = ",,,unknown,cli,c1,gemini,1500,done"
	for name, c := range map[string]struct{ before, after string }{
		"ours":              {Header + "\n" + sampleLine, Header + "\n" + sampleLine},
		"empty":             {"", ""},
		"ten columns":       {oldHeader + "\r\n" + row("=1", ""), oldHeader + "\n" + row("'=1", "")},
		"a formula":         {Header + "\n" + row("=cmd|' /C calc'!A0", more), Header + "\n" + row("'=cmd|' /C calc'!A0", more)},
		"behind a tab":      {Header + "\n" + row("\"\t+1\"", more), Header + "\n" + row("'+1", more)},
		"guarded already":   {Header + "\n" + row("'@a", more), Header + "\n" + row("'@a", more)},
		"escape codes":      {Header + "\n" + row("\x1b[2Jb\u202e", more), Header + "\n" + row("[2Jb", more)},
		"not a row":         {Header + "\n=a,=b\n", Header + "\n\"'=a,=b\"\n"},
		"one cell":          {Header + "\n\"=a\"\n", Header + "\n'=a\n"},
		"a quote left open": {Header + "\n=a,\"=b\n" + sampleLine, Header + "\n\"'=a,\"\"=b\"\n" + sampleLine},
		"another separator": {Header + "\na;=b\n", Header + "\n\"a,=b\"\n"},
		"cut off":           {Header + "\n" + sampleLine + "=a", Header + "\n" + sampleLine + "'=a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Neutral([]byte(c.before))
			if diff := cmp.Diff(c.after, string(got)); diff != "" || err != nil {
				t.Fatalf("%v (-want +got)\n%s", err, diff)
			}
			if again, err := Neutral(got); err != nil || string(again) != c.after {
				t.Errorf("Neutral again: got %q, error %v, want %q", again, err, c.after)
			}
		})
	}
	if got, err := Neutral([]byte("=cmd()\n")); err == nil {
		t.Errorf("Neutral of a foreign file: got %q, want an error", got)
	}
}

func TestForeignFilesAreNotChanged(t *testing.T) {
	for _, c := range []struct{ before, want string }{
		{"hello", "is not the header"},
		{"a,b\n1,2\n", "is not the header"},
		{"\n" + Header + "\n", "is not the header"},
		{strings.Replace(Header, "role", "roll", 1) + "\n", "is not the header"},
		{Header + ",mine\n", "is not the header"},
		{Header, "is not the header"},
		{"timestamp,pha", "is not the header"},
		{strings.ReplaceAll(Header, ",", ";") + "\n", "is not the header"},
		{strings.TrimSuffix(Header, "e") + "\n", "is not the header"},
		{"\x00\x00\n", "is not the header"},
	} {
		l, path := file(t, c.before)
		_, err := l.EnsureHeader()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%.40q: got %v, want %q", c.before, err, c.want)
		}
		if _, err := l.Append([]Row{sample("c1", "m")}); err == nil {
			t.Errorf("Append to %.40q: got no error, want one", c.before)
		}
		if content(t, path) != c.before || listing(t, path) != "tokens.csv" {
			t.Errorf("file after Append: got %.200q in %s, want %.200q in tokens.csv",
				content(t, path), listing(t, path), c.before)
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
			t.Errorf("Append to %s: got no error, want one", path)
		}
	}
	if got := content(t, target); got != Header+"\n" {
		t.Errorf("target of the link: got %q, want %q", got, Header+"\n")
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
		var data bytes.Buffer
		if err := write(&data, []Row{r}); err != nil {
			t.Fatal(err)
		}
		cell := strings.TrimSuffix(strings.TrimPrefix(data.String(), "2026-11-21T10:00:00Z,1,2,builder,"), ",100,20,0,120,s1,,,unknown,cli,c1,gemini,1500,done\n")
		if cell != c.cell && `"`+cell+`"` != c.cell {
			t.Errorf("cell of %q: got %q, want %q", c.in, cell, c.cell)
		}
		rows, bad := read(t, Header+"\n"+data.String())
		if len(rows) != 1 || rows[0].Model != c.out {
			t.Errorf("model %q read back: got %v, bad %v, want %q", c.in, rows, bad, c.out)
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
		t.Errorf("rows: got %d, want 1", len(rows))
	}
}

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []Row{sample("c1", "m")}); err != nil || b.String() != Header+"\n"+sampleLine {
		t.Errorf("Write: got %q, error %v, want %q", b.String(), err, Header+"\n"+sampleLine)
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want string
	}{
		{Row{}, ""}, {Row{Count: usage.Count{Input: n(0), Total: n(0)}}, ""}, {Row{Count: usage.Count{Total: n(1)}}, Unknown}, {Row{Count: usage.Count{Thoughts: n(3)}}, Unknown},
	} {
		if got := Cost(c.row); got != c.want {
			t.Errorf("Cost(%+v): got %q, want %q", c.row, got, c.want)
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
			t.Errorf("day of %q: got %q, want %q", in, got, want)
		}
	}
}

func TestScanReportsEachBadLine(t *testing.T) {
	good := func(call string) string { return strings.Replace(sampleLine, "c1", call, 1) }
	text := Header + "\n" + good("c1") +
		"foreign\n" +
		"\n" +
		`2026,1,2,"builder,m,1,1,1,1,s,,,,,c2,g,1,done` + "\n" + // an open quote
		good("c3") +
		`2026,1,2,buil"d"er,m,1,1,1,1,s,,,,,c2,g,1,done` + "\n" +
		strings.Replace(good("c4"), "100", "many", 1) +
		strings.Replace(good("c5"), "100", "-1", 1) +
		strings.Repeat("x", 200_000) + "\n" +
		"\x00\x00\x00\n" +
		good("c6") +
		good("c7")[:60]
	rows, bad := read(t, text)
	var calls []string
	for _, r := range rows {
		calls = append(calls, r.CallID)
	}
	if !slices.Equal(calls, []string{"c1", "c3", "c6"}) {
		t.Errorf("calls of the rows: got %q, want c1, c3 and c6", calls)
	}
	want := []string{
		"3: not a row of the ledger: wrong number of fields",
		"5: a quoted field is not closed",
		`7: not a row of the ledger: bare " in non-quoted-field`,
		`8: input is "many", want a whole number`,
		`9: input is "-1", want a whole number`,
		"10: not a row of the ledger: wrong number of fields",
		"11: not a row of the ledger: wrong number of fields",
		"13: incomplete: the line end is missing",
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A count is a decimal number or empty, and empty does not mean 0. A duplicate row counts once.
func TestCountsAreReadStrictly(t *testing.T) {
	with := func(call, input string) string {
		return strings.Replace(strings.Replace(sampleLine, "c1", call, 1), "100", input, 1)
	}
	rows, bad := read(t, Header+"\n"+with("c1", " 100 ")+with("c2", "  ")+with("c3", "1.9")+with("c4", "0x10")+with("c5", "010")+with("c1", "100"))
	if len(rows) != 3 || *rows[0].Input != 100 || rows[1].Input != nil || *rows[2].Input != 10 {
		t.Errorf("rows: got %+v, want inputs of 100, unknown and 10", rows)
	}
	if want := []string{`4: input is "1.9", want a whole number`, `5: input is "0x10", want a whole number`, "7: it duplicates line 2"}; !slices.Equal(bad, want) {
		t.Errorf("bad lines: got %q, want %q", bad, want)
	}
}

// An older file that cannot be rewritten stays unchanged.
func TestOldLedgerNotWritable(t *testing.T) {
	before := oldHeader + "\n" + strings.Repeat(`"2026-01-02 03:04:05","1","2","builder","m","1","2","0","3","s1"`+"\n", 100)
	l, path := file(t, before)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit) })
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(len(before)), Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	notices, err := l.EnsureHeader()
	if err == nil || len(notices) > 0 {
		t.Errorf("got notices %q, error %v, want only an error", notices, err)
	}
	if content(t, path) != before || listing(t, path) != "tokens.csv" {
		t.Errorf("file: got %.200q in %s, want %.200q in tokens.csv", content(t, path), listing(t, path), before)
	}
}

// A ledger of the first version of the format is read completely, with the same meaning.
func TestFirstFormat(t *testing.T) {
	rows, bad := read(t, content(t, "testdata/first.csv"))
	at := func(clock string) Row {
		return Row{Timestamp: "2026-03-01T" + clock + "Z", Phase: "1", Step: "1", Agent: "gemini", DurationMS: n(1000), Outcome: "done"}
	}
	first, second, third := at("12:00:00"), at("12:10:00"), at("12:20:00")
	first.Role, first.Model, first.SessionID, first.CostUSD, first.Source, first.CallID = "builder", "gemini-2.5-pro", "s1", "0.1", Gateway, "p1-build-1.1"
	first.Count = usage.Count{Input: n(100000), Candidates: n(20000), Cached: n(50000), Total: n(120000), Thoughts: n(300), Tool: n(0)}
	second.Role, second.Model, second.CostUSD, second.Source, second.CallID = "verifier", "gemini-2.5-pro, tuned", Unknown, CLI, "p1-verify-1.1"
	second.Count = usage.Count{Input: n(100000), Candidates: n(20000), Total: n(120000)}
	third.Step, third.Role, third.Model, third.Source, third.CallID = "2", "builder", "=m", Nobody, "p1-build-2.1"
	third.DurationMS, third.Outcome = n(5), "interrupted"
	if diff := cmp.Diff([]Row{first, second, third}, rows); diff != "" || len(bad) > 0 {
		t.Errorf("bad %v (-want +got)\n%s", bad, diff)
	}
}

// All rows of a large ledger are read. BenchmarkCosts measures the time.
func TestTenThousandRows(t *testing.T) {
	rows := make([]Row, 10_000)
	for i := range rows {
		rows[i] = sample(fmt.Sprint("c", i), "m")
	}
	l, path := file(t, "-")
	var b bytes.Buffer
	if err := errors.Join(Write(&b, rows), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	totals := &Totals{}
	if err := l.Scan(totals.Add, func(line int, reason string) {
		t.Errorf("line %d: got %s, want a row", line, reason)
	}); err != nil {
		t.Fatal(err)
	}
	if totals.all.Rows != len(rows) {
		t.Errorf("got %d rows, want %d", totals.all.Rows, len(rows))
	}
}
