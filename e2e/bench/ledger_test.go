package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"abl/internal/ledger"
	"abl/internal/testing/lab"
)

// BenchmarkCosts measures how long the user waits for abl costs on a ledger of ten thousand rows,
// more than a busy project has in a year.
func BenchmarkCosts(b *testing.B) {
	p := ledgerOf(b, 10_000)
	var took float64
	for b.Loop() {
		begun := time.Now()
		p.Must(0, "costs", "--json")
		took += time.Since(begun).Seconds()
	}
	b.ReportMetric(took/float64(b.N), "s/costs")
}

// ledgerOf returns a project whose ledger has this many rows, of many phases and models.
func ledgerOf(b *testing.B, rows int) *lab.Project {
	b.Helper()
	p := &lab.Project{TB: b, Dir: b.TempDir()}
	p.Must(0, "init")
	path := filepath.Join(p.Dir, ".abl/logs/tokens.csv")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, ledger.Header)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		phase, step := 1+i/10_000, 1+i/2_000%5
		role := []string{"builder", "verifier"}[i%2]
		fmt.Fprintf(w, "%s,%d,%d,%s,model-%d,1000,200,100,1200,session-%d,,,0.0123,gateway,p%d-%s-%d.%d,gemini,60000,done\n",
			ledger.Stamp(begin.Add(time.Duration(i)*time.Minute)), phase, step, role, i%7, i, phase, role, step, i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return p
}
