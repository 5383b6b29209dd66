package git

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/state"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// swept takes a snapshot and returns its findings.
func swept(t *testing.T, r *Repo, call string) (f state.Found) {
	t.Helper()
	m := message("s", call)
	calls := 0
	m.Keep = func(found state.Found) error { f = found; calls++; return nil }
	s, err := r.Snapshot(t.Context(), m)
	must(t, err)
	if calls != 1 || s.Existing {
		t.Fatalf("calls of Keep and an existing commit: got %d and %t, want 1 and false", calls, s.Existing)
	}
	return f
}

func things(list []state.Thing) string {
	var all []string
	for _, l := range list {
		all = append(all, l.Path+": "+l.What)
	}
	return strings.Join(all, "\n")
}

// The tree has one of each type that no role needs, at each kind of place.
func TestSweepClears(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{".gitignore": "/ignored/\n*.log\n", "tracked": "0"})
	snapshot(t, r, "s", "0")
	places := []string{"", "sub/", "ignored/", "ignored/deep/", "nested/.git/", ".GIT/", "a\\.git/"}
	var want []string
	for _, at := range places {
		path := func(name string) string { return filepath.Join(dir, at+name) }
		write(t, dir, map[string]string{at + "program": "x", at + "group": "x", at + "plain": "x", at + "x.log": "x"})
		must(t, os.Chmod(path("program"), 0o755|os.ModeSetuid))
		must(t, os.Chmod(path("group"), 0o755|os.ModeSetgid|os.ModeSetuid))
		must(t, syscall.Mkfifo(path("fifo"), 0o644))
		must(t, syscall.Mkfifo(path("f.log"), 0o644))
		socket(t, path("sock"))
		want = append(want, at+"f.log: a FIFO, removed", at+"fifo: a FIFO, removed", at+"group: a setuid or setgid bit, cleared",
			at+"program: a setuid or setgid bit, cleared", at+"sock: a socket, removed")
		if os.Geteuid() == 0 {
			must(t, unix.Mknod(path("dev"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
			must(t, unix.Mknod(path("disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 250))))
			want = append(want, at+"dev: a device, removed", at+"disk: a device, removed")
		}
	}
	must(t, os.Symlink(filepath.Join(dir, "program"), filepath.Join(dir, "link")))
	f := swept(t, r, "1")
	got := strings.Split(things(f.Cleared), "\n")
	for _, line := range want {
		if n := strings.Count("\n"+strings.Join(got, "\n")+"\n", "\n"+line+"\n"); n != 1 {
			t.Errorf("findings %q: got %d, want 1", line, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("cleared paths: got %d, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	nothingSpecial(t, dir)
	if f := swept(t, r, "2"); len(f.Cleared) > 0 {
		t.Errorf("paths cleared the second time: got\n%s\nwant none", things(f.Cleared))
	}
	sound(t, dir)
}

func socket(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	// A socket's path is short, so it is bound by a link and moved.
	short := filepath.Join(os.TempDir(), fmt.Sprintf("s%d", time.Now().UnixNano()))
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: short}))
	must(t, os.Rename(short, path))
}

// nothingSpecial fails for files that no role needs.
func nothingSpecial(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice|os.ModeNamedPipe|os.ModeSocket) != 0 {
			t.Errorf("mode of %s: got %v, want no special bit and no special type", path, info.Mode())
		}
		return nil
	}))
}

// The sweep also clears deep directories, ignored or not.
func TestSweepClearsDeepDown(t *testing.T) {
	for _, at := range []string{"seen", "ignored"} {
		dir := t.TempDir()
		r := open(t, dir)
		write(t, dir, map[string]string{".gitignore": "ignored/\n", at + "/ok": "1"})
		bottom := filepath.Join(dir, at, strings.Repeat("d/", 300))
		write(t, dir, map[string]string{at + "/" + strings.Repeat("d/", 300) + "program": "x"})
		must(t, os.Chmod(filepath.Join(bottom, "program"), 0o755|os.ModeSetuid))
		must(t, syscall.Mkfifo(filepath.Join(bottom, "fifo"), 0o644))
		m := message("s", "1")
		m.Keep = func(f state.Found) error {
			if len(f.Cleared) < 2 || f.Ignored.Files > 1 {
				t.Errorf("findings in %q: got %+v, want at least two cleared paths and at most one ignored file", at, f)
			}
			return nil
		}
		s, err := r.Snapshot(t.Context(), m)
		must(t, err)
		if len(s.Skipped) != 1 || !strings.Contains(s.Skipped[0].Why, "deeper than 256 directories") {
			t.Errorf("skipped paths in %q: got %v, want one that is too deep", at, s.Skipped)
		}
		nothingSpecial(t, dir)
	}
}

// A setgid directory only sets the group of new files.
func TestSweepLeavesSharedFolders(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"shared/a": "1"})
	must(t, os.Chmod(filepath.Join(dir, "shared"), 0o2775|os.ModeSetgid))
	if f := swept(t, r, "1"); len(f.Cleared) > 0 {
		t.Errorf("cleared paths: got\n%s\nwant none", things(f.Cleared))
	}
	if info, err := os.Stat(filepath.Join(dir, "shared")); err != nil || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("mode of the shared directory: got %v, %v, want a setgid bit", info.Mode(), err)
	}
}

