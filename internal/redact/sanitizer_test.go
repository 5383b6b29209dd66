package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"abl/internal/hostfs"
)

const aKey = "sesame-open-4711"

func hiding(secrets ...string) *Sanitizer {
	o := &Sanitizer{}
	o.Hide(secrets...)
	return o
}

func TestNewKnowsTheEnvironment(t *testing.T) {
	o := NewSanitizer([]string{"GEMINI_API_KEY=" + aKey, "NAME=sesame-street", "EMPTY_TOKEN=", "ODD", "PWD=/home/someone"})
	if got := o.Line(aKey + " sesame-street /home/someone"); got != "[secret …11] sesame-street /home/someone" {
		t.Errorf("Line: got %q, want %q", got, "[secret …11] sesame-street /home/someone")
	}
}

func TestText(t *testing.T) {
	o := hiding(aKey)
	in := "\x1b[31m<b>" + aKey + "\nabl: passed"
	for name, c := range map[string][2]string{
		"redact": {o.Redact(in), "\x1b[31m<b>[secret …11]\nabl: passed"},
		"string": {o.String(in), `\x1b[31m<b>[secret …11]` + "\nabl: passed"},
		"line":   {o.Line(in), `\x1b[31m<b>[secret …11] abl: passed`},
		"whole":  {o.Whole("a\r\nb" + in), "a\nb" + `\u001b[31m<b>[secret …11]` + "\nabl: passed"},
		"bytes":  {string(o.Bytes([]byte(in))), "\x1b[31m<b>[secret …11]\nabl: passed"},
	} {
		t.Run(name, func(t *testing.T) {
			if c[0] != c[1] {
				t.Errorf("got %q, want %q", c[0], c[1])
			}
		})
	}
	var nobody *Sanitizer
	if got := nobody.Line(in); got != `\x1b[31m<b>`+aKey+" abl: passed" {
		t.Errorf("Line without secrets: got %q, want %q", got, `\x1b[31m<b>`+aKey+" abl: passed")
	}
}

// A key that the sanitizer would cut in two is removed before.
func TestRedactsBeforeItCuts(t *testing.T) {
	o := hiding(aKey)
	for pad := 4060; pad < 4100; pad++ {
		if got := o.String(strings.Repeat("a", pad) + aKey); strings.Contains(got, aKey[:4]) {
			t.Fatalf("text after %d bytes: got %q, want no part of the key", pad, got[pad-10:])
		}
	}
}

func TestHideWhileWriting(t *testing.T) {
	var out bytes.Buffer
	o := &Sanitizer{}
	v := o.Messages(&out)
	for _, secret := range []string{aKey, "another-secret", aKey} {
		if _, err := v.Write([]byte(aKey + " another-secret\n")); err != nil {
			t.Fatal(err)
		}
		o.Hide(secret)
	}
	want := aKey + " another-secret\n[secret …11] another-secret\n[secret …11] [secret …et]\n"
	if out.String() != want {
		t.Errorf("output: got %q, want %q", out.String(), want)
	}
}

// A message of abl is written immediately.
func TestMessagesAreNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	v := hiding(aKey).Messages(&out)
	for _, step := range []struct{ in, soFar string }{
		{"it says s\n", "it says s\n"}, {"and sesa", "it says s\nand "}, {"me-open-4711 s", "it says s\nand [secret …11] "},
	} {
		if _, err := v.Write([]byte(step.in)); err != nil || out.String() != step.soFar {
			t.Errorf("output after %q: got %q, error %v, want %q", step.in, out.String(), err, step.soFar)
		}
	}
	if err := v.Close(); err != nil || out.String() != "it says s\nand [secret …11] s" {
		t.Errorf("output at the end: got %q, error %v, want %q",
			out.String(), err, "it says s\nand [secret …11] s")
	}
}

