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
	if key("2", map[string]string{"builder_reports/x.md": "report"}) != first {
		t.Error("a report makes another source")
	}
	if key("3", map[string]string{"a": "2", "builder_reports/y.md": "report"}) == first {
		t.Error("another content makes the same source")
	}
	if key("4", map[string]string{"a": "1", "builder_reports/z.md": "report"}) != first {
		t.Error("what is put back does not make the source that it was")
	}
	if key("5", map[string]string{"lib/builder_reports/x.md": "1"}) == first {
		t.Error("a folder of that name elsewhere is left out")
	}
	if _, err := r.TreeKey("0123456789012345678901234567890123456789"); err == nil {
		t.Error("an unknown commit has a key")
	}
}
