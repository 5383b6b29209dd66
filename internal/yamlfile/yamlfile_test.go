package yamlfile

import (
	"errors"
	"fmt"
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

func (p *pair) UnmarshalYAML(read func(any) error) error {
	var text string
	if read(&text) == nil {
		*p = pair{text, text}
		return nil
	}
	type plain pair
	return read((*plain)(p))
}

type base struct {
	Total *int `yaml:"total"`
}

type sample struct {
	base  `yaml:",inline"`
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
	List  []part            `yaml:"list"`
}

type part struct {
	Port    int    `yaml:"port"`
	Command string `yaml:"command"`
}

func TestDecode(t *testing.T) {
	in := "\uFEFFagent: gemini\r\ncount: 5\r\nshare: 2\non: true\nwait: 30m\nboth: x\n" +
		"names: [a, 'b']\nenv: {PORT: 3000, V: 1.10}\napp: {port: 80}\nparts:\n  a: &p {port: 1}\n  b: *p\n"
	got := sample{Agent: "default", Names: []string{"gone"}, Count: 9, App: &part{Command: "default"}}
	if err := Decode("c.yaml", []byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := sample{
		Agent: "gemini", Count: 5, Share: 2, On: true, Wait: wait(30 * time.Minute), Both: pair{"x", "x"},
		Names: []string{"a", "b"}, Env: map[string]string{"PORT": "3000", "V": "1.10"}, App: &part{80, "default"},
		Parts: map[string]part{"a": {1, ""}, "b": {1, ""}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Errorf("decoded values (-want +got)\n%s", diff)
	}
}

func TestDecodeKeepsAbsentValues(t *testing.T) {
	for _, in := range []string{"", "# nothing\n", "---\n", "agent:\n"} {
		got := sample{Agent: "default", Names: []string{"a"}}
		if err := Decode("c.yaml", []byte(in), &got); err != nil || got.Agent != "default" || len(got.Names) != 1 {
			t.Errorf("%q: got %+v, error %v, want the values from before", in, got, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"unknown", "count: 1\nagnet: x\n", `c.yaml:2: unknown key "agnet"; did you mean "agent"?`},
		{"unknown inside", "app:\n  prot: 1\n", `c.yaml:2: unknown key "prot" in app; did you mean "port"?`},
		{"unknown in a map", "parts: {a: {cmd: x}}\n", `c.yaml:1: unknown key "cmd" in parts.a; known are command, port`},
		{"unknown in a list", "list:\n- port: 1\n- prt: 1\n", `c.yaml:3: unknown key "prt" in list[1]; did you mean "port"?`},
		{"type", "\ncount: many\n", `c.yaml:2: count: want a whole number, got "many"`},
		{"two on a line", "{agent: some, count: many}\n", `c.yaml:1: count: want a whole number, got "many"`},
		{"fraction", "count: 1.5\n", `c.yaml:1: count: want a whole number, got "1.5"`},
		{"fraction in a list", "list: [{port: 1}, {port: 1.5}]\n", `c.yaml:1: list[1].port: want a whole number, got "1.5"`},
		{"huge", "count: 99999999999999999999\n", `c.yaml:1: count: want a whole number, got "99999999999999999999"`},
		{"quoted number", "count: '5'\n", `c.yaml:1: count: want a whole number, got "5"`},
		{"pointer", "total: x\n", `c.yaml:1: total: want a whole number, got "x"`},
		{"bool", "on: maybe\n", `c.yaml:1: on: want true or false, got "maybe"`},
		{"list", "names: a\n", `c.yaml:1: names: want a list, got "a"`},
		{"list item", "names:\n- a\n- {b: c}\n", `c.yaml:3: names[1]: want text, got keys and values`},
		{"map", "app: [1]\n", `c.yaml:1: app: want keys and values, got a list`},
		{"root", "- a\n", `c.yaml:1: want keys and values, got a list`},
		{"text", "wait: [1]\n", `c.yaml:1: wait: want one value, got a list`},
		{"own text", "agent: x\nwait: soon\n", `c.yaml:2: wait: want a time such as 30m, got "soon"`},
		{"own shape", "both:\n  lft: a\n", `c.yaml:2: unknown key "lft" in both; did you mean "left"?`},
		{"duplicate", "agent: a\ncount: 1\nagent: b\n", `c.yaml:3: mapping key "agent" already defined at line 1`},
		{"duplicate in a map", "env:\n  A: 1\n  A: 2\n", `c.yaml:3: mapping key "A" already defined at line 2`},
		{"documents", "agent: a\n---\nagent: b\n", `c.yaml:2: a second document begins here; want one, without "---" between`},
		{"tab", "app:\n\tport: 1\n", `c.yaml:2: is indented with a tab; YAML wants spaces`},
		{"syntax", "a: 1\nb: [1\n", `c.yaml:1: is not YAML: did not find expected ',' or ']'`},
		{"encoding", "agent: a\ncount: \xff\n", `c.yaml: is not YAML: invalid leading UTF-8 octet`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := Decode("c.yaml", []byte(tt.in), &sample{}); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestLinesAndAt(t *testing.T) {
	text := []byte("agent: x\napp:\n  port: 1\nnames:\n- a\n- b\n")
	want := map[string]int{"agent": 1, "app": 2, "app.port": 3, "names": 4, "names[0]": 5, "names[1]": 6}
	got := map[string]int{}
	for _, k := range KeysIn(text) {
		got[k.String()] = k.Line
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines of the keys (-want +got)\n%s", diff)
	}
	if got := At("c.yaml", text, "app.command", errors.New("is missing")).Error(); got != "c.yaml:2: app.command: is missing" {
		t.Errorf(`error with its place: got %q, want "c.yaml:2: app.command: is missing"`, got)
	}
}

func TestSetAndValues(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{"agent", "claude", "claude"}, {"agent", "1.10", "1.10"}, {"count", "7", "7"}, {"wait", "90s", "1m30s"},
		{"both.right", "y", "y"}, {"names", "a, b", "a, b"}, {"app.port", "80", "80"}, {"share", "1.5", "1.5"},
	} {
		s := sample{Env: map[string]string{"A": "1"}}
		if err := Set("--"+c.key, &s, c.key, c.text); err != nil {
			t.Errorf("%s: got error %v, want none", c.key, err)
		}
		if got := Values(&s); got[c.key] != c.want || got["env.A"] != "1" {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
	if err := Set("env", &sample{}, "count", "x"); err == nil || err.Error() != `env: count: want a whole number, got "x"` {
		t.Errorf("error for an invalid number: got %v, want one that names env, count and the value", err)
	}
}

// No input panics, and every error names the file.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"agent: x\n", "app: &a [*a]\n", "app: {port: 1}", "a: b: c", "\t-", "? x\n", "--- !!map {}\n...\n", "<<: 1", "names: !!int x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var located *Error
		if err := Decode("c.yaml", data, &sample{}); err != nil && !errors.As(err, &located) {
			t.Fatalf("error of a file: got %v, want one with its place", err)
		}
	})
}
