package git

import "testing"

// The key changes only with the entries that count.
func TestTreeKey(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	key := func(call string, files map[string]string) string {
		t.Helper()
		write(t, dir, files)
		s := snapshot(t, r, call, call)
		k, err := r.TreeKey(s.Commit.Hash, "builder_reports", "none")
		must(t, err)
		return k
	}
	first := key("1", map[string]string{"a": "1", "lib/b": "2"})
	if got := key("2", map[string]string{"builder_reports/x.md": "report"}); got != first {
		t.Errorf("key with a report: got %s, want %s", got, first)
	}
	if key("3", map[string]string{"a": "2", "builder_reports/y.md": "report"}) == first {
		t.Errorf("key with another content: got %s again, want another key", first)
	}
	if got := key("4", map[string]string{"a": "1", "builder_reports/z.md": "report"}); got != first {
		t.Errorf("key with the first content again: got %s, want %s", got, first)
	}
	if key("5", map[string]string{"lib/builder_reports/x.md": "1"}) == first {
		t.Errorf("key with the directory name elsewhere: got %s again, want another key", first)
	}
	if _, err := r.TreeKey("0123456789012345678901234567890123456789"); err == nil {
		t.Error("key of an unknown commit: got no error, want one")
	}
}
