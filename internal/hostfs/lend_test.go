package hostfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRoleID(t *testing.T) {
	tests := []struct {
		euid, egid, owner, group int
		uid, gid                 int
		lend                     bool
	}{
		{1000, 1000, 1000, 1000, 1000, 1000, false},
		{1000, 1000, 0, 0, 1000, 1000, false},
		{1000, 0, 1000, 1000, 1000, 1000, false},
		{0, 0, 1000, 1001, 1000, 1001, false},
		{0, 0, 1000, 0, 1000, 1000, false},
		{0, 0, 0, 0, lentID, lentID, true},
		{0, 0, 0, 1000, lentID, lentID, true},
	}
	for _, tt := range tests {
		uid, gid, lend := roleID(tt.euid, tt.egid, tt.owner, tt.group)
		if uid != tt.uid || gid != tt.gid || lend != tt.lend || uid == 0 || gid == 0 {
			t.Errorf("roleID(%d, %d, %d, %d): got %d:%d, %v, want %d:%d, %v",
				tt.euid, tt.egid, tt.owner, tt.group, uid, gid, lend, tt.uid, tt.gid, tt.lend)
		}
	}
	if uid, gid, lend := RoleID(filepath.Join(t.TempDir(), "none"), 0); uid != lentID || gid != lentID || !lend {
		t.Errorf("RoleID without a project: got %d:%d, %v, want %d:%d, true", uid, gid, lend, lentID, lentID)
	}
}

