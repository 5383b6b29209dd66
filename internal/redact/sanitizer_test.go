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
		t.Errorf("got %q", got)
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
		t.Errorf("without secrets: %q", got)
	}
}

// A key that the sanitizer would cut in two is removed before.
func TestRedactsBeforeItCuts(t *testing.T) {
	o := hiding(aKey)
	for pad := 4060; pad < 4100; pad++ {
		if got := o.String(strings.Repeat("a", pad) + aKey); strings.Contains(got, aKey[:4]) {
			t.Fatalf("after %d bytes: %q", pad, got[pad-10:])
		}
	}
}

func TestHideWhileWriting(t *testing.T) {
	var out bytes.Buffer
	o := &Sanitizer{}
	v := o.Voice(&out)
	for _, secret := range []string{aKey, "another-secret", aKey} {
		if _, err := v.Write([]byte(aKey + " another-secret\n")); err != nil {
			t.Fatal(err)
		}
		o.Hide(secret)
	}
	want := aKey + " another-secret\n[secret …11] another-secret\n[secret …11] [secret …et]\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

// A message of abl is written immediately.
func TestVoiceIsNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	v := hiding(aKey).Voice(&out)
	for _, step := range []struct{ in, soFar string }{
		{"it says s\n", "it says s\n"}, {"and sesa", "it says s\nand "}, {"me-open-4711 s", "it says s\nand [secret …11] "},
	} {
		if _, err := v.Write([]byte(step.in)); err != nil || out.String() != step.soFar {
			t.Errorf("after %q: %q, %v", step.in, out.String(), err)
		}
	}
	if err := v.Close(); err != nil || out.String() != "it says s\nand [secret …11] s" {
		t.Errorf("at the end: %q, %v", out.String(), err)
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
		t.Errorf("got %q", out.String())
	}
}

func TestVoicesOfSeveral(t *testing.T) {
	var out bytes.Buffer
	v := hiding(aKey).Voice(&out)
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
		t.Error("lines are torn")
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
		t.Fatalf("%v: %s", err, data)
	}
	if !strings.Contains(got["coded"].(string), "[secret …11]") {
		t.Errorf("base64: %v", got["coded"])
	}
	delete(got, "coded")
	want := map[string]any{
		"plain": "a \"[secret …te]xt\n", "evil": `\u001b]0;t\u0007\u009b\u202e\u2028\udb40\udc41`, "key": "[secret …11]", "[secret …11]": 1.0, "n": 1.5,
		"b": []any{true, nil, ""}, "long": strings.Repeat("a", 9000), "turn": `\[secret …11]"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := (*Sanitizer)(nil).JSON(func() {}); err == nil {
		t.Error("what is no JSON is taken")
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
		t.Error(diff)
	}
	if err := hiding(aKey).Clean(func() {}); err == nil {
		t.Error("what is no JSON is taken")
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
			t.Fatalf("%q became %q", in, out)
		}
		onlySafe(t, out)
		var text string
		if json.Unmarshal([]byte(out), &text) == nil {
			onlySafe(t, text)
			if strings.Contains(text, aKey) {
				t.Fatalf("%q holds the key", text)
			}
		}
		if again := string(o.document([]byte(out))); again != out {
			t.Fatalf("once  %q\ntwice %q", out, again)
		}
	})
}

func onlySafe(t *testing.T, s string) {
	t.Helper()
	for _, r := range strings.ToValidUTF8(s, "\x00") {
		if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || r == 0x7f) {
			t.Fatalf("%q holds %U", s, r)
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
			t.Errorf("%.60q became %.60q, %v", in, got, err)
		}
		after := stat(t, path)
		if os.SameFile(before, after) != (in == want) || after.Mode() != before.Mode() {
			t.Errorf("%.60q: replaced %t, mode %v", in, !os.SameFile(before, after), after.Mode())
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("%d files are left, %v", len(entries), err)
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
				t.Errorf("%s was kept", name)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(dir, "real")); string(got) != aKey || err != nil {
		t.Errorf("what a link names was changed: %q, %v", got, err)
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
			t.Fatalf("whole  %q\nchunks %q", whole, parts)
		}
		onlySafe(t, whole)
		if strings.Contains(whole, aKey) || strings.Contains(strings.ReplaceAll(whole, "\np │ ", ""), coded[:20]) {
			t.Fatalf("%q holds the key", whole)
		}
		for line := range strings.Lines(whole) {
			if !strings.HasPrefix(line, "p │ ") || !strings.HasSuffix(line, "\n") {
				t.Fatalf("line %q", line)
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