func TestWriterPrefixes(t *testing.T) {
	var out bytes.Buffer
	w := hiding(aKey).Writer(&out, "builder │ ")
	for _, b := range []byte("a\nabl: passed " + aKey + "\x1b[2J") {
		if _, err := w.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if want := "builder │ a\nbuilder │ abl: passed [secret …11]\\x1b[2J\n"; out.String() != want {
		t.Errorf("output: got %q, want %q", out.String(), want)
	}
}

func TestMessagesOfSeveralGoroutines(t *testing.T) {
	var out bytes.Buffer
	v := hiding(aKey).Messages(&out)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				v.Write([]byte("one line " + aKey + "\n"))
			}
		})
	}
	all.Wait()
	if want := strings.Repeat("one line [secret …11]\n", 400); out.String() != want {
		t.Errorf("output of several writers (-want +got)\n%s", cmp.Diff(want, out.String()))
	}
}

func TestJSON(t *testing.T) {
	in := map[string]any{
		"plain": "a \"quoted\" \\ text\n", "evil": "\x1b]0;t\a\u009b\u202e\u2028\U000e0041", "key": aKey, aKey: 1, "n": 1.5, "b": []any{true, nil, ""},
		"coded": base64.StdEncoding.EncodeToString([]byte("x" + aKey + "y")), "long": strings.Repeat("a", 9000), "turn": "\\" + aKey + `"`,
	}
	data, err := hiding(aKey, `quoted" \ te`).JSON(in)
	if err != nil {
		t.Fatal(err)
	}
	onlySafe(t, string(data))
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("output: got %s, error %v, want valid JSON", data, err)
	}
	if !strings.Contains(got["coded"].(string), "[secret …11]") {
		t.Errorf("base64: got %v, want it with [secret …11]", got["coded"])
	}
	delete(got, "coded")
	want := map[string]any{
		"plain": "a \"[secret …te]xt\n", "evil": `\u001b]0;t\u0007\u009b\u202e\u2028\udb40\udc41`, "key": "[secret …11]", "[secret …11]": 1.0, "n": 1.5,
		"b": []any{true, nil, ""}, "long": strings.Repeat("a", 9000), "turn": `\[secret …11]"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got)\n%s", diff)
	}
	if _, err := (*Sanitizer)(nil).JSON(func() {}); err == nil {
		t.Error("JSON of a function: got no error, want one")
	}
}

func TestClean(t *testing.T) {
	type texts struct {
		Reason string            `json:"reason"`
		More   []string          `json:"more,omitempty"`
		By     map[string]string `json:"by"`
		N      *int64            `json:"n"`
	}
	n := int64(1 << 60)
	got := texts{"said " + aKey + "\x1b[2J\nabl: passed", []string{aKey}, map[string]string{"a": "\u202e"}, &n}
	if err := hiding(aKey).Clean(&got); err != nil {
		t.Fatal(err)
	}
	want := texts{"said [secret …11]\\u001b[2J\nabl: passed", []string{"[secret …11]"}, map[string]string{"a": `\u202e`}, &n}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("struct (-want +got)\n%s", diff)
	}
	if err := hiding(aKey).Clean(func() {}); err == nil {
		t.Error("Clean of a function: got no error, want one")
	}
}

// A document stays valid, and its strings are safe.
func FuzzDocument(f *testing.F) {
	f.Add(`{"a":"sesame-open-4711","b\u001b":["\ud800",1e5,"\\\"",null]}`)
	f.Add(`"\\sesame-open-4711\""`)
	f.Add("\"\u202e\x7f\xff\"")
	o := hiding(aKey, `quo"te\d-secret`)
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) || strings.ContainsRune(in, '\r') {
			return
		}
		out := string(o.document([]byte(in)))
		if !json.Valid([]byte(out)) {
			t.Fatalf("document of %q: got %q, want valid JSON", in, out)
		}
		onlySafe(t, out)
		var text string
		if json.Unmarshal([]byte(out), &text) == nil {
			onlySafe(t, text)
			if strings.Contains(text, aKey) {
				t.Fatalf("string of the document: got %q, want it without the key", text)
			}
		}
		if again := string(o.document([]byte(out))); again != out {
			t.Fatalf("document again: got %q, want %q", again, out)
		}
	})
}

