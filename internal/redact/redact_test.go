package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"strings"
	"testing"
)

const key = `sk-"Ré/al+K&y$42`

func TestStringRemovesEveryForm(t *testing.T) {
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	r := New(key, "", "short", "1234567")
	if got := r.String("short 1234567"); got != "short 1234567" {
		t.Errorf("got %q, want the texts that are too short for a secret", got)
	}
	forms := map[string]string{
		"raw": key, "json": string(quoted), "json-loose": `sk-\"Ré/al+K&y$42`, "json-slash": `sk-\"Ré\/al+K&y$42`,
		"query": url.QueryEscape(key), "path": url.PathEscape(key), "lower": lowered(url.QueryEscape(key)),
		"hex": hex.EncodeToString([]byte(key)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(key))),
		"html": html.EscapeString(key), "ascii": `sk-\"R\u00e9/al+K&y$42`, "twice": `sk-\\\"Ré/al+K&y$42`,
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			got := r.String("x" + form + "y")
			if !strings.Contains(got, "[secret …42]") || strings.Contains(got, "al") || !strings.HasPrefix(got, "x") || !strings.HasSuffix(got, "y") {
				t.Errorf("got %q, want x…[secret …42]…y", got)
			}
		})
	}
}

func TestStringRemovesBase64(t *testing.T) {
	r := New(key)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 6 {
			for after := range 4 {
				text := enc.EncodeToString([]byte(strings.Repeat("b", before) + key + strings.Repeat("a", after)))
				got := r.String(text)
				bare := strings.Replace(got, "[secret …42]", "", 1)
				// Only the encoding of the bytes around the secret, and a part of a character at
				// either end, may remain.
				if bare == got || len(bare) > (before+after)*4/3+6 {
					t.Errorf("base64 %q with %d bytes before and %d after: got %q, want the secret replaced",
						text, before, after, got)
				}
			}
		}
	}
}

// A secret is found across the line ends that base64, fold and JSON insert.
func TestStringRemovesWrappedForms(t *testing.T) {
	r := New("abcdefgh")
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`, `\\n`} {
		for at := 1; at < 8; at++ {
			if got := r.String("x" + "abcdefgh"[:at] + end + "abcdefgh"[at:] + end); got != "x[secret …gh]"+end {
				t.Errorf("line end %q at %d: got %q, want %q", end, at, got, "x[secret …gh]"+end)
			}
		}
		if got := r.String(strings.Join(strings.Split("abcdefgh", ""), end)); got != "[secret …gh]" {
			t.Errorf("line end %q everywhere: got %q, want [secret …gh]", end, got)
		}
	}
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", 50) + key + strings.Repeat("a", 50)))
	r = New(key)
	if got := r.String(long[:76] + "\n" + long[76:]); strings.Count(got, "[secret …42]") != 1 || len(got) > 150 {
		t.Errorf("wrapped base64: got %q, want one replacement and at most 150 bytes", got)
	}
	for _, innocent := range []string{"abcd\n\nefgh", "abcd \nefgh", "abcd\refgh", `abcd\tefgh`} {
		r := New("abcdefgh")
		if got := r.String(innocent); got != innocent || string(r.Bytes([]byte(innocent))) != innocent {
			t.Errorf("String(%q): got %q, from Bytes %q, want it unchanged", innocent, got, r.Bytes([]byte(innocent)))
		}
	}
}

// Each line of a secret with several lines is a secret, too.
func TestLinesOfASecret(t *testing.T) {
	r := New("-----BEGIN KEY-----\nMIIBVgIBADANBgkq\nhkiG\n-----END KEY-----\n", "  padded-secret ")
	for in, want := range map[string]string{
		"MIIBVgIBADANBgkq": "[secret]", "-----BEGIN KEY-----": "-----BEGIN KEY-----", "hkiG": "hkiG",
		`-----BEGIN KEY-----\nMIIBVgIBADANBgkq\nhkiG\n-----END KEY-----`: "[secret]", "padded-secret": "[secret …et]",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The replacement has no special characters of JSON, CSV or HTML.
func TestMark(t *testing.T) {
	for secret, want := range map[string]string{
		"sesame-ab": "[secret …ab]", `sesame-a"`: "[secret]", "sesame-é": "[secret]", "sesame\\n": "[secret]", "sesame-42\n": "[secret …42]",
	} {
		if got := replacement(secret); got != want {
			t.Errorf("%q: got %q, want %q", secret, got, want)
		}
	}
}

