package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	for i, perm := range []os.FileMode{0o600, 0o644, 0o666} {
		want := fmt.Sprintf("content %d", i)
		if err := Write(path, []byte(want), perm); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		fi, statErr := os.Lstat(path)
		if err != nil || statErr != nil || string(got) != want || fi.Mode().Perm() != perm {
			t.Errorf("file: got %q, %v, %v, %v, want %q, %v", got, fi.Mode(), err, statErr, want, perm)
		}
	}
	if got := namesIn(t, dir); got != "state.json" {
		t.Errorf("files: got %s, want state.json", got)
	}
}

func TestWriteReplacesALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(target); string(got) != "old" {
		t.Errorf("target of the replaced link: got %q, want %q", got, "old")
	}
}

func TestWriteKeepsOldFileOnFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Error("Write to a directory: got no error, want one")
	}
	if got := namesIn(t, dir); got != "d" {
		t.Errorf("files: got %s, want d", got)
	}
	if err := Write(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Write in a missing directory: got %v, want %v", err, os.ErrNotExist)
	}
}

func TestWriteLongName(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), strings.Repeat("n", 255)), []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
}

// The test writes in a child process with a file size limit of 1000 bytes, which behaves like a
// full disk. The old file stays, and Append reports how much it wrote.
func TestFileSizeLimit(t *testing.T) {
	if dir := os.Getenv("ABL_TEST_LIMITED"); dir != "" {
		limited(dir)
		return
	}
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "state"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileSizeLimit$")
	cmd.Env = append(os.Environ(), "ABL_TEST_LIMITED="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"only 400 of 600 bytes were written: short write", "file too large"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output of the child: got %s, want %q in it", out, want)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "state")); string(got) != "old" {
		t.Errorf("state: got %.20q, want %q", got, "old")
	}
	if got := namesIn(t, dir); got != "log state" {
		t.Errorf("files: got %s, want log state", got)
	}
	cut, err := CutTornTail(filepath.Join(dir, "log"))
	if err != nil || len(cut) != 400 {
		t.Errorf("cut bytes: got %d, %v, want 400", len(cut), err)
	}
}

// limited runs in the child. The Go runtime ignores SIGXFSZ, so the writes fail.
func limited(dir string) {
	limit := &unix.Rlimit{Cur: 1000, Max: 1000}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, limit); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	row := append(bytes.Repeat([]byte("x"), 599), '\n')
	log := filepath.Join(dir, "log")
	fmt.Println("append:", Append(log, row, 0o600))
	fmt.Println("append:", Append(log, row, 0o600))
	fmt.Println("write:", Write(filepath.Join(dir, "state"), make([]byte, 2000), 0o600))
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	row := func(i int) []byte { return append(bytes.Repeat([]byte{'a' + byte(i)}, 99), '\n') }
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if err := Append(path, row(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if n := bytes.Count(got, row(i)); n != 20 {
			t.Errorf("whole rows of writer %d: got %d, want 20", i, n)
		}
	}
}

func TestAppendRefusesLinksAndFIFOs(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Symlink("target", filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "fifo"} {
		t.Run(name, func(t *testing.T) {
			if err := Append(filepath.Join(dir, name), []byte("x"), 0o600); err == nil {
				t.Errorf("Append to the %s: got no error, want one", name)
			}
			if _, err := CutTornTail(filepath.Join(dir, name)); err == nil {
				t.Errorf("CutTornTail of the %s: got no error, want one", name)
			}
		})
	}
	if got := namesIn(t, dir); got != "fifo link" {
		t.Errorf("files: got %s, want fifo link", got)
	}
}

func TestCutTornTail(t *testing.T) {
	long := strings.Repeat("x", 50000)
	tests := []struct{ in, keep, cut string }{
		{"", "", ""},
		{"a\n", "a\n", ""},
		{"a\nb", "a\n", "b"},
		{"torn", "", "torn"},
		{"a\n" + long, "a\n", long},
		{long + "\n" + long, long + "\n", long},
		{"\n\n", "\n\n", ""},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(tt.in), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{tt.cut, ""} { // a second time there is nothing left to cut
			cut, err := CutTornTail(path)
			if err != nil || string(cut) != want {
				t.Errorf("CutTornTail of %.20q: got %.20q, %v, want %.20q", tt.in, cut, err, want)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != tt.keep {
			t.Errorf("file after the cut of %.20q: got %.20q, want %.20q", tt.in, got, tt.keep)
		}
	}
	if cut, err := CutTornTail(filepath.Join(t.TempDir(), "none")); cut != nil || err != nil {
		t.Errorf("CutTornTail of a missing file: got %q, %v, want no cut", cut, err)
	}
}

func TestSweepTemps(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"state.json", ".hidden", "my.abl-tmp-1", ".d.abl-tmp-dir/"}
	for _, name := range append(keep, ".state.json.abl-tmp-123", ".x.abl-tmp-") {
		var err error
		if base, isDir := strings.CutSuffix(name, "/"); isDir {
			err = os.Mkdir(filepath.Join(dir, base), 0o755)
		} else {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := SweepTemps(dir); err != nil {
		t.Fatal(err)
	}
	if got, want := namesIn(t, dir), ".d.abl-tmp-dir .hidden my.abl-tmp-1 state.json"; got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
	if err := SweepTemps(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}

func TestSweepTempsBelow(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "calls/p1-build-1.1/app")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"finding.json", ".finding.json.abl-tmp-1"} {
		if err := os.WriteFile(filepath.Join(deep, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(SweepTempsBelow(dir), SweepTempsBelow(filepath.Join(dir, "none"))); err != nil {
		t.Fatal(err)
	}
	if got, want := namesIn(t, deep), "finding.json"; got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
}

func BenchmarkWrite(b *testing.B) {
	path, data := filepath.Join(b.TempDir(), "state.json"), make([]byte, 2048)
	for b.Loop() {
		if err := Write(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
