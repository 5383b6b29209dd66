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
		chown                    bool
	}{
		{1000, 1000, 1000, 1000, 1000, 1000, false},
		{1000, 1000, 0, 0, 1000, 1000, false},
		{1000, 0, 1000, 1000, 1000, 1000, false},
		{0, 0, 1000, 1001, 1000, 1001, false},
		{0, 0, 1000, 0, 1000, 1000, false},
		{0, 0, 0, 0, unusedID, unusedID, true},
		{0, 0, 0, 1000, unusedID, unusedID, true},
	}
	for _, tt := range tests {
		uid, gid, chown := roleID(tt.euid, tt.egid, tt.owner, tt.group)
		if uid != tt.uid || gid != tt.gid || chown != tt.chown || uid == 0 || gid == 0 {
			t.Errorf("roleID(%d, %d, %d, %d): got %d:%d, %v, want %d:%d, %v",
				tt.euid, tt.egid, tt.owner, tt.group, uid, gid, chown, tt.uid, tt.gid, tt.chown)
		}
	}
	if uid, gid, chown := RoleID(filepath.Join(t.TempDir(), "none"), 0); uid != unusedID || gid != unusedID || !chown {
		t.Errorf("RoleID without a project: got %d:%d, %v, want %d:%d, true", uid, gid, chown, unusedID, unusedID)
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

// ownersIn maps every path in and next to dir to its owner and mode.
func ownersIn(t *testing.T, dir string) map[string]string {
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

// chowned changes the owner of dir. Without root it checks that ChownToRole fails and returns false, so that the
// test ends.
func chowned(t *testing.T, dir string) (Ownership, bool) {
	t.Helper()
	owners, err := OwnershipOf(dir, unusedID, unusedID)
	if err != nil {
		t.Fatal(err)
	}
	err = ChownToRole(dir, owners)
	if os.Geteuid() != 0 {
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("ChownToRole by a user other than root: got %v, want %v", err, os.ErrPermission)
		}
		return owners, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return owners, true
}

func TestChownAndBack(t *testing.T) {
	dir, _ := tree(t)
	before := ownersIn(t, dir)
	owners, ok := chowned(t, dir)
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
		if diff := cmp.Diff(want, ownersIn(t, dir)); diff != "" {
			t.Errorf("owners of the files (-want +got):\n%s", diff)
		}
		if err := ChownToRole(dir, owners); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		found, err := ChownBack(dir, overDisk(t, owners))
		if err != nil || len(found) > 0 {
			t.Fatalf("ChownBack: got %v, %v, want no finding", found, err)
		}
		if diff := cmp.Diff(before, ownersIn(t, dir)); diff != "" {
			t.Errorf("owners of the returned files (-want +got):\n%s", diff)
		}
	}
}

// overDisk encodes and decodes the owners, as the state file does.
func overDisk(t *testing.T, l Ownership) Ownership {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back Ownership
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// A killed abl changed the owner of only a part of the workspace.
func TestChownBackAfterAKill(t *testing.T) {
	dir, _ := tree(t)
	before := ownersIn(t, dir)
	owners, err := OwnershipOf(dir, unusedID, unusedID)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return // a part fails too; TestChownAndBack has seen the refusal
	}
	if err := os.Lchown(filepath.Join(dir, "a/b/deep"), unusedID, unusedID); err != nil {
		t.Fatal(err)
	}
	if _, err := ChownBack(dir, owners); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, ownersIn(t, dir)); diff != "" {
		t.Errorf("owners of the returned files (-want +got):\n%s", diff)
	}
}

func TestReturnDisarmsAndReports(t *testing.T) {
	dir, _ := tree(t)
	owners, ok := chowned(t, dir)
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
		if err := os.Lchown(at(name), unusedID, unusedID); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Chmod(at("sh"), 0o6755), unix.Chmod(at("sg"), 0o2755), unix.Chmod(at("a/\x1bx"), 0o2600)); err != nil {
		t.Fatal(err)
	}
	found, err := ChownBack(dir, owners)
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
	after := ownersIn(t, dir)
	for name, want := range map[string]string{"sh": "0:0 755", "sg": "0:0 755", "a/\x1bx": "0:0 600", "a/fifo": "0:0 644", "null": "0:0 644"} {
		if after[name] != want {
			t.Errorf("owner and mode of %q: got %s, want %s", name, after[name], want)
		}
	}
}

func TestReturnLimitsFindings(t *testing.T) {
	dir := t.TempDir()
	me := Ownership{UID: os.Geteuid(), GID: os.Getegid(), OwnerUID: os.Geteuid(), OwnerGID: os.Getegid(), Mode: 0o755}
	for i := range 70 {
		if err := unix.Mkfifo(filepath.Join(dir, fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ChownBack(dir, me); err != nil || len(got) != maxShown+1 || got[maxShown] != "and 20 more" {
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
		if _, err := OwnershipOf(top, unusedID, unusedID); err == nil {
			t.Errorf("OwnershipOf(%q): got no error, want one", top)
		}
		if err := ChownToRole(top, Ownership{UID: unusedID, GID: unusedID}); err == nil {
			t.Errorf("ChownToRole(%q): got no error, want one", top)
		}
	}
	if _, err := ChownBack(link, Ownership{}); err == nil {
		t.Error("ChownBack of a link: got no error, want one")
	}
	if found, err := ChownBack(filepath.Join(dir, "none"), Ownership{}); err != nil || found != nil {
		t.Errorf("ChownBack of a missing directory: got %v, %v, want no finding", found, err)
	}
}

// BenchmarkChownAgain changes the owner of 10,000 files that it owns already.
func BenchmarkChownAgain(b *testing.B) {
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
	owners, err := OwnershipOf(dir, os.Geteuid(), os.Getegid())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := ChownToRole(dir, owners); err != nil {
			b.Fatal(err)
		}
	}
}
