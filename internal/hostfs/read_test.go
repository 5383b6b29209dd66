package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// hostile creates a directory with one entry of every type that an agent can create.
func hostile(t *testing.T) string {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "tests")
	at := func(name string) string { return filepath.Join(dir, name) }
	steps := []error{
		os.MkdirAll(at("sub/deep"), 0o755),
		os.WriteFile(filepath.Join(outer, ".env"), []byte("KEY=secret"), 0o600),
		os.WriteFile(at("good.md"), []byte("hello"), 0o644),
		os.WriteFile(at("empty.md"), nil, 0o644),
		os.WriteFile(at("sub/deep/r.md"), []byte("deep"), 0o644),
		os.Symlink("../.env", at("link.md")),
		os.Symlink("good.md", at("inlink.md")),
		os.Symlink("nowhere", at("dangling.md")),
		os.Symlink(outer, at("linkdir")),
		os.Symlink("sub", at("indir")),
		unix.Mkfifo(at("fifo.md"), 0o644),
		unix.Mkfifo(at("fifodir"), 0o644),
		os.Truncate(at("good.md"), 5),
		os.WriteFile(at("sparse.md"), nil, 0o644),
		os.Truncate(at("sparse.md"), 10<<30),
		os.WriteFile(at("five.md"), []byte("12345"), 0o644),
		os.WriteFile(at("six.md"), []byte("123456"), 0o644),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: at("socket.md")}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRead(t *testing.T) {
	dir := hostile(t)
	tests := []struct {
		name, want string
		kind       error
		says       string
	}{
		{name: "good.md", want: "hello"},
		{name: "empty.md", want: ""},
		{name: "sub/deep/r.md", want: "deep"},
		{name: "five.md", want: "12345"},
		{name: "six.md", kind: ErrTooLarge, says: `cannot read "six.md": is too large (more than 5 bytes)`},
		{name: "sparse.md", kind: ErrTooLarge},
		{name: "none.md", kind: ErrAbsent, says: `cannot read "none.md": does not exist`},
		{name: "none/none.md", kind: ErrAbsent},
		{name: "link.md", kind: ErrNotRegular, says: "a link"},
		{name: "inlink.md", kind: ErrNotRegular, says: "a link"},
		{name: "dangling.md", kind: ErrNotRegular, says: "a link"},
		{name: "sub", kind: ErrNotRegular, says: "a directory"},
		{name: "fifo.md", kind: ErrNotRegular, says: "a FIFO"},
		{name: "socket.md", kind: ErrNotRegular, says: "a socket"},
		{name: "linkdir/.env", kind: ErrNotRegular, says: `"linkdir" is a link instead of a directory`},
		{name: "indir/deep/r.md", kind: ErrNotRegular, says: "is a link"},
		{name: "fifodir/x", kind: ErrNotRegular, says: "is a FIFO"},
		{name: "good.md/x", kind: ErrNotRegular, says: "is a file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(dir, tt.name, 5)
			if !errors.Is(err, tt.kind) || (tt.kind == nil) != (err == nil) || string(got) != tt.want {
				t.Fatalf("Read: got %q, %v, want %q, %v", got, err, tt.want, tt.kind)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error of Read: got %v, want one with %q", err, tt.says)
			}
		})
	}
}

func TestReadRejectsLinkedDirectory(t *testing.T) {
	dir := hostile(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link, "good.md", 5); !errors.Is(err, ErrNotRegular) {
		t.Errorf("Read in a linked directory: got %v, want ErrNotRegular", err)
	}
}

func TestReadDevice(t *testing.T) {
	if _, err := Read("/dev", "zero", 5); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "a device") {
		t.Errorf("Read of a device: got %v, want ErrNotRegular that names the type", err)
	}
}

func TestReadRejectsPathsOutside(t *testing.T) {
	dir := hostile(t)
	for _, name := range []string{"../.env", "", "/etc/passwd", "sub/../../.env", "./good.md", "sub//deep/r.md", ".."} {
		if data, err := Read(dir, name, 100); err == nil || !strings.Contains(err.Error(), "internal error") {
			t.Errorf("Read(%q): got %q, %v, want an internal error", name, data, err)
		}
	}
}

