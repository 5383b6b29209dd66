package sanitize

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestString(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "héllo, 世界 ✔️\tx\ny", "héllo, 世界 ✔️\tx\ny"},
		{"title", "\x1b]0;t\a", `\x1b]0;t\x07`},
		{"clipboard", "\x1b]52;c;eA==\x1b\\", `\x1b]52;c;eA==\x1b\`},
		{"colour", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"overwrite", "FAIL\rPASS", `FAIL\x0dPASS`},
		{"crlf", "a\r\nb", "a\\x0d\nb"},
		{"backspace and DEL", "a\b\x7f", `a\x08\x7f`},
		{"NUL", "a\x00", `a\x00`},
		{"C1", "\u009b31m\u0085", `\x9b31m\x85`},
		{"C1 byte", "\x9b31m", `\x9b31m`},
		{"separators", "a\u2028b\u2029", `a\u{2028}b\u{2029}`},
		{"direction", "a\u202eb\u2066c", `a\u{202e}b\u{2066}c`},
		{"zero width", "a\u200bb\u200d\ufeff\u2060\u00ad", `a\u{200b}b\u{200d}\u{feff}\u{2060}\xad`},
		{"tags", "a\U000e0041\U000e007f", `a\u{e0041}\u{e007f}`},
		{"variation", "a\ufe00\U000e0100", `a\u{fe00}\u{e0100}`},
		{"blank letters", "\u3164\uffa0\u115f\u2800\u034f", `\u{3164}\u{ffa0}\u{115f}\u{2800}\u{34f}`},
		{"private", "\ue000\U0010ffff", `\u{e000}\u{10ffff}`},
		{"invalid", "a\xff\xc3(\xed\xa0\x80", `a\xff\xc3(\xed\xa0\x80`},
		{"cut character", "a\xe2\x82", `a\xe2\x82`},
		{"marks", "e" + strings.Repeat("\u0301", 10) + "e\u0301", "e" + strings.Repeat("\u0301", 8) + strings.Repeat(`\u{301}`, 2) + "e\u0301"},
		{"mark first", "\u0301a\n\u0301", "\\u{301}a\n\\u{301}"},
	}
	for _, tt := range tests {
		if got := String(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("a", 10000)
	got := String(long + "\nshort\n" + long)
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || len(lines[0]) != maxLine || !strings.HasSuffix(lines[0], "a"+cutMark) || lines[1] != "short" || lines[2] != lines[0] {
		t.Errorf("got %d lines, first of %d bytes", len(lines), len(lines[0]))
	}
	whole := long[:maxLine-len(cutMark)]
	if got := String(whole); got != whole {
		t.Error("a line that fits is cut")
	}
}

// TestCutLinesStayCut cuts a line in, before and after escapes and characters of
// every width; made safe again, it stays the same.
func TestCutLinesStayCut(t *testing.T) {
	for n := range 24 {
		for _, end := range []string{"\u202e", "\x01", "𝒳", "é", "a"} {
			once := String(strings.Repeat("a", maxLine-16+n) + strings.Repeat(end, 20))
			if twice := String(once); twice != once || len(once) != maxLine {
				t.Errorf("%d bytes, then %q: %d bytes, then %d", maxLine-16+n, end, len(once), len(twice))
			}
		}
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, "builder │ ")
	for _, chunk := range []string{"one", "\ntwo\n\nth\xe2", "\x82\xac", "\x1b", "[0m\xe2"} {
		if n, err := w.Write([]byte(chunk)); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := "builder │ one\nbuilder │ two\nbuilder │ \nbuilder │ th€\\x1b[0m\\xe2\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterTellsErrors(t *testing.T) {
	if _, err := NewWriter(full{}, "").Write([]byte("x")); err == nil {
		t.Error("an error was swallowed")
	}
}

// FuzzSanitize holds the laws: nothing but text survives, cleaning twice is
// cleaning once, and chunks make no difference.
func FuzzSanitize(f *testing.F) {
	for _, seed := range []string{"\x1b[31mred\x1b]0;t\a", "\u202eb\u009b\xff\r\n", "e\u0301\u0301", strings.Repeat("\x00\U0010ffff", 700), strings.Repeat("𝒳\x01", 900)} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		once := String(string(in))
		if !utf8.ValidString(once) {
			t.Fatalf("%q is not UTF-8", once)
		}
		for _, r := range once {
			if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || r == 0x7f) {
				t.Fatalf("%q holds %U", once, r)
			}
		}
		for line := range strings.SplitSeq(once, "\n") {
			if len(line) > maxLine {
				t.Fatalf("a line of %d bytes", len(line))
			}
		}
		if twice := String(once); twice != once {
			t.Fatalf("once  %q\ntwice %q", once, twice)
		}
		if got := chunked(t, in, step); got != once {
			t.Fatalf("whole   %q\nchunked %q", once, got)
		}
	})
}

// chunked passes in through a Writer, some bytes at a time.
func chunked(t *testing.T, in []byte, step int) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, "")
	step = 1 + (step&0x7fffffff)%7
	for rest := in; len(rest) > 0; {
		n := min(step, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if !bytes.HasSuffix(in, []byte("\n")) {
		got = strings.TrimSuffix(got, "\n")
	}
	return got
}

func BenchmarkWriter(b *testing.B) {
	line := []byte(strings.Repeat("some words of an agent, ünd mehr ", 30) + "\n")
	w := NewWriter(&bytes.Buffer{}, "builder │ ")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		w.to.(*bytes.Buffer).Reset()
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
