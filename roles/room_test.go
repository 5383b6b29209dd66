package roles

import (
	"errors"
	"strings"
	"testing"

	"abl/internal/hostfs"
	"abl/internal/testing/rolestest"
)

func TestExceeds(t *testing.T) {
	g := DiskQuota{Bytes: 10 << 20, Inodes: 100}
	for _, c := range []struct {
		is   hostfs.Size
		was  TreeSize
		want string
	}{
		{hostfs.Size{Bytes: 110 << 20, Names: 1100}, TreeSize{Bytes: 100 << 20, Names: 1000}, ""},
		{hostfs.Size{Bytes: 111 << 20, Names: 1100}, TreeSize{Bytes: 100 << 20, Names: 1000}, "grew by 11 MiB"},
		{hostfs.Size{Names: 1101}, TreeSize{Names: 1000}, "grew by 101 files"},
		{hostfs.Size{Bytes: 1 << 20}, TreeSize{Bytes: 100 << 20}, ""},
		{hostfs.Size{Depth: hostfs.MaxDepth}, TreeSize{}, "nested deeper"},
		{hostfs.Size{Depth: hostfs.MaxDepth}, TreeSize{Depth: hostfs.MaxDepth}, ""},
		{hostfs.Size{Bytes: 11 << 20, File: hostfs.Place{Path: "a\x1b[2J\"\n"}}, TreeSize{}, `"a\x1b[2J\"\n"`},
	} {
		if got := g.exceeds(c.is, c.was); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.is, got, c.want)
		}
	}
}

func TestHasRoom(t *testing.T) {
	if err := (DiskQuota{Disks: []string{t.TempDir()}}).CheckRoom(); err != nil {
		t.Error(err)
	}
	full := rolestest.FullDisk(t)
	if full == "" {
		return
	}
	if err := (DiskQuota{Disks: []string{t.TempDir(), full}}).CheckRoom(); !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), full) {
		t.Errorf("error of a full disk: got %v, want %v with %q", err, ErrNoRoom, full)
	}
}
