package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"abl/internal/hostfs"
)

// A huge ledger in a repository does not fill the memory.
func TestLargeLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(path, []byte(Header+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8<<30); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(l *Ledger) error{
		"scan":   func(l *Ledger) error { return l.Scan(func(Row) {}, func(int, string) {}) },
		"append": func(l *Ledger) error { _, err := l.Append([]Row{{CallID: "c"}}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(Open(path)); !errors.Is(err, hostfs.ErrTooLarge) {
				t.Errorf("got %v, want %v", err, hostfs.ErrTooLarge)
			}
		})
	}
}

// Scan reads a long ledger in batches. It keeps only the keys of earlier rows.
func TestScanHoldsNoRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.csv")
	const rows = 20_000
	text := []byte(Header + "\n")
	for n := range rows {
		text = fmt.Appendf(text, "2026-03-01T12:00:00Z,1,%d,builder,a-model,1000,200,500,1200,%s,0,0,0.1,gateway,p1-build-%d.1,gemini,1000,done\n",
			n, strings.Repeat("s", 100), n)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, n, most := held(), 0, uint64(0)
	if err := Open(path).Scan(func(Row) {
		if n++; n == 1 || n == rows {
			most = max(most, held())
		}
	}, func(line int, reason string) { t.Errorf("line %d: got %s, want a row", line, reason) }); err != nil {
		t.Fatal(err)
	}
	if limit := before + 5*uint64(len(text))/2; n != rows || most > limit {
		t.Errorf("memory for %d rows: got %d bytes, want %d rows and at most %d bytes for a file of %d",
			n, most, rows, limit, len(text))
	}
}