// Without the Keep of a snapshot nothing is removed.
func TestLooksClearNothing(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"program": "x"})
	must(t, os.Chmod(filepath.Join(dir, "program"), 0o755|os.ModeSetuid))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	_, err := r.Differs(t.Context(), "")
	must(t, err)
	_, err = r.Files(t.Context(), 10)
	must(t, err)
	for name, bit := range map[string]os.FileMode{"program": os.ModeSetuid, "fifo": os.ModeNamedPipe} {
		t.Run(name, func(t *testing.T) {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&bit == 0 {
				t.Errorf("%s before the sweep: got %v, %v, want the mode bit %v", name, info, err, bit)
			}
		})
	}
	must(t, r.Sweep(t.Context(), func(f state.Found) error {
		if len(f.Cleared) != 2 {
			t.Errorf("paths cleared by Sweep: got\n%s\nwant two", things(f.Cleared))
		}
		return nil
	}))
	nothingSpecial(t, dir)
	if _, ok, err := r.Head(); ok || err != nil {
		t.Errorf("commit of Sweep: got %t, %v, want none", ok, err)
	}
}

// If the findings cannot be saved, nothing is committed.
func TestKeepFails(t *testing.T) {
	r := open(t, t.TempDir())
	m, full := message("s", "1"), errors.New("disk full")
	m.Keep = func(state.Found) error { return full }
	if _, err := r.Snapshot(t.Context(), m); !errors.Is(err, full) {
		t.Errorf("Snapshot: got %v, want %v", err, full)
	}
	if _, ok, err := r.Head(); ok || err != nil {
		t.Errorf("commit after a failed Keep: got %t, %v, want none", ok, err)
	}
}

// Ignored files are listed, or counted by top directory.
func TestIgnored(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{
		".gitignore": "*.log\n/out/\n", "a": "1", "x.log": "one", "sub/y.log": "two", "out/z": "three", "out/deep/w": "four", "out/l": "->../../secret",
		"nested/.git/config": "[core]\n", "nested/kept": "5", "forced.log": "6", "out/huge": "",
	})
	must(t, os.Truncate(filepath.Join(dir, "out/huge"), 10<<40)) // which nobody reads
	git(t, dir, "add", "-f", "forced.log")
	want := state.Ignored{Files: 7, Bytes: 10<<40 + 34, Listed: []string{
		"nested/.git/config", "out/deep/w", "out/huge", "out/l", "out/z", "sub/y.log", "x.log",
	}}
	if diff := cmp.Diff(want, swept(t, r, "1").Ignored); diff != "" {
		t.Errorf("few (-want +got):\n%s", diff)
	}
	for i := range state.MaxListed {
		write(t, dir, map[string]string{fmt.Sprintf("out/p%d/f%d.js", i%40, i): ""})
	}
	want = state.Ignored{Files: 1007, Bytes: 10<<40 + 34, Folders: map[string]int64{".": 1, "nested": 1, "out": 1004, "sub": 1}}
	if diff := cmp.Diff(want, swept(t, r, "2").Ignored); diff != "" {
		t.Errorf("many (-want +got):\n%s", diff)
	}
}