func TestString(t *testing.T) {
	r := New("abcdefgh", "abcdefghijkl", "ghijklmnop", "xyxyxyxy", "ends-in-newline\n")
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
		t.Errorf("String of the zero Redactor: got %q, want text", got)
	}
}

func TestWriterPassesOtherText(t *testing.T) {
	var out bytes.Buffer
	r := New("abcdefgh")
	w := r.Writer(&out)
	for _, step := range []struct{ in, soFar string }{
		{"line abc", "line "}, {"dxy\n", "line abcdxy\n"}, {"abcd", "line abcdxy\n"}, {"\n", "line abcdxy\n"}, {"efgh", "line abcdxy\n[secret …gh]"},
	} {
		if n, err := w.Write([]byte(step.in)); n != len(step.in) || err != nil || out.String() != step.soFar {
			t.Errorf("output after %q: got %q, count %d, error %v, want %q", step.in, out.String(), n, err, step.soFar)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterReturnsErrors(t *testing.T) {
	r := New("abcdefgh")
	if _, err := r.Writer(full{}).Write([]byte("x")); err == nil {
		t.Error("Write to a full writer: got no error, want one")
	}
}

func TestWriterHoldsLittle(t *testing.T) {
	r := New("aaaaaaaa")
	var out bytes.Buffer
	w := r.Writer(&out)
	for range 1000 {
		if _, err := w.Write(bytes.Repeat([]byte("a"), 100)); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > 64 {
			t.Fatalf("buffered bytes: got %d, want at most 64", len(w.held))
		}
	}
}

// The test writes a text with one form of a secret, with or without a line end in it, in two parts
// at every position, and byte by byte. The form is never in the output, and the split makes no
// difference.
func FuzzSplits(f *testing.F) {
	f.Add("sesame-open", "before", "after", 0, 0)
	f.Add("aaaaaaaab", "aaaa", "aab", 1, 1)
	f.Add("päss\"wörd\\/&", "", "", 3, 2)
	f.Add("nabcdefgh", `\`, "\r", 0, 3)
	f.Add("line one is long\nline two is long\n", "\n", "\n", 5, 4)
	f.Add("sk-0123456789abcdef", "YWJj\n", "==", 20, 5)
	f.Fuzz(func(t *testing.T, secret, before, after string, which, wrap int) {
		const brackets = "[secret …]"
		if len(secret) < Shortest || len(secret) > 200 || len(before)+len(after) > 200 {
			return
		}
		r := New(secret)
		forms := spellings(secret)
		form := wrapped(forms[(which&0x7fffffff)%len(forms)], wrap&0x7fffffff)
		in := before + form + after
		want := r.String(in)
		if bare := strings.ReplaceAll(want, replacement(secret), "\x00"); strings.Contains(bare, form) && !strings.Contains(form, "\x00") && !strings.ContainsAny(form, brackets) {
			t.Fatalf("String(%q): got %q, want it without %q", in, want, form)
		}
		if !strings.Contains(want, replacement(secret)) {
			t.Fatalf("String(%q): got %q, want one with %q", in, want, replacement(secret))
		}
		for cut := range len(in) {
			if got := inParts(t, r, in[:cut], in[cut:]); got != want {
				t.Fatalf("cut at %d: got %q, want %q", cut, got, want)
			}
		}
		if got := string(r.Bytes([]byte(in))); got != want {
			t.Fatalf("as bytes: got %q, want %q", got, want)
		}
		if got := inParts(t, r, strings.Split(in, "")...); got != want {
			t.Fatalf("byte by byte: got %q, want %q", got, want)
		}
	})
}

// wrapped inserts one of the line ends into a form, or none for 0 and where it could be a part of
// the form.
func wrapped(form string, how int) string {
	end := string(breaks[how%len(breaks)])
	at := 1 + how/len(breaks)%(len(form)-1)
	if how == 0 || strings.ContainsAny(form[at-1:at+1], "\\\r\n") {
		return form
	}
	return form[:at] + end + form[at:]
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
	r := New("sk-0123456789abcdef0123456789", "ghp_0123456789abcdef")
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