func onlySafe(t *testing.T, s string) {
	t.Helper()
	for _, r := range strings.ToValidUTF8(s, "\x00") {
		if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || r == 0x7f) {
			t.Fatalf("text %q: got %U, want only visible characters", s, r)
		}
	}
}

// sanitize makes a file safe like abl.
func sanitize(o *Sanitizer, path string) error {
	f, err := hostfs.Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return o.Keep(f, func(fill func(io.Writer) error) error { return hostfs.Fill(path, fi.Mode().Perm(), fill) })
}

func TestKeep(t *testing.T) {
	o := hiding(aKey)
	coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("z", 51) + aKey))
	big := strings.Repeat("a line of an agent\n", 10_000)
	for in, want := range map[string]string{
		"": "", "all is well\n": "all is well\n", big: big,
		big + aKey + "\n":                     big + "[secret …11]\n",
		aKey:                                  "[secret …11]",
		big + "\x1b[2Jx":                      big + `\u001b[2Jx`,
		`{"text":"` + "\u202e" + aKey + `"}`:  `{"text":"\u202e[secret …11]"}`,
		coded[:76] + "\n" + coded[76:] + "\n": o.Redact(coded) + "\n",
	} {
		path := filepath.Join(t.TempDir(), "stdout")
		if err := os.WriteFile(path, []byte(in), 0o640); err != nil {
			t.Fatal(err)
		}
		before := stat(t, path)
		if err := sanitize(o, path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("file with %.60q: got %.60q, error %v, want %.60q", in, got, err, want)
		}
		after := stat(t, path)
		if os.SameFile(before, after) != (in == want) || after.Mode() != before.Mode() {
			t.Errorf("file with %.60q: got replaced %t, mode %v, want %t, %v",
				in, !os.SameFile(before, after), after.Mode(), in != want, before.Mode())
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("files: got %d, error %v, want 1", len(entries), err)
		}
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

func TestKeepRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "real"), []byte(aKey), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "missing", "."} {
		t.Run(name, func(t *testing.T) {
			if err := sanitize(hiding(aKey), filepath.Join(dir, name)); err == nil {
				t.Errorf("sanitize(%s): got no error, want one", name)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(dir, "real")); string(got) != aKey || err != nil {
		t.Errorf("target of the link: got %q, error %v, want %q", got, err, aKey)
	}
}

// Chunks make no difference to the output, each line has its prefix, and it contains neither the
// key nor control characters.
func FuzzWriter(f *testing.F) {
	f.Add("a\x1b[2J", "\nabl: passed\xff", 1, 2)
	f.Add("\u202ese", "same-open-4711", 3, 1)
	f.Add(strings.Repeat("a", 4090), "\r\n", 7, 3)
	o := hiding(aKey)
	coded := base64.StdEncoding.EncodeToString([]byte(aKey))
	f.Fuzz(func(t *testing.T, before, after string, step, wrap int) {
		text := before + aKey + after + coded[:1+(wrap&0xff)%20] + "\n" + coded[1+(wrap&0xff)%20:]
		whole, parts := pass(t, o, text, len(text)), pass(t, o, text, 1+(step&0xff)%9)
		if whole != parts {
			t.Fatalf("output in chunks: got %q, want %q", parts, whole)
		}
		onlySafe(t, whole)
		if strings.Contains(whole, aKey) || strings.Contains(strings.ReplaceAll(whole, "\np │ ", ""), coded[:20]) {
			t.Fatalf("output: got %q, want it without the key", whole)
		}
		for line := range strings.Lines(whole) {
			if !strings.HasPrefix(line, "p │ ") || !strings.HasSuffix(line, "\n") {
				t.Fatalf("line: got %q, want one with the prefix and a line end", line)
			}
		}
	})
}

// pass writes a text through a writer in chunks.
func pass(t *testing.T, o *Sanitizer, text string, step int) string {
	t.Helper()
	var out bytes.Buffer
	w := o.Writer(&out, "p │ ")
	for rest := text; rest != ""; {
		n := min(step, len(rest))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