// tree creates a workspace that root owns, and a file next to it.
func tree(t *testing.T) (dir, outside string) {
	t.Helper()
	old := unix.Umask(0o022)
	t.Cleanup(func() { unix.Umask(old) })
	base := t.TempDir()
	dir, outside = filepath.Join(base, "src"), filepath.Join(base, "outside")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.MkdirAll(at("a/b/.git"), 0o755), os.MkdirAll(at(".git/objects"), 0o755), os.WriteFile(outside, nil, 0o600),
		os.WriteFile(at("file"), nil, 0o644), os.WriteFile(at("a/b/deep"), nil, 0o600), os.WriteFile(at(".git/HEAD"), nil, 0o644),
		os.Symlink(outside, at("link")), os.Symlink("..", at("a/up")), os.Link(outside, at("shared")),
		os.WriteFile(at("twin"), nil, 0o644), os.Link(at("twin"), at("a/twin")), os.Chmod(dir, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

// owners maps every path in and next to dir to its owner and mode.
func owners(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(filepath.Dir(dir), func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[rel] = fmt.Sprintf("%d:%d %o", st.Uid, st.Gid, st.Mode&0o7777)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lend plans and lends dir. Without root it checks that Lend fails and returns false, so that the
// test ends.
func lend(t *testing.T, dir string) (Lease, bool) {
	t.Helper()
	lease, err := Plan(dir, lentID, lentID)
	if err != nil {
		t.Fatal(err)
	}
	err = Lend(dir, lease)
	if os.Geteuid() != 0 {
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("Lend by a user other than root: got %v, want %v", err, os.ErrPermission)
		}
		return lease, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return lease, true
}

func TestLendAndReturn(t *testing.T) {
	dir, _ := tree(t)
	before := owners(t, dir)
	lease, ok := lend(t, dir)
	if !ok {
		return
	}
	const mine, role = "0:0", "10001:10001"
	want := map[string]string{
		"..": before[".."], "../outside": before["../outside"], ".": "0:10001 775", "file": role + " 644", "a": role + " 755",
		"a/b": role + " 755", "a/b/deep": role + " 600", "a/b/.git": role + " 755", "a/up": role + " 777", "link": role + " 777",
		".git": mine + " 755", ".git/objects": mine + " 755", ".git/HEAD": mine + " 644", "shared": mine + " 600",
		"twin": role + " 644", "a/twin": role + " 644",
	}
	for range 2 {
		if diff := cmp.Diff(want, owners(t, dir)); diff != "" {
			t.Errorf("owners of the lent files (-want +got):\n%s", diff)
		}
		if err := Lend(dir, lease); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		found, err := Return(dir, overDisk(t, lease))
		if err != nil || len(found) > 0 {
			t.Fatalf("Return: got %v, %v, want no finding", found, err)
		}
		if diff := cmp.Diff(before, owners(t, dir)); diff != "" {
			t.Errorf("owners of the returned files (-want +got):\n%s", diff)
		}
	}
}

// overDisk encodes and decodes the lease, as the state file does.
func overDisk(t *testing.T, l Lease) Lease {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back Lease
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// A killed abl has lent only a part of the workspace.
func TestReturnAfterInterruptedLend(t *testing.T) {
	dir, _ := tree(t)
	before := owners(t, dir)
	lease, err := Plan(dir, lentID, lentID)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return // a part cannot be lent either; TestLendAndReturn has seen the refusal
	}
	if err := os.Lchown(filepath.Join(dir, "a/b/deep"), lentID, lentID); err != nil {
		t.Fatal(err)
	}
	if _, err := Return(dir, lease); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, owners(t, dir)); diff != "" {
		t.Errorf("owners of the returned files (-want +got):\n%s", diff)
	}
}

func TestReturnDisarmsAndReports(t *testing.T) {
	dir, _ := tree(t)
	lease, ok := lend(t, dir)
	if !ok {
		return
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	sock, err := net.Listen("unix", at("sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	if err := errors.Join(
		unix.Mkfifo(at("a/fifo"), 0o644), os.WriteFile(at("sh"), nil, 0o755), os.Mkdir(at("sg"), 0o755), os.WriteFile(at("a/\x1bx"), nil, 0o600),
		unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/fifo", "sh", "sg", "a/\x1bx", "null", "sock"} {
		if err := os.Lchown(at(name), lentID, lentID); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Chmod(at("sh"), 0o6755), unix.Chmod(at("sg"), 0o2755), unix.Chmod(at("a/\x1bx"), 0o2600)); err != nil {
		t.Fatal(err)
	}
	found, err := Return(dir, lease)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(found, "\n")
	for _, want := range []string{
		`"a/fifo" is a FIFO`, `"sock" is a socket`, `"null" is a device`, `"sh" had a setuid or setgid bit`, `"sg" had`, `"a/\x1bx" had`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("findings: got %s, want %s among them", got, want)
		}
	}
	if len(found) != 6 {
		t.Errorf("findings: got %d, want 6: %s", len(found), got)
	}
	after := owners(t, dir)
	for name, want := range map[string]string{"sh": "0:0 755", "sg": "0:0 755", "a/\x1bx": "0:0 600", "a/fifo": "0:0 644", "null": "0:0 644"} {
		if after[name] != want {
			t.Errorf("owner and mode of %q: got %s, want %s", name, after[name], want)
		}
	}
}

func TestReturnLimitsFindings(t *testing.T) {
	dir := t.TempDir()
	me := Lease{UID: os.Geteuid(), GID: os.Getegid(), OwnerUID: os.Geteuid(), OwnerGID: os.Getegid(), Mode: 0o755}
	for i := range 70 {
		if err := unix.Mkfifo(filepath.Join(dir, fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Return(dir, me); err != nil || len(got) != maxShown+1 || got[maxShown] != "and 20 more" {
		t.Errorf("findings: got %q, %v, want %d and then %q", got, err, maxShown, "and 20 more")
	}
}

func TestHostileTops(t *testing.T) {
	dir, outside := tree(t)
	link := filepath.Join(filepath.Dir(dir), "other")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{link, outside, filepath.Join(dir, "none")} {
		if _, err := Plan(top, lentID, lentID); err == nil {
			t.Errorf("Plan(%q): got no error, want one", top)
		}
		if err := Lend(top, Lease{UID: lentID, GID: lentID}); err == nil {
			t.Errorf("Lend(%q): got no error, want one", top)
		}
	}
	if _, err := Return(link, Lease{}); err == nil {
		t.Error("Return of a link: got no error, want one")
	}
	if found, err := Return(filepath.Join(dir, "none"), Lease{}); err != nil || found != nil {
		t.Errorf("Return of a missing directory: got %v, %v, want no finding", found, err)
	}
}

// BenchmarkLendAgain lends a tree of 10,000 files that is already lent.
func BenchmarkLendAgain(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	lease, err := Plan(dir, os.Geteuid(), os.Getegid())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Lend(dir, lease); err != nil {
			b.Fatal(err)
		}
	}
}
