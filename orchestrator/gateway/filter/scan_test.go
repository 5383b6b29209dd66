package filter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzScan holds the reader of bodies to encoding/json's word, member by member.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : [1, -0.5e+3, "\u00e9\"\\", true, false, null, {}] , "b":{"c":"d"} } `, "{\"a\":\"\x01\"}", `{"a":01}`, `{"a":1.}`, `{"a":+1}`,
		`{"a":1e}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":nul}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":[1,]}`, `{"a":"`, `{"a":"\`, `{} {}`, `[]`,
		"{\"a\xff\":\"\xfe\"}", "\ufeff{}", "{\"a\":1}\x00", `{"a":-}`, `{"a":tru`, "{\"a\":\"\x7f\u2028\"}", `{"a":"\u"}`, "{\"a\":\"\\\x00\"}", `{"a":1 2}`, `{"a":.5}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) >= maxNesting {
			return
		}
		var got, want [][2]string
		s := scan{text: text, member: func(key, value []byte) { got = append(got, [2]string{string(key), string(value)}) }}
		object := bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
		if valid := s.document(); valid != (object && json.Valid(text)) {
			t.Fatalf("%q: %t, and encoding/json does not think so", text, valid)
		} else if !valid {
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		for d.Token(); d.More(); {
			from := d.InputOffset()
			if _, err := d.Token(); err != nil {
				t.Fatal(err)
			}
			key := strings.TrimLeft(string(text[from:d.InputOffset()]), " \t\r\n,")
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				t.Fatal(err)
			}
			want = append(want, [2]string{key, string(value)})
		}
		if len(got) != len(want) {
			t.Fatalf("%q: members %q, want %q", text, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: member %q, want %q", text, got[i], want[i])
			}
		}
	})
}

// A body that nests without end costs neither time nor stack.
func TestNestingHasABound(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	if _, err := members(nested(maxNesting), "a"); err != nil {
		t.Error(err)
	}
	if _, err := members(nested(maxNesting+1), "a"); err == nil {
		t.Error("one more is taken, too")
	}
}

func BenchmarkMembers(b *testing.B) {
	body := []byte(`{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat("word ", 800) + `"}]}]}`)
	for b.Loop() {
		if _, err := members(body, "model", "tools", "mcp_servers"); err != nil {
			b.Fatal(err)
		}
	}
}
