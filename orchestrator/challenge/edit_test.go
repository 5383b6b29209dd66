package challenge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited prints what each edit makes of a document, one line each that makes
// something of it.
func edited(data string) string {
	f, ok := look([]byte(data))
	if !ok {
		return "none"
	}
	var b strings.Builder
	for _, m := range Mutations() {
		if m.edit == nil {
			continue
		}
		if out := m.edit([]byte(data), f); out != nil {
			fmt.Fprintf(&b, "%s %s\n", m.Name, out)
		}
	}
	return b.String()
}

func TestEdit(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{``, "none"}, {`{"a":}`, "none"}, {`null`, ""}, {`{}`, ""}, {`[]`, ""},
		{strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2), "none"},
		{` {"id": 7} `, "field-first  {} \nvalue-number  {\"id\": 8} \nvalue-null  {\"id\": null} \n"},
		{`{"id":7,"text":"a\"b","done":true}`,
			`field-first {"text":"a\"b","done":true}
field-last {"id":7,"text":"a\"b"}
value-number {"id":8,"text":"a\"b","done":true}
value-text {"id":7,"text":"a\"bx","done":true}
value-truth {"id":7,"text":"a\"b","done":false}
value-null {"id":7,"text":"a\"b","done":null}
`},
		{`[{"id":1.5},{"id":-1e400},{"id":99999999999999999999}]`,
			`field-first [{},{"id":-1e400},{"id":99999999999999999999}]
value-number [{"id":1.5},{"id":-1e400},{"id":100000000000000000000}]
value-null [{"id":1.5},{"id":-1e400},{"id":null}]
array-short [{"id":1.5},{"id":-1e400}]
array-long [{"id":1.5},{"id":-1e400},{"id":99999999999999999999},{"id":99999999999999999999}]
array-order [{"id":99999999999999999999},{"id":-1e400},{"id":1.5}]
`},
		{"{ \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 1.25 ], \"c\" : false }",
			"field-first { \"b\" : [ 1.25 , [ 1, 2 ] , 1.25 ], \"c\" : false }\n" +
				"field-last { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 1.25 ] }\n" +
				"value-number { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 2.25 ], \"c\" : false }\n" +
				"value-truth { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 1.25 ], \"c\" : true }\n" +
				"value-null { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 1.25 ], \"c\" : null }\n" +
				"array-short { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] ], \"c\" : false }\n" +
				"array-long { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 1, 2 ] , 1.25,1.25 ], \"c\" : false }\n" +
				"array-order { \"a\" : [ ] ,\n \"b\" : [ 1.25 , [ 2, 1 ] , 1.25 ], \"c\" : false }\n"},
		{`"é\\"`, "value-text \"é\\\\x\"\nvalue-null null\n"},
		{`1e308`, "value-null null\n"}, // one more makes no difference
		{`0.1e1`, "value-number 2\nvalue-null null\n"},
	} {
		if diff := cmp.Diff(c.want, edited(c.data)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.data, diff)
		}
	}
}

// Every edit leaves valid JSON that says something else, in one place.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{
		`{"id":7,"text":"a\"b\\","done":true}`, `[1,2,[3,{"a":null}],"x"]`, ` [ { } , [ ] ] `, `{"a":1,"a":2}`, `-0.5e-3`, `[1,1.0]`, `"\u00e9"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			if _, ok := look(data); ok {
				t.Fatal("found something in what is no JSON")
			}
			return
		}
		parts, ok := look(data)
		if !ok {
			return
		}
		for _, m := range Mutations() {
			if m.edit == nil {
				continue
			}
			before := bytes.Clone(data)
			out := m.edit(data, parts)
			if !bytes.Equal(before, data) {
				t.Fatalf("%s wrote into its input", m.Name)
			}
			if out == nil {
				continue
			}
			if !json.Valid(out) || bytes.Equal(out, data) {
				t.Fatalf("%s made %q of %q", m.Name, out, data)
			}
			if m.Name == "value-truth" || m.Name == "array-order" {
				again, _ := look(out)
				if back := m.edit(out, again); !bytes.Equal(back, data) && m.Name == "value-truth" || !same(back, data) {
					t.Fatalf("%s twice made %q of %q", m.Name, back, data)
				}
			}
		}
	})
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func TestHead(t *testing.T) {
	const head = "HTTP/1.1 200 OK then\r\nLocation: /a\r\n b\r\nX: 1\r\nlocation : /c\nContent-Length: 3\r\n\r\n"
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"without", withoutHeader([]byte(head), "Location"), "HTTP/1.1 200 OK then\r\nX: 1\r\nContent-Length: 3\r\n\r\n"},
		{"without none", withoutHeader([]byte(head), "Y"), head},
		{"with", withHeader([]byte("A\n\n"), "B", "c"), "A\r\nB: c\r\n\r\n"},
		{"with a length", withLength([]byte("A\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n"), 5), "A\r\nContent-Length: 5\r\n\r\n"},
		{"with a status", withStatus([]byte(head), 404), strings.Replace(head, "200 OK then", "404 Not Found", 1)},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestMade(t *testing.T) {
	for _, c := range []struct{ at, location, data, want string }{
		{"/notes", "", `{"id": 7}`, "/notes/7"},
		{"/notes/", "", `{"ID": "a b"}`, "/notes/a%20b"},
		{"/notes", "/n/1", `{"id": 7}`, "/n/1"},
		{"/v1/notes", "notes/1", "", "/v1/notes/1"},
		{"/notes", "http://app:3000/notes/2?x", "", "/notes/2"},
		{"/notes", "", `{"id": {}}`, ""}, {"/notes", "", `[]`, ""}, {"/notes", "", `{"name": 1}`, ""}, {"/notes", "", "", ""},
		{"/notes", "http://[", `{"id": "x"}`, "/notes/x"},
	} {
		if got := made(c.at, c.location, []byte(c.data)); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for at, want := range map[string]string{"/n/7": "/n/100010", "/n/a9-": "/n/a0-", "/n/af": "/n/aa", "/n/c": "/n/d", "/n/xyz": "/n/xyz0", "/": "/0"} {
		if got := sibling(at); got != want {
			t.Errorf("beside %s: %s, want %s", at, got, want)
		}
	}
}

func TestMutations(t *testing.T) {
	seen := map[string]bool{Control: true}
	for _, m := range Mutations() {
		if seen[m.Name] || m.What == "" || m.change == nil && m.edit == nil && !m.empty && m.forget == nil && m.repeat == "" {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
		if got, err := Named(m.Name); err != nil || got.Name != m.Name {
			t.Errorf("%s: %v, %v", m.Name, got, err)
		}
	}
	if _, err := Named("x"); err == nil || !strings.Contains(err.Error(), "control, status-200-201, ") {
		t.Error(err)
	}
}
