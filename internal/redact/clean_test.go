package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCleanString(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "héllo, 世界 ✔️\tx\ny", "héllo, 世界 ✔️\tx\ny"},
		{"title", "\x1b]0;t\a", `\x1b]0;t\x07`},
		{"clipboard", "\x1b]52;c;eA==\x1b\\", `\x1b]52;c;eA==\x1b\`},
		{"colour", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"overwrite", "FAIL\rPASS", `FAIL\x0dPASS`},
		{"crlf", "a\r\nb\r\r\n\r", "a\nb\\x0d\n\\x0d"},
		{"backspace-and-DEL", "a\b\x7f", `a\x08\x7f`},
		{"NUL", "a\x00", `a\x00`},
		{"C1", "\u009b31m\u0085", `\x9b31m\x85`},
		{"C1-byte", "\x9b31m", `\x9b31m`},
		{"separators", "a\u2028b\u2029", `a\u{2028}b\u{2029}`},
		{"direction", "a\u202eb\u2066c", `a\u{202e}b\u{2066}c`},
		{"zero-width", "a\u200bb\u200d\ufeff\u2060\u00ad", `a\u{200b}b\u{200d}\u{feff}\u{2060}\xad`},
		{"tags", "a\U000e0041\U000e007f", `a\u{e0041}\u{e007f}`},
		{"variation", "a\ufe00\U000e0100", `a\u{fe00}\u{e0100}`},
		{"blank-letters", "\u3164\uffa0\u115f\u2800\u034f", `\u{3164}\u{ffa0}\u{115f}\u{2800}\u{34f}`},
		{"private", "\ue000\U0010ffff", `\u{e000}\u{10ffff}`},
		{"invalid", "a\xff\xc3(\xed\xa0\x80", `a\xff\xc3(\xed\xa0\x80`},
		{"cut-character", "a\xe2\x82", `a\xe2\x82`},
		{"marks", "e" + strings.Repeat("\u0301", 10) + "e\u0301", "e" + strings.Repeat("\u0301", 8) + strings.Repeat(`\u{301}`, 2) + "e\u0301"},
		{"mark-first", "\u0301a\n\u0301", "\\u{301}a\n\\u{301}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := String(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("a", 10000)
	got := String(long + "\nshort\n" + long)
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || len(lines[0]) != maxLine || !strings.HasSuffix(lines[0], "a"+cutMark) || lines[1] != "short" || lines[2] != lines[0] {
		t.Errorf("lines: got %d, first of %d bytes, want 3, first of %d bytes", len(lines), len(lines[0]), maxLine)
	}
	whole := long[:maxLine-len(cutMark)]
	if got := String(whole); got != whole {
		t.Errorf("line that fits: got %d bytes, want its %d unchanged", len(got), len(whole))
	}
}

// The test cuts a line in, before and after escapes and characters of every width. Cleaning the
// result again does not change it.
func TestCutLinesStayCut(t *testing.T) {
	for n := range 24 {
		for _, end := range []string{"\u202e", "\x01", "𝒳", "é", "a"} {
			once := String(strings.Repeat("a", maxLine-16+n) + strings.Repeat(end, 20))
			if twice := String(once); twice != once || len(once) != maxLine {
				t.Errorf("line of %d bytes and 20 times %q: got %d bytes, then %d, want %d and the same again",
					maxLine-16+n, end, len(once), len(twice), maxLine)
			}
		}
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := &cleaner{to: &out, prefix: "builder │ "}
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
		t.Errorf("output: got %q, want %q", out.String(), want)
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\nabl: phase 1 passed": "a abl: phase 1 passed", " a\r\n\tb\u2028c\u0085d\u00a0e ": "a b c d e", "\x1b[2J": `\x1b[2J`, "": "",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLog(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain\n": "plain\n", "no end": "no end", "a\x1b[2J\u009b\u202e\U000e0041\xff\r\nb": `a\u001b[2J\u009b\u202e\udb40\udc41\ufffd` + "\nb",
		strings.Repeat("a", 3*maxLine): strings.Repeat("a", 3*maxLine), "a\xe2\x82": `a\ufffd\ufffd`,
	} {
		if got := through(t, aLog, []byte(in), 3); got != want {
			t.Errorf("%.40q: got %q, want %q", in, got, want)
		}
	}
}

// Every row of a long line begins with abl's prefix.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string
	}{
		{"abcdef\ngh", "p │ abcd\np │ ef\np │ gh\n"}, {"漢字漢\n", "p │ 漢字\np │ 漢\n"}, {"\t\ta", "p │ \t\np │ \t\np │ a\n"}, {"abcd\n\n", "p │ abcd\np │ \n"},
	} {
		var out bytes.Buffer
		w := &cleaner{to: &out, prefix: "p │ ", columns: 4}
		for _, b := range []byte(c.in) {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || out.String() != c.want {
			t.Errorf("%q: got %q, want %q, %v", c.in, out.String(), c.want, err)
		}
	}
	for in, want := range map[string]string{"abcdefghij": "abcd\n  efgh\n  ij", "": "", "abcd": "abcd", "a漢漢漢": "a漢\n  漢漢", "ab cd e": "ab\n  cd e", "a bcdefg h": "a\n  bcde\n  fg h", "a  b": "a  b"} {
		if got := Fold(in, 4, "  "); got != want {
			t.Errorf("Fold(%q): got %q, want %q", in, got, want)
		}
	}
	if got := Fold("漢字", 0, "> "); got != "漢\n> 字" {
		t.Errorf("Fold without room: got %q, want %q", got, "漢\n> 字")
	}
}

type aFull struct{}

func (aFull) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestCleanWriterReturnsErrors(t *testing.T) {
	if _, err := (&cleaner{to: aFull{}}).Write([]byte("x")); err == nil {
		t.Error("Write to a full writer: got no error, want one")
	}
}

// The output contains only visible text, cleaning is idempotent, and the chunks make no difference.
func FuzzSanitize(f *testing.F) {
	for _, seed := range []string{
		"\x1b[31mred\x1b]0;t\a", "\u202eb\u009b\xff\r\n", "e\u0301\u0301", strings.Repeat("\x00\U0010ffff", 700), strings.Repeat("𝒳\x01", 900),
		strings.Repeat("a", maxLine-len(cutMark)) + "b\nabl: passed",
	} {
		f.Add([]byte(seed), 3)
	}
	plain := func(w io.Writer) *cleaner { return &cleaner{to: w} }
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		once := String(string(in))
		onlyText(t, once)
		for line := range strings.SplitSeq(once, "\n") {
			if len(line) > maxLine {
				t.Fatalf("line: got %d bytes, want at most %d", len(line), maxLine)
			}
		}
		if twice := String(once); twice != once {
			t.Fatalf("cleaned again: got %q, want %q", twice, once)
		}
		if got := through(t, plain, in, step); got != once {
			t.Fatalf("output in chunks: got %q, want %q", got, once)
		}
	})
}

// The same applies to stored output, and JSON keeps its meaning.
func FuzzLog(f *testing.F) {
	for _, seed := range []string{"\x1b[31mred\x1b]0;t\a", `{"a":"` + "\u202e\u200d👨\u200d👩\x7f" + `"}`, "\"e\u0301\xff\"", "\"\u2028\U000e0041\""} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		once := through(t, aLog, in, 1<<20)
		onlyText(t, once)
		if chunked := through(t, aLog, in, step); chunked != once {
			t.Fatalf("output in chunks: got %q, want %q", chunked, once)
		}
		if twice := through(t, aLog, []byte(once), 1<<20); twice != once {
			t.Fatalf("cleaned again: got %q, want %q", twice, once)
		}
		var before, after any
		if bytes.ContainsRune(in, '\r') || json.Unmarshal(in, &before) != nil {
			return
		}
		if err := json.Unmarshal([]byte(once), &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("JSON %q: got %v, error %v, want %v", once, after, err, before)
		}
	})
}

func aLog(w io.Writer) *cleaner { return &cleaner{to: w, log: true} }

func onlyText(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("text: got %q, want UTF-8", s)
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || r == 0x7f) {
			t.Fatalf("text %q: got %U, want only visible characters", s, r)
		}
	}
}

// through writes in through a writer in chunks.
func through(t *testing.T, open func(io.Writer) *cleaner, in []byte, step int) string {
	t.Helper()
	var out bytes.Buffer
	w := open(&out)
	if step != 1<<20 {
		step = 1 + (step&0x7fffffff)%7
	}
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
	return out.String()
}

func BenchmarkCleanWriter(b *testing.B) {
	line := []byte(strings.Repeat("some words of an agent, ünd mehr ", 30) + "\n")
	w := &cleaner{to: &bytes.Buffer{}, prefix: "builder │ "}
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		w.to.(*bytes.Buffer).Reset()
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
