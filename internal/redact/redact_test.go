package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
)

const key = `sk-"Ré/al+K&y$42`

func TestStringTakesOutEveryForm(t *testing.T) {
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	r, refused := New(key, "", "short", "1234567")
	if refused != 2 {
		t.Errorf("refused %d, want 2", refused)
	}
	forms := map[string]string{
		"raw": key, "json": string(quoted), "json loose": `sk-\"Ré/al+K&y$42`, "json slash": `sk-\"Ré\/al+K&y$42`,
		"query": url.QueryEscape(key), "path": url.PathEscape(key), "lower": percent.ReplaceAllStringFunc(url.QueryEscape(key), strings.ToLower),
		"hex": hex.EncodeToString([]byte(key)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(key))),
	}
	for name, form := range forms {
		got := r.String("x" + form + "y")
		if !strings.Contains(got, "[secret …42]") || strings.Contains(got, "al") || !strings.HasPrefix(got, "x") || !strings.HasSuffix(got, "y") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestStringTakesOutBase64(t *testing.T) {
	r, _ := New(key)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 6 {
			for after := range 4 {
				text := enc.EncodeToString([]byte(strings.Repeat("b", before) + key + strings.Repeat("a", after)))
				got := r.String(text)
				bare := strings.Replace(got, "[secret …42]", "", 1)
				// What is left is what the bytes around it need, and a part of a
				// character at either end.
				if bare == got || len(bare) > (before+after)*4/3+6 {
					t.Errorf("%d before, %d after: %q of %q", before, after, got, text)
				}
			}
		}
	}
}

func TestString(t *testing.T) {
	r, _ := New("abcdefgh", "abcdefghijkl", "ghijklmnop", "xyxyxyxy", "ends-in-newline\n")
	tests := []struct{ in, want string }{
		{"", ""},
		{"nothing abcdefg", "nothing abcdefg"},
		{"abcdefgh", "[secret …gh]"},
		{"abcdefghij", "[secret …gh]ij"},
		{"abcdefghijkl", "[secret …kl]"},
		{"aabcdefghh", "a[secret …gh]h"},
		{"abcdefghabcdefgh", "[secret …gh][secret …gh]"},
		{"abcdefghijklmnop!", "[secret …kl]!"},
		{"xyxyxyxyxyxyxyx", "[secret …xy]x"},
		{"ends-in-newline\nx", "[secret …ne]x"},
	}
	for _, tt := range tests {
		if got := r.String(tt.in); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := (&Redactor{}).String("text"); got != "text" {
		t.Errorf("the zero Redactor gives %q", got)
	}
}

func TestWriterPassesOnWhatIsNoSecret(t *testing.T) {
	var out bytes.Buffer
	r, _ := New("abcdefgh")
	w := r.Writer(&out)
	for _, step := range []struct{ in, soFar string }{
		{"line abc", "line "}, {"dxy\n", "line abcdxy\n"}, {"abcd", "line abcdxy\n"}, {"efgh", "line abcdxy\n[secret …gh]"},
	} {
		if n, err := w.Write([]byte(step.in)); n != len(step.in) || err != nil || out.String() != step.soFar {
			t.Errorf("after %q: %q, %d, %v", step.in, out.String(), n, err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterTellsErrors(t *testing.T) {
	r, _ := New("abcdefgh")
	if _, err := r.Writer(full{}).Write([]byte("x")); err == nil {
		t.Error("an error was swallowed")
	}
}

func TestWriterHoldsLittle(t *testing.T) {
	r, _ := New("aaaaaaaa")
	var out bytes.Buffer
	w := r.Writer(&out)
	for range 1000 {
		if _, err := w.Write(bytes.Repeat([]byte("a"), 100)); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > 64 {
			t.Fatalf("holds %d bytes", len(w.held))
		}
	}
}

// FuzzSplits writes a text that holds a secret in one of its forms in two parts,
// at every cut and byte by byte. The form is never in the output, and the cut
// makes no difference.
func FuzzSplits(f *testing.F) {
	f.Add("sesame-open", "before", "after", 0)
	f.Add("aaaaaaaab", "aaaa", "aab", 1)
	f.Add("päss\"wörd\\/&", "", "", 3)
	f.Fuzz(func(t *testing.T, secret, before, after string, which int) {
		const brackets = "[secret …]"
		if len(secret) < Shortest || len(secret) > 200 || len(before)+len(after) > 200 {
			return
		}
		r, _ := New(secret)
		forms := spellings(secret)
		form := forms[(which&0x7fffffff)%len(forms)]
		in := before + form + after
		want := r.String(in)
		if bare := strings.ReplaceAll(want, mark(secret), "\x00"); strings.Contains(bare, form) && !strings.Contains(form, "\x00") && !strings.ContainsAny(form, brackets) {
			t.Fatalf("%q of %q holds %q", want, in, form)
		}
		if !strings.Contains(want, mark(secret)) {
			t.Fatalf("%q of %q has no mark", want, in)
		}
		for cut := range len(in) {
			if got := inParts(t, r, in[:cut], in[cut:]); got != want {
				t.Fatalf("cut at %d: %q, whole %q", cut, got, want)
			}
		}
		if got := inParts(t, r, strings.Split(in, "")...); got != want {
			t.Fatalf("byte by byte: %q, whole %q", got, want)
		}
	})
}

func inParts(t *testing.T, r *Redactor, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, p := range parts {
		if _, err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func BenchmarkWriter(b *testing.B) {
	r, _ := New("sk-0123456789abcdef0123456789", "ghp_0123456789abcdef")
	line := []byte(strings.Repeat("some words of an agent, and more ", 30) + "\n")
	var out bytes.Buffer
	w := r.Writer(&out)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		out.Reset()
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
