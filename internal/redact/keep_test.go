package redact

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNULRuns(t *testing.T) {
	nul := func(n int) string { return strings.Repeat("\x00", n) }
	const cut = "\n[abl: more NUL bytes were left out]\n"
	for in, want := range map[string]string{
		"":                             "",
		"text":                         "text",
		"a" + nul(3) + "b":             "a" + nul(3) + "b",
		nul(64):                        nul(64),
		nul(65):                        nul(64) + cut,
		"a" + nul(100) + "b" + nul(70): "a" + nul(64) + cut + "b" + nul(64) + cut,
	} {
		for _, size := range []int{1, 7, 1000} {
			var out bytes.Buffer
			h := &nulRuns{to: &out}
			for rest := []byte(in); len(rest) > 0; {
				n := min(size, len(rest))
				if k, err := h.Write(rest[:n]); k != n || err != nil {
					t.Fatal(k, err)
				}
				rest = rest[n:]
			}
			if out.String() != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", in, size, out.String(), want)
			}
		}
	}
}

func TestBounded(t *testing.T) {
	var out bytes.Buffer
	b := &bounded{to: &out, left: 5}
	if n, err := b.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for _, p := range []string{"defg", "more"} {
		if _, err := b.Write([]byte(p)); err != errFull {
			t.Errorf("Write(%q): got error %v, want %v", p, err, errFull)
		}
	}
	if got := out.String(); got != "abcde\n[abl: the rest was left out]\n" {
		t.Errorf("got %q, want abcde and the note", got)
	}
}

// A sparse file costs no more than its allocated size.
func TestKeepAHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout")
	if err := os.WriteFile(path, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<26); err != nil {
		t.Fatal(err)
	}
	if err := sanitize(new(Sanitizer), path); err != nil {
		t.Fatal(err)
	}
	want := "before\n" + strings.Repeat(`\u0000`, longRun) + "\n[abl: more NUL bytes were left out]\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("file: got %q, error %v, want %.200q", got[:min(len(got), 200)], err, want)
	}
}
