package ledger

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"abl/internal/redact"
	"abl/internal/usage"
)

func TestTable(t *testing.T) {
	rows := []Row{
		{
			Phase: "10", Step: "1", Role: "builder", Model: "m", Agent: "gemini", Timestamp: "2026-11-21T10:00:00Z",
			Count:   usage.Count{Input: n(100), Cached: n(40), Candidates: n(20), Thoughts: n(5), Tool: n(0), Total: n(125)},
			CostUSD: "0.0125",
		},
		{
			Phase: "2", Step: "3", Role: "verifier", Model: "m", Agent: "gemini", Timestamp: "2026-11-22T10:00:00Z",
			Count: usage.Count{Input: n(7), Total: n(9)},
		},
		{Phase: "2", Step: "3", Role: "verifier", Model: "\x1b[31mred", Timestamp: "soon"},
	}
	for by, want := range map[By]string{
		ByPhase: `phase  rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2         2    7+?       ?           ?         ?     ?    9+?           ?        ?
10        1    100      40          20         5     0    125         40%    0.013
all       3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
`,
		ByIter: `iteration  rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2/3           2    7+?       ?           ?         ?     ?    9+?           ?        ?
10/1          1    100      40          20         5     0    125         40%    0.013
all           3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
`,
		ByModel: `model    rows  input  cached  candidates  thoughts  tool  total  from cache      USD
[31mred     1      ?       ?           ?         ?     ?      ?           -        ?
m           2    107    40+?        20+?       5+?     ?    134       37%+?  0.013+?
all         3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
`,
		ByDay: `day         rows  input  cached  candidates  thoughts  tool  total  from cache      USD
2026-11-21     1    100      40          20         5     0    125         40%    0.013
2026-11-22     1      7       ?           ?         ?     ?      9           ?        ?
unknown        1      ?       ?           ?         ?     ?      ?           -        ?
all            3  107+?    40+?        20+?       5+?     ?  134+?       37%+?  0.013+?
`,
	} {
		var totals Totals
		for _, r := range rows {
			totals.Add(r)
		}
		if diff := cmp.Diff(want, aligned(totals.Account().Rows(by))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", by, diff)
		}
	}
}

// aligned aligns the first column to the left and the others to the right.
func aligned(lines [][]string) string {
	widest := 0
	for _, line := range lines {
		widest = max(widest, utf8.RuneCountInString(line[0]))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 0, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		fmt.Fprintf(w, "%-*s\t  %s\t\n", widest, line[0], strings.Join(line[1:], "\t  "))
	}
	w.Flush()
	return b.String()
}

func TestCounterShowsMissingCounts(t *testing.T) {
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
			got.add(number, true)
		}
		if got.String() != c.want {
			t.Errorf("text of %+v: got %q, want %q", got, got, c.want)
		}
	}
}

// A row with incomplete counts makes every sum incomplete.
func TestAPartIsNeverTheTotal(t *testing.T) {
	var totals Totals
	totals.Add(Row{Phase: "1", Source: Gateway, Count: usage.Count{Input: n(5), Candidates: n(5), Total: n(10)}, CostUSD: "1"})
	totals.Add(Row{Phase: "1", Source: Nobody, Count: usage.Count{Input: n(2), Total: n(2)}, CostUSD: Unknown})
	got := totals.Account().All
	if text := fmt.Sprint(got.Input, got.Candidates, got.Total, got.Cost, got.Unknown); text != "7+? 5+? 12+? 1.00+? 0" {
		t.Errorf("got %s, want 7+? 5+? 12+? 1.00+? 0", text)
	}
}

// A subscription costs no dollars, and its tokens are added up. Costs of other rows stay visible.
func TestTotalsOfASubscription(t *testing.T) {
	row := func(cost, source string) Row {
		return Row{Phase: "1", Source: source, Count: usage.Count{Input: n(10), Candidates: n(2), Total: n(12)}, CostUSD: cost}
	}
	plan := row(Subscription, Gateway)
	for _, c := range []struct {
		name                string
		rows                []Row
		total, cell, amount string
	}{
		{"a subscription", []Row{plan, plan}, "24", "subscription", "subscription"},
		{"incomplete counts", []Row{plan, row(Subscription, Nobody)}, "24+?", "subscription", "subscription"},
		{"and dollars", []Row{plan, row("0.50", Gateway)}, "24", "0.50", "0.50 USD and a subscription"},
		{"and an unknown cost", []Row{plan, row(Unknown, Gateway)}, "24", "?", "subscription"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := file(t, "-")
			for i := range c.rows {
				c.rows[i].CallID = fmt.Sprint("c", i)
			}
			if _, err := l.Append(c.rows); err != nil {
				t.Fatal(err)
			}
			var totals Totals
			if err := l.Scan(totals.Add, func(line int, reason string) {
				t.Errorf("line %d: got %s, want a row", line, reason)
			}); err != nil {
				t.Fatal(err)
			}
			got := totals.Account().All
			if got.Total.String() != c.total || got.Cost.String() != c.cell || got.Cost.Amount() != c.amount {
				t.Errorf("got %s tokens for %s, %q; want %s for %s, %q",
					got.Total, got.Cost, got.Cost.Amount(), c.total, c.cell, c.amount)
			}
		})
	}
}

