package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// command matches lines that a runner may take for a command.
var command = regexp.MustCompile(`(?m)^[ \t]*::|##[A-Za-z]*\[`)

func TestRunnerLog(t *testing.T) {
	for _, name := range []string{"GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"} {
		t.Setenv(name, "")
	}
	var out bytes.Buffer
	if ForRunner(&out) != &out {
		t.Errorf("ForRunner without a runner: got a %T, want the writer itself", ForRunner(&out))
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	for in, want := range map[string]string{
		"::set-output name=x::y\n":              `:\u003aset-output name=x::y` + "\n",
		"a\n \t::add-mask::x":                   "a\n \t:\\u003aadd-mask::x",
		"\ufe0f:\ufe0f:warning::x":              "\ufe0f:\ufe0f\\u003awarning::x",
		"a\r::error::x":                         "a\r:\\u003aerror::x",
		"say ##[error]x ##vso[task":             `say ##\u005berror]x ##vso\u005btask`,
		"###[x] ##TeamCity[y":                   `###\u005bx] ##TeamCity\u005by`,
		"#\u200b#\ufe0f[x]":                     "#\u200b#\ufe0f\\u005bx]",
		"a::b std::string : : #[ ## [x] ##a b[": "a::b std::string : : #[ ## [x] ##a b[",
	} {
		out.Reset()
		w := ForRunner(&out)
		for _, b := range []byte(in) { // in whatever chunks
			if n, err := w.Write([]byte{b}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != want {
			t.Errorf("%q: got %q, want %q", in, out.String(), want)
		}
	}
	out.Reset()
	ForRunner(&out).(*RunnerLog).Command("group", "::a ##[b]")
	if out.String() != "::group::::a ##\\u005bb]\n" {
		t.Errorf("Command: got %q, want %q", out.String(), "::group::::a ##\\u005bb]\n")
	}
}

// A runner finds no command in any output, and a JSON document keeps its meaning.
func FuzzRunnerLog(f *testing.F) {
	f.Add("::a::\n ##[b]##vso[c]", 3)
	f.Add(":\u200d:x#\x00#\ufe0f[", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		t.Setenv("GITHUB_ACTIONS", "true")
		size = max(1, size)
		var out bytes.Buffer
		w := ForRunner(&out)
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			_, _ = w.Write([]byte(rest[:min(size, len(rest))]))
		}
		seen := strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return '\n'
			}
			if r < ' ' || r > '~' {
				return -1
			}
			return r
		}, out.String())
		if at := command.FindString(seen); at != "" {
			t.Fatalf("commands in %q: got %q, want none", out.String(), at)
		}
		out.Reset()
		doc, _ := json.Marshal(text)
		_, _ = ForRunner(&out).Write(doc)
		var was, is string
		if json.Unmarshal(doc, &was) != nil || json.Unmarshal(out.Bytes(), &is) != nil || was != is {
			t.Fatalf("JSON: got %s, want the same string as %s", out.Bytes(), doc)
		}
	})
}
