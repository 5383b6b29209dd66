package ledger

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/redact"
)

func TestTable(t *testing.T) {
	rows := []Row{
		{Phase: "10", Step: "1", Role: "builder", Model: "m", Agent: "gemini", Timestamp: "2026-11-21T10:00:00Z",
			Input: n(100), Cached: n(40), Candidates: n(20), Thoughts: n(5), Tool: n(0), Total: n(125), CostUSD: "0.0125"},
		{Phase: "2", Step: "3", Role: "verifier", Model: "m", Agent: "gemini", Timestamp: "2026-11-22T10:00:00Z",
			Input: n(7), Total: n(9)},
		{Phase: "2", Step: "3", Role: "verifier", Model: "\x1b[31mred", Timestamp: "soon"},
	}
	for by, want := range map[By]string{
		ByPhase: `phase  rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2         2    7+?       ?           ?         ?     ?    9+?           ?        ?
10        1    100      40          20         5     0    125         40%    0.013
all       3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
1 of 3 rows tell no count
`,
		ByIter: `iteration  rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2/3           2    7+?       ?           ?         ?     ?    9+?           ?        ?
10/1          1    100      40          20         5     0    125         40%    0.013
all           3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
1 of 3 rows tell no count
`,
		ByModel: `model    rows  input  cached  candidates  thoughts  tool  total  from cache      USD
[31mred     1      ?       ?           ?         ?     ?      ?           -        ?
m           2    107    40+?        20+?       5+?     ?    134       37%+?  0.013+?
all         3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
1 of 3 rows tell no count
`,
		ByDay: `day         rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2026-11-21     1    100      40          20         5     0    125         40%    0.013
2026-11-22     1      7       ?           ?         ?     ?      9           ?        ?
unknown        1      ?       ?           ?         ?     ?      ?           -        ?
all            3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
1 of 3 rows tell no count
`,
	} {
		totals := NewTotals(Ways()...)
		for _, r := range rows {
			totals.Add(r)
		}
		if diff := cmp.Diff(want, Table(by, totals.Groups(by), totals.Sum())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", by, diff)
		}
	}
}

func TestCounterNeverHidesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		numbers []*int64
		want    string
	}{
		{nil, "0"}, {[]*int64{n(0)}, "0"}, {[]*int64{nil}, "?"}, {[]*int64{n(0), nil}, "?"},
		{[]*int64{n(3), n(4)}, "7"}, {[]*int64{n(3), nil}, "3+?"},
		{[]*int64{n(math.MaxInt64), n(1)}, fmt.Sprint(int64(math.MaxInt64))},
	} {
		var got Counter
		for _, number := range c.numbers {
			got.add(number)
		}
		if got.String() != c.want {
			t.Errorf("%+v shows %q, want %q", got, got, c.want)
		}
	}
}