func TestTotalsJSON(t *testing.T) {
	var totals Totals
	totals.Add(Row{Phase: "1", Timestamp: "2026-11-21T10:00:00Z", Count: usage.Count{Total: n(5)}})
	data, err := json.Marshal(totals.Account())
	if err != nil {
		t.Fatal(err)
	}
	const sum = `"rows":1,"unknown":0,"input":{"known":0,"missing":1},"candidates":{"known":0,"missing":1},` +
		`"cached":{"known":0,"missing":1},"thoughts":{"known":0,"missing":1},"tool":{"known":0,"missing":1},"total":{"known":5,"missing":0},"cost_usd":{"known":0,"missing":1}}`
	want := `{"all":{` + sum + `,"by":{`
	for _, group := range []string{`"agent":[{"key":"unknown"`, `"day":[{"key":"2026-11-21"`, `"iteration":[{"key":"1/"`, `"model":[{"key":"unknown"`, `"phase":[{"key":"1"`, `"role":[{"key":"unknown"`} {
		want += group + "," + sum + "],"
	}
	want = strings.TrimSuffix(want, ",") + "}}"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if data, err := json.Marshal(new(Totals).Account()); err != nil || !bytes.Contains(data, []byte(`"role":[]`)) {
		t.Errorf("totals without rows: got %s, error %v, want an empty list of roles", data, err)
	}
}

func TestGroupsAreSortedByNumber(t *testing.T) {
	var totals Totals
	for _, model := range []string{"b", "m10", "m2", "10", "2", "1/10", "1/9", ""} {
		totals.Add(Row{Model: model})
	}
	var keys []string
	for _, g := range totals.Account().By[ByModel] {
		keys = append(keys, g.Key)
	}
	if want := []string{"1/9", "1/10", "2", "10", "b", "m2", "m10", Unknown}; !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
}

func FuzzScan(f *testing.F) {
	f.Add(Header + "\n" + sampleLine)
	f.Add(oldHeader + "\n\"d\",\"1\",\"2\",\"b\",\"m\",\"ERROR\",0,0,0,\"none\"\r\n")
	f.Add("\ufeff" + strings.ReplaceAll(Header, ",", ";") + "\n;;;;;\"a;\"\"b\"\"\";\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines, known := strings.Count(text, "\n")+1, 0
		var rows []Row
		err := Open("tokens.csv").ScanText([]byte(text),
			func(r Row) { known++; rows = append(rows, r) },
			func(int, string) { known++ })
		if known > lines || err != nil && known > 0 {
			t.Fatalf("results: got %d, error %v, want at most %d, none with an error", known, err, lines)
		}
		var kept []Row
		for _, r := range rows {
			kept = append(kept, r.Map(cleanText))
		}
		var out bytes.Buffer
		if err := write(&out, kept); err != nil {
			t.Fatal(err)
		}
		data := out.String()
		for _, c := range data {
			if c != '\n' && !redact.Plain(c) {
				t.Fatalf("written rows %q: got %U, want only plain characters", data, c)
			}
		}
		for line := range strings.Lines(data) {
			fields, err := csv.NewReader(strings.NewReader(line)).Read()
			if err != nil || slices.ContainsFunc(fields, func(cell string) bool { return cell != "" && strings.Contains("=+-@", cell[:1]) }) {
				t.Fatalf("cells of %q: got %q, error %v, want no formula", line, fields, err)
			}
		}
		again, bad := read(t, Header+"\n"+data)
		if diff := cmp.Diff(kept, again); diff != "" || len(bad) > 0 {
			t.Errorf("written as\n%s\nbad %v (-want +got)\n%s", data, bad, diff)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	l := Open(b.TempDir() + "/tokens.csv")
	for i := 0; b.Loop(); i++ {
		if _, err := l.Append([]Row{sample(fmt.Sprint("c", i), "m")}); err != nil {
			b.Fatal(err)
		}
	}
}