// New and changed files that steer a tool of the user are reported once.
func TestControlFiles(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "config", "core.hooksPath", "hooks.d")
	r, err := Open(dir, Options{Cache: cache})
	must(t, err)
	write(t, dir, map[string]string{"CLAUDE.md": "a person's", "src.go": "1", ".gitignore": "node_modules/\n.codex/\n.envrc\n"})
	swept(t, r, "0")
	write(t, dir, map[string]string{
		".gemini/settings.json": "{}", "sub/GEMINI.md": "x", ".claude/settings.json": "{}", ".mcp.json": "{}", "Agents.MD": "x", ".codex/config.toml": "x",
		".cursor/rules/a.mdc": "x", ".vscode/tasks.json": "{}", ".envrc": "x", ".github/workflows/ci.yml": "x", "deep/er/.husky/pre-commit": "x",
		".gitattributes": "", ".gitmodules": "", "x.code-workspace": "{}", "hooks.d/pre-commit": "#!/bin/sh", "node_modules/p/.vscode/settings.json": "{}",
		"nested/.git/config": "[core]\n\tfsmonitor = touch x\n", "nested/.git/HEAD": "x", "bare/HEAD": "ref: x", "bare/objects/": "", "bare/objects/x": "", "bare/refs/": "",
		"bare/refs/y": "", "plain.md": "x", "gemini/settings.json": "{}", "vscode": "x",
	})
	f := swept(t, r, "1")
	want := strings.Join([]string{
		".envrc: steers a shell or a package manager", ".gitattributes: steers git", ".gitmodules: steers git", "bare/: a bare repository", "deep/er/.husky/pre-commit: steers git",
		"hooks.d/pre-commit: is a git hook", "nested/.git: a nested repository",
		".claude/settings.json: steers an agent's CLI", ".codex/config.toml: steers an agent's CLI", ".cursor/rules/a.mdc: steers an agent's CLI",
		".gemini/settings.json: steers an agent's CLI", ".github/workflows/ci.yml: steers CI",
		".mcp.json: steers an agent's CLI", ".vscode/tasks.json: steers an editor", "Agents.MD: steers an agent's CLI",
		"node_modules/p/.vscode/settings.json: steers an editor", "sub/GEMINI.md: steers an agent's CLI", "x.code-workspace: steers an editor",
	}, "\n")
	if got := things(f.Control); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if f := swept(t, r, "2"); len(f.Control) > 0 {
		t.Errorf("control files found the second time: got\n%s\nwant none", things(f.Control))
	}
	write(t, dir, map[string]string{".codex/config.toml": "y", "CLAUDE.md": "an agent's", "nested/.git/config": "other"})
	must(t, os.RemoveAll(filepath.Join(dir, ".mcp.json")))
	if got, want := things(swept(t, r, "3").Control), "nested/.git: a nested repository\n.codex/config.toml: steers an agent's CLI\nCLAUDE.md: steers an agent's CLI"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	crowd := map[string]string{"node_modules/zz/.git/HEAD": "x", "zz/.envrc": "x"}
	for i := range state.MaxThings + 10 {
		crowd[fmt.Sprintf("node_modules/%04d/CLAUDE.md", i)] = "x"
	}
	write(t, dir, crowd)
	all := swept(t, r, "4").Control
	if got, want := things(all[:2]), "node_modules/zz/.git: a nested repository\nzz/.envrc: steers a shell or a package manager"; got != want {
		t.Errorf("first findings among many: got\n%s\nwant\n%s", got, want)
	}
	if got := all[len(all)-1]; len(all) != state.MaxThings+1 || got.Path != "…" || got.Runs {
		t.Errorf("findings: got %d, the last %v, want %d, the last with the path …", len(all), got, state.MaxThings+1)
	}
}

// A server that listens on a socket does not block the sweep.
func TestSweepOfALiveSocket(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	defer l.Close()
	if got := things(swept(t, r, "1").Cleared); got != "s: a socket, removed" {
		t.Errorf("cleared paths: got\n%s\nwant only the socket s", got)
	}
}

