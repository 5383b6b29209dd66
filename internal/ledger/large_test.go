package ledger

import (
	"errors"
	"os"
	"path/filepath"
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