func TestReadWithoutPermissionIsNotAbsent(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root reads everything
	}
	dir := hostile(t)
	if err := os.Chmod(filepath.Join(dir, "good.md"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, "good.md", 5); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("Read without permission: got %v, want an error other than ErrAbsent", err)
	}
}

func TestUnchanged(t *testing.T) {
	change := map[string]func(name string) error{
		"grown":    func(name string) error { return os.WriteFile(name, []byte("longer than before"), 0o644) },
		"mode":     func(name string) error { return os.Chmod(name, 0o600) },
		"replaced": func(name string) error { return os.Rename(filepath.Join(filepath.Dir(name), "other"), name) },
	}
	for what, do := range change {
		t.Run(what, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "f")
			other := filepath.Join(filepath.Dir(name), "other")
			if err := errors.Join(os.WriteFile(name, []byte("before"), 0o644), os.WriteFile(other, []byte("before"), 0o644)); err != nil {
				t.Fatal(err)
			}
			when := time.Now()
			if err := errors.Join(os.Chtimes(name, when, when), os.Chtimes(other, when, when)); err != nil {
				t.Fatal(err)
			}
			var was unix.Stat_t
			if err := unix.Lstat(name, &was); err != nil {
				t.Fatal(err)
			}
			if err := do(name); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unchanged(f, was); !errors.Is(err, ErrChanged) {
				t.Errorf("unchanged: got %v, want ErrChanged", err)
			}
		})
	}
}

func TestList(t *testing.T) {
	dir := hostile(t)
	got, err := List(dir, ".", 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range got {
		names = append(names, e.Name)
	}
	want := "empty.md five.md good.md six.md sparse.md"
	if strings.Join(names, " ") != want {
		t.Errorf("got %v, want %s", names, want)
	}
	if got[1].Size != 5 || got[1].Mod.IsZero() {
		t.Errorf("second file: got %+v, want 5 bytes and a modification time", got[1])
	}
}

func TestListErrors(t *testing.T) {
	dir := hostile(t)
	tests := []struct {
		name string
		max  int
		kind error
	}{
		{".", 3, ErrTooLarge},
		{"none", 3, ErrAbsent},
		{"linkdir", 30, ErrNotRegular},
		{"indir", 30, ErrNotRegular},
		{"indir/deep", 30, ErrNotRegular},
		{"good.md", 30, ErrNotRegular},
		{"fifodir", 30, ErrNotRegular},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := List(dir, tt.name, tt.max); !errors.Is(err, tt.kind) {
				t.Errorf("List(%q): got %v, %v, want %v", tt.name, got, err, tt.kind)
			}
		})
	}
	if got, err := List(dir, "sub/deep", 1); err != nil || len(got) != 1 {
		t.Errorf("List(sub/deep): got %v, %v, want one file", got, err)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "a\x00b", "\xff\xfe\x00x", "é"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Text(data)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || Text([]byte(got)) != got {
			t.Fatalf("Text(%q): got %q, want UTF-8 without NUL that Text does not change", data, got)
		}
	})
}

func TestPlain(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(at("good/deep"), 0o755), os.WriteFile(at("good/deep/file"), nil, 0o600), os.Symlink("deep", at("good/known")),
		os.MkdirAll(at("below/deep"), 0o755), os.Symlink("/etc", at("below/deep/link")),
		os.Symlink("good", at("link")), unix.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"missing": "<nil>", "good": "<nil>", "good/deep/file": "<nil>", "link": `"link" is a link`,
		"fifo": `"fifo" is a FIFO`, "below": `"below/deep/link" is a link`,
	} {
		err := Plain(dir, name, func(name string) bool { return name == "known" })
		if got := fmt.Sprint(err); got != want {
			t.Errorf("Plain(%q): got %s, want %s", name, got, want)
		}
	}
}

func TestMkdirAllFollowsNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link", "link/sub"} {
		if err := MkdirAll(dir, path); err == nil || !strings.Contains(err.Error(), `cannot create directory "link"`) {
			t.Errorf("MkdirAll(%q): got %v, want an error that names the link", path, err)
		}
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("files behind the link: got %v, %v, want none", names, err)
	}
}
