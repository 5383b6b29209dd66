package strictyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type wait time.Duration

func (w *wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("want a time such as 30m, got %q", text)
	}
	*w = wait(d)
	return nil
}

func (w wait) MarshalText() ([]byte, error) { return []byte(time.Duration(w).String()), nil }

type pair struct {
	Left  string `yaml:"left"`
	Right string `yaml:"right"`
}

func (p *pair) FromYAML(n Node) error {
	if text, one := n.Scalar(); one {
		*p = pair{text, text}
		return nil
	}
	type plain pair
	return n.Decode((*plain)(p))
}

type sample struct {
	Agent string            `yaml:"agent"`
	Count int               `yaml:"count"`
	Share float64           `yaml:"share"`
	On    bool              `yaml:"on"`
	Wait  wait              `yaml:"wait"`
	Both  pair              `yaml:"both"`
	Names []string          `yaml:"names"`
	Env   map[string]string `yaml:"env"`
	App   *part             `yaml:"app"`
	Parts map[string]part   `yaml:"parts"`
	Any   any               `yaml:"any"`
}

type part struct {
	Port    int    `yaml:"port"`
	Command string `yaml:"command"`
}

func (p *part) SetDefaults() { p.Command = "default" }

func TestDecode(t *testing.T) {
	in := "\uFEFFagent: gemini\r\ncount: 5\r\nshare: 2\non: true\nwait: 30m\nboth: x\n" +
		"names: [a, 'b']\nenv: {PORT: 3000, V: 1.10}\napp: {port: 80}\nparts:\n  a: &p {port: 1}\n  b: *p\n" +
		"any: {k: [1, x, true, 1.5]}\n"
	got := sample{Agent: "default", Names: []string{"gone"}, Count: 9}
	if err := Decode("c.yaml", []byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := sample{
		Agent: "gemini", Count: 5, Share: 2, On: true, Wait: wait(30 * time.Minute), Both: pair{"x", "x"},
		Names: []string{"a", "b"}, Env: map[string]string{"PORT": "3000", "V": "1.10"}, App: &part{80, "default"},
		Parts: map[string]part{"a": {1, "default"}, "b": {1, "default"}},
		Any:   map[string]any{"k": []any{int64(1), "x", true, 1.5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeKeepsWhatIsNotSaid(t *testing.T) {
	for _, in := range []string{"", "# nothing\n", "---\n", "agent:\nnames: ~\n"} {
		got := sample{Agent: "default", Names: []string{"a"}}
		if err := Decode("c.yaml", []byte(in), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sample{Agent: "default", Names: []string{"a"}}, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"unknown", "count: 1\nagnet: x\n", `c.yaml:2: unknown key "agnet"; did you mean "agent"?`},
		{"unknown inside", "app:\n  prot: 1\n", `c.yaml:2: unknown key "prot" in app; did you mean "port"?`},
		{"unknown in a map", "parts: {a: {cmd: x}}\n", `c.yaml:1: unknown key "cmd" in parts.a; known are command, port`},
		{"type", "\ncount: many\n", `c.yaml:2: count: want a whole number, got "many"`},
		{"fraction", "count: 1.5\n", `c.yaml:1: count: want a whole number, got "1.5"`},
		{"huge", "count: 99999999999999999999\n", `c.yaml:1: count: want a whole number, got "99999999999999999999"`},
		{"quoted number", "count: '5'\n", `c.yaml:1: count: want a whole number, got "5"`},
		{"bool", "on: yes\n", `c.yaml:1: on: want true or false, got "yes"`},
		{"infinite", "share: .inf\n", `c.yaml:1: share: want a number, got ".inf"`},
		{"list", "names: a\n", `c.yaml:1: names: want a list, got "a"`},
		{"list item", "names:\n- a\n- {b: c}\n", `c.yaml:3: names[1]: want text, got keys and values`},
		{"map", "app: [1]\n", `c.yaml:1: app: want keys and values, got a list`},
		{"root", "- a\n", `c.yaml:1: want keys and values, got a list`},
		{"text", "wait: [1]\n", `c.yaml:1: wait: want one value, got a list`},
		{"own text", "wait: soon\n", `c.yaml:1: wait: want a time such as 30m, got "soon"`},
		{"own shape", "both:\n  lft: a\n", `c.yaml:2: unknown key "lft" in both; did you mean "left"?`},
		{"duplicate", "agent: a\ncount: 1\nagent: b\n", `c.yaml:3: duplicate key "agent"; it stands on line 1 already`},
		{"duplicate in a map", "env:\n  A: 1\n  A: 2\n", `c.yaml:3: duplicate key "A"; it stands on line 2 already`},
		{"documents", "agent: a\n---\nagent: b\n", `c.yaml:2: a second document begins here; want one, without "---" between`},
		{"tab", "app:\n\tport: 1\n", `c.yaml:2: is indented with a tab; YAML wants spaces`},
		{"merge", "app: &a {port: 1}\nparts: {b: {<<: *a}}\n", `c.yaml:2: merge keys ("<<") are not supported; write the keys out`},
		{"key", "? [a]\n: b\n", `c.yaml:1: a key must be one word`},
		{"encoding", "agent: a\ncount: \xff\n", `c.yaml:2: is not UTF-8 text`},
		{"size", strings.Repeat("#", maxBytes+1), `c.yaml: is larger than 1048576 bytes`},
		{"cycle", "any: &a [*a]\n", `c.yaml:1: is nested deeper than 64 levels`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Decode("c.yaml", []byte(tt.in), &sample{})
			var located *Error
			if !errors.As(err, &located) {
				t.Fatalf("Decode() = %v, want an *Error", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestDecodeSyntaxHasALine(t *testing.T) {
	err := Decode("c.yaml", []byte("a: 1\nb: [1\n"), &sample{})
	if err == nil || !strings.Contains(err.Error(), "is not YAML: ") || !strings.HasPrefix(err.Error(), "c.yaml:") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte("any: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n") }
	if err := Decode("c.yaml", nested(maxDepth/2-2), &sample{}); err != nil {
		t.Error(err)
	}
	if err := Decode("c.yaml", nested(maxDepth), &sample{}); err == nil || !strings.Contains(err.Error(), "deeper than 64 levels") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeAliasBomb(t *testing.T) {
	var in strings.Builder
	in.WriteString("any:\n- &l0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&in, "- &l%d [*l%d, *l%d]\n", i+1, i, i)
	}
	err := Decode("c.yaml", []byte(in.String()), &sample{})
	if err == nil || !strings.Contains(err.Error(), "aliases stand for more than 10000 values") {
		t.Errorf("got %v", err)
	}
}

func TestLines(t *testing.T) {
	got, err := Lines("c.yaml", []byte("agent: x\napp:\n  port: 1\nnames:\n- a\n- b\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"agent": 1, "app": 2, "app.port": 3, "names": 4, "names[0]": 5, "names[1]": 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeys(t *testing.T) {
	want := "agent any app.command app.port both both.left both.right count names on share wait"
	if got := strings.Join(Keys(&sample{}), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSetAndValues(t *testing.T) {
	tests := []struct{ key, text, want string }{
		{"agent", "claude", "claude"},
		{"count", "7", "7"},
		{"wait", "90s", "1m30s"},
		{"both.right", "y", "y"},
		{"names", "a, b", "a, b"},
		{"app.port", "80", "80"},
		{"share", "1.5", "1.5"},
	}
	for _, tt := range tests {
		var s sample
		if err := Set("--"+tt.key, &s, tt.key, tt.text); err != nil {
			t.Errorf("%s: %v", tt.key, err)
		}
		if got := Values(&s)[tt.key]; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.key, got, tt.want)
		}
	}
}

func TestValues(t *testing.T) {
	s := sample{Env: map[string]string{"A": "1"}, Parts: map[string]part{"x": {2, "run"}}, Both: pair{"l", "r"}}
	want := map[string]string{
		"agent": "", "count": "0", "share": "0", "on": "false", "wait": "0s", "both.left": "l", "both.right": "r",
		"names": "", "env.A": "1", "parts.x.port": "2", "parts.x.command": "run",
	}
	if diff := cmp.Diff(want, Values(s)); diff != "" {
		t.Error(diff)
	}
}

func TestSetErrors(t *testing.T) {
	tests := []struct{ key, text, want string }{
		{"count", "x", `env: count: want a whole number, got "x"`},
		{"app.prot", "1", `env: unknown key "prot" in app; did you mean "port"?`},
		{"env.A", "1", `env: env.A cannot be set here, only in the file`},
	}
	for _, tt := range tests {
		if err := Set("env", &sample{}, tt.key, tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	in := sample{Agent: "a: #1", Wait: wait(time.Minute), Names: []string{"x"}, Env: map[string]string{"A": "1"}}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got sample
	if err := Decode("c.yaml", data, &got); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	got.Parts, got.Any = nil, nil
	if diff := cmp.Diff(in, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzDecode holds that no input panics, and that every error is located in
// the file.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"agent: x\n", "any: &a [*a]\n", "app: {port: 1}", "a: b: c", "\t-", "? x\n", "--- !!map {}\n...\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		err := Decode("c.yaml", data, &s)
		var located *Error
		if err != nil && (!errors.As(err, &located) || strings.Contains(err.Error(), "internal error")) {
			t.Fatalf("error without a place: %v", err)
		}
		if err == nil {
			if _, err := Lines("c.yaml", data); err != nil {
				t.Fatal(err)
			}
		}
	})
}
