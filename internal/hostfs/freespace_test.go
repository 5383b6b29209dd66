package hostfs

import (
	"strings"
	"testing"
)

func TestShort(t *testing.T) {
	const g = 1 << 30
	for _, c := range []struct {
		left Free
		want string
	}{
		{Free{Bytes: 2 * g, Of: 100 * g}, ""},
		{Free{Bytes: g, Of: 100 * g}, ""},
		{Free{Bytes: g - 1<<20, Of: 100 * g}, "only 1023 MiB left"},
		{Free{Bytes: g / 10, Of: g}, ""}, // a small disk
		{Free{Bytes: g / 21, Of: g}, "only 48 MiB left on its disk, need at least 51 MiB"},
		{Free{}, ""}, // the file system reports nothing
		{Free{Bytes: 2 * g, Of: 100 * g, Inodes: 49_999, All: 10_000_000}, "only 49999 inodes left"},
		{Free{Bytes: 2 * g, Of: 100 * g, Inodes: 5_000, All: 100_000}, ""},
		{Free{Bytes: 2 * g, Of: 100 * g, Inodes: 4_999, All: 100_000}, "need at least 5000"},
	} {
		if got := c.left.Short(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.left, got, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	l, err := FreeSpace(t.TempDir())
	if err != nil || l.Bytes <= 0 || l.Of < l.Bytes {
		t.Errorf("FreeSpace: got %+v, %v, want free bytes, and at most the size of the disk", l, err)
	}
	if _, err := FreeSpace("/none/such"); err == nil {
		t.Error("FreeSpace of a missing directory: got no error, want one")
	}
}