func TestTotalsJSON(t *testing.T) {
	totals := NewTotals(ByPhase, ByDay)
	totals.Add(Row{Phase: "1", Timestamp: "2026-11-21", Total: n(5)})
	data, err := json.Marshal(totals)
	if err != nil {
		t.Fatal(err)
	}
	const sum = `"rows":1,"unknown":0,"input":{"known":0,"missing":1},"candidates":{"known":0,"missing":1},` +
		`"cached":{"known":0,"missing":1},"thoughts":{"known":0,"missing":1},"tool":{"known":0,"missing":1},"total":{"known":5,"missing":0},"cost_usd":{"known":0,"missing":1}}`
	want := `{"all":{` + sum + `,"by":{"day":[{"key":"2026-11-21",` + sum + `],"phase":[{"key":"1",` + sum + `]}}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if data, err := json.Marshal(NewTotals(ByRole)); err != nil || !bytes.Contains(data, []byte(`"role":[]`)) {
		t.Errorf("without rows: %s, %v", data, err)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	totals := NewTotals(ByModel)
	for i := range maxGroups + 5 {
		totals.Add(Row{Model: fmt.Sprint("m", i)})
	}
	groups := totals.Groups(ByModel)
	if len(groups) != maxGroups+1 || totals.All.Rows != maxGroups+5 {
		t.Errorf("%d groups of %d rows", len(groups), totals.All.Rows)
	}
	if first := groups[0]; first.Key != others || first.Rows != 5 {
		t.Errorf("the others are %+v", first)
	}
}

func TestNatural(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"2", "10", -1}, {"1/10", "1/9", 1}, {"a", "a", 0}, {"a", "b", -1}, {"01", "1", -1}, {"", "a", -1}, {"1a", "1", 1}, {"m2x", "m2y", -1},
	} {
		if got, back := natural(c.a, c.b), natural(c.b, c.a); got != c.want || back != -c.want {
			t.Errorf("%q and %q: %d and %d", c.a, c.b, got, back)
		}
	}
}

// stream gives a ledger of so many rows without holding it.
type stream struct {
	rows, next int
	rest       []byte
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		switch {
		case s.next > s.rows:
			return 0, io.EOF
		case s.next == 0:
			s.rest = []byte(Header + "\n")
		default:
			s.rest = fmt.Appendf(s.rest[:0],
				"2026-11-21T10:00:00Z,%d,%d,builder,\"gemini-2.5-pro\",%d,20,,120,s%d,5,,unknown,gateway,p1-s%d.1,gemini,1500,done\n",
				s.next/100, s.next%100, s.next, s.next, s.next)
		}
		s.next++
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// TestAMillionRowsTakeConstantMemory reads what no machine has to hold: what is kept
// does not grow with the rows, and each row costs few allocations.
func TestAMillionRowsTakeConstantMemory(t *testing.T) {
	const rows = 1_000_000
	peak, count := uint64(0), 0
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, made := m.HeapAlloc, m.Mallocs
	totals := NewTotals(ByRole, ByModel, ByAgent, ByDay)
	err := Scan(&stream{rows: rows}, func(r Row) {
		totals.Add(r)
		if count++; count%100_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}, func(line int, reason string) { t.Errorf("line %d: %s", line, reason) })
	if err != nil || totals.All.Rows != rows || totals.All.Input.Known != rows*(rows+1)/2 {
		t.Fatalf("%v, %+v", err, totals.All)
	}
	if kept := int64(peak) - int64(before); kept > 1<<20 {
		t.Errorf("%d rows keep %d bytes", rows, kept)
	}
	runtime.ReadMemStats(&m)
	if each := float64(m.Mallocs-made) / rows; each > 8 { // those of the stream included
		t.Errorf("%.1f allocations a row", each)
	}
}

// TestExportsStream passes a ledger on row by row.
func TestExportsStream(t *testing.T) {
	const rows = 20_000
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak, count := m.HeapAlloc, uint64(0), 0
	w := NewWriter(io.Discard)
	err := Scan(&stream{rows: rows}, func(r Row) {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
		if count++; count%5_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}, func(line int, reason string) { t.Errorf("line %d: %s", line, reason) })
	if err := errors.Join(err, w.Flush()); err != nil || count != rows {
		t.Fatalf("%d rows, %v", count, err)
	}
	if kept := int64(peak) - int64(before); kept > 2<<20 {
		t.Errorf("%d rows keep %d bytes", rows, kept)
	}
}

func TestScanAllocatesLittlePerRow(t *testing.T) {
	const rows = 1000
	var data bytes.Buffer
	if _, err := data.ReadFrom(&stream{rows: rows}); err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(5, func() {
		if err := Scan(bytes.NewReader(data.Bytes()), func(Row) {}, func(int, string) {}); err != nil {
			t.Fatal(err)
		}
	})
	if perRow := allocs / rows; perRow > 3 {
		t.Errorf("%.1f allocations a row", perRow)
	}
}

func FuzzScan(f *testing.F) {
	f.Add(Header + "\n" + sampleLine)
	f.Add(oldHeader + "\n\"d\",\"1\",\"2\",\"b\",\"m\",\"ERROR\",0,0,0,\"none\"\r\n")
	f.Add("\ufeff" + strings.ReplaceAll(Header, ",", ";") + "\n;;;;;\"a;\"\"b\"\"\";\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines, known := strings.Count(text, "\n")+1, 0
		var rows []Row
		err := Scan(strings.NewReader(text),
			func(r Row) { known++; rows = append(rows, r) },
			func(int, string) { known++ })
		if known > lines || err != nil && known > 0 {
			t.Fatalf("%d results from %d lines, %v", known, lines, err)
		}
		var kept []Row
		for _, r := range rows {
			r.CallID = "" // repetitions are another law
			kept = append(kept, clean(r))
		}
		data, err := encode(kept)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range string(data) {
			if c != '\n' && !redact.Plain(c) {
				t.Fatalf("%q holds %U", data, c)
			}
		}
		for line := range strings.Lines(string(data)) {
			fields, err := splitLine(strings.TrimSuffix(line, "\n"), ',', nil)
			if err != nil || slices.ContainsFunc(fields, func(cell string) bool { return cell != "" && strings.Contains("=+-@", cell[:1]) }) {
				t.Fatalf("%q is a formula, %v", line, err)
			}
		}
		again, bad := read(t, Header+"\n"+string(data))
		if diff := cmp.Diff(kept, again); diff != "" || len(bad) > 0 {
			t.Errorf("written as\n%s\nbad %v (-want +got)\n%s", data, bad, diff)
		}
	})
}

// BenchmarkScan adds up a hundred thousand rows as `abl costs` does, and says how
// long that takes as a multiple of encoding/csv, which only takes the same text apart.
func BenchmarkScan(b *testing.B) {
	var data bytes.Buffer
	if _, err := data.ReadFrom(&stream{rows: 100_000}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(data.Len()))
	b.ReportAllocs()
	var own, anchor time.Duration
	for b.Loop() {
		begun := time.Now()
		totals := NewTotals(Ways()...)
		if err := Scan(bytes.NewReader(data.Bytes()), totals.Add, func(int, string) {}); err != nil {
			b.Fatal(err)
		}
		own += time.Since(begun)
		begun = time.Now()
		plain := csv.NewReader(bytes.NewReader(data.Bytes()))
		plain.ReuseRecord = true
		for _, err := plain.Read(); err == nil; _, err = plain.Read() {
		}
		anchor += time.Since(begun)
	}
	b.ReportMetric(float64(own)/float64(anchor), "x-csv")
}

func BenchmarkAppend(b *testing.B) {
	l := Open(b.TempDir() + "/tokens.csv")
	for i := 0; b.Loop(); i++ {
		if _, err := l.Append([]Row{sample(fmt.Sprint("c", i), "m")}); err != nil {
			b.Fatal(err)
		}
	}
}