// acl is an access control list with all permissions for uid 65534, as the kernel stores it.
func acl() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2) // linux/posix_acl_xattr.h
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 6, ^uint32(0)}, {0x02, 7, 65534}, {0x04, 4, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

// After a sweep, neither the mode nor an access control list of a file lets other users write.
func TestSweepShuts(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{".gitignore": "/out/\n", "plain": "1", "open": "1", "listed": "1", "sub/in": "1", "out/x": "1", "late/x": "1"})
	snapshot(t, r, "s", "0")
	path := func(name string) string { return filepath.Join(dir, name) }
	const access, inherited = "system.posix_acl_access", "system.posix_acl_default"
	for name, attr := range map[string]string{"listed": access, "out/x": access, "sub": inherited, ".": inherited} {
		err := unix.Lsetxattr(path(name), attr, acl(), 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("no access control lists on this file system")
		}
		must(t, err)
	}
	for _, name := range []string{"open", "out", "late"} {
		must(t, os.Chmod(path(name), 0o777))
	}
	want := ".: an access control list, removed\nlate: write permission for others, cleared\nlisted: an access control list, removed\n" +
		"listed: write permission for others, cleared\nopen: write permission for others, cleared\nout: write permission for others, cleared\n" +
		"out/x: an access control list, removed\nout/x: write permission for others, cleared\nsub: an access control list, removed"
	if got := things(swept(t, r, "1").Cleared); got != want {
		t.Errorf("cleared paths: got\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{".", "open", "listed", "sub", "out", "out/x", "late"} {
		t.Run(name, func(t *testing.T) {
			info, err := os.Lstat(path(name))
			must(t, err)
			var names [256]byte
			n, err := unix.Llistxattr(path(name), names[:])
			if attrs := string(names[:max(n, 0)]); err != nil || info.Mode().Perm()&0o002 != 0 || strings.Contains(attrs, "acl") {
				t.Errorf("%s: got mode %v and attributes %q, %v, want no write access for others and no ACL",
					name, info.Mode(), attrs, err)
			}
		})
	}
	if got := things(swept(t, r, "2").Cleared); got != "" {
		t.Errorf("paths cleared the second time: got\n%s\nwant none", got)
	}
}

// PutBack reverts changed and new files, committed or not.
func TestPutBack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".gitignore": "out/\n", "kept": "1", "changed": "1", "gone/deep": "1", "run.sh": "1", "replaced/x": "1", "deleted": "1", "file": "1", "shut/in": "1"})
	r := open(t, dir)
	snapshot(t, r, "one", "1")
	write(t, dir, map[string]string{"draft": "mine", "kept": "mine"})
	must(t, os.Remove(filepath.Join(dir, "deleted")))
	was, err := r.Tree(t.Context())
	must(t, err)
	write(t, dir, map[string]string{"changed": "2", "draft": "other", "new/deep/er": "x", "out/lib": "x", "deleted": "again"})
	must(t, os.RemoveAll(filepath.Join(dir, "gone")))
	must(t, os.RemoveAll(filepath.Join(dir, "replaced")))
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "replaced")))
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(dir, "out/fifo"), 0o644))
	must(t, os.Remove(filepath.Join(dir, "file")))
	write(t, dir, map[string]string{"file/.gitignore": "*\n", "file/x": "x", "shut/in": "2"})
	must(t, errors.Join(os.Chmod(filepath.Join(dir, "shut"), 0o500), os.Chmod(dir, 0o500)))
	differed, cleared, err := r.PutBack(t.Context(), was, os.Getuid(), os.Getgid())
	must(t, err)
	if got := strings.Join(differed, " "); got != "changed deleted draft file gone/deep new/deep/er replaced replaced/x run.sh shut/in" {
		t.Errorf("paths that differed: got %s, want the ten that were changed", got)
	}
	if got := things(cleared); !strings.Contains(got, "out/fifo") || len(cleared) != 1 {
		t.Errorf("cleared paths: got %s, want only out/fifo", got)
	}
	for _, folder := range []string{".", "shut"} {
		if info, err := os.Stat(filepath.Join(dir, folder)); err != nil || info.Mode().Perm()&0o700 != 0o700 {
			t.Errorf("mode of %s: got %v, %v, want all permissions for its owner", folder, info.Mode(), err)
		}
	}
	is, err := r.Tree(t.Context())
	must(t, err)
	was["out/"] = ""
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"draft": "mine", "kept": "mine", "out/lib": "x", "gone/deep": "1", "file": "1", "shut/in": "1"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: got %q, %v, want %q", name, data, err, want)
		}
	}
}
