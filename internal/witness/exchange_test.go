package witness

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"abl/internal/helper"
)

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		action, asked, other string
	}{
		{"GET /links/C", "GET /links/abc GET /links/abc/ GET /links/a%20b", "GET /links GET /links/a/b POST /links/a GET /links/a?x=1"},
		{"GET /notes/{unknown id}", "GET /notes/9", "GET /notes"},
		{"GET /files/unknown", "GET /files/9", "GET /notes/9"},
		{"GET /health", "GET /health GET /health/", "GET /healthz HEAD /health GET /"},
		{"GET /", "GET /", "GET /a GET /?a=1"},
		{"GET /größe", "GET /gr%C3%B6%C3%9Fe GET /größe", "GET /grosse"},
		{"GET /items?q=item1&page=N", "GET /items?page=7&q=item1", "GET /items?page=7&q=item1&x=2 GET /items?q=item2&page=1 GET /items?q=item1"},
		{"GET /items?page=2&…", "GET /items?page=2&x=1", "GET /items"},
		{"GET /items?limit", "GET /items?limit=5", "GET /items"},
		{"GET /items?sort=asc|desc", "GET /items?sort=asc", "GET /items"},
		{"GET /items(?page=N)", "GET /items?page=1", "GET /"},
		{"GET /notes/[id]", "GET /notes/7", "GET /notes"},
		{"GET /static/*", "GET /static/a GET /static/css/a.css", "GET /static GET /a/b/c"},
		{"GET or HEAD /a", "GET /a HEAD /a", "POST /a"},
		{"GET|HEAD /a", "GET /a HEAD /a", "POST /a"},
		{"POST /a and GET /b", "POST /a GET /b", "GET /a"},
		{"GET http://app:3000/a", "GET /a", "GET /b"},
	} {
		t.Run(rowName(c.action), func(t *testing.T) {
			claim, _ := ReadClaim("", c.action, "200")
			for texts, want := range map[string]bool{c.asked: true, c.other: false} {
				words := strings.Fields(texts)
				for i := 0; i < len(words); i += 2 {
					if got := claim.Asked(Exchange{Method: words[i], Target: words[i+1]}); got != want {
						t.Errorf("%s %s: got %v, want %v", words[i], words[i+1], got, want)
					}
				}
			}
		})
	}
}

func TestMisses(t *testing.T) {
	const (
		isJSON = "Content-Type: application/json"
	)
	long := strings.Repeat("x", maxBody)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"a": 1}`))
	_ = z.Close()
	zip, lost := packed.String(), "lost"
	for _, c := range []struct {
		result string
		status int
		head   string
		body   string
		want   string
	}{
		{"200", 200, "", "", ""},
		{"200", 0, "", "", "no response"},
		{"200", 500, "", "x", "500"},
		{"200 or 204", 204, "", "", ""},
		{`200 {"a": 1}`, 200, isJSON, `{"a": 1.0, "b": 2}`, ""},
		{`200 {"a": 1}`, 200, isJSON, `{"a": 2}`, "200 with a different body"},
		{`200 {"a": 1}`, 200, isJSON, `{"a": 1} {}`, "200 with a different body"},
		{`200 {"a": 1}`, 200, isJSON, "", "200 with a different body"},
		{`200 {"a": 1}`, 200, "Content-Encoding: gzip", zip, ""},
		{`200 {"a": 2}`, 200, "Content-Encoding: gzip", zip, "200 with a different body"},
		{`200 {"a": 1}`, 200, "Content-Encoding: gzip", zip[:20], ""},
		{`200 {"a": 1}`, 200, "Content-Encoding: gzip", `{"a": 2}`, "200 with a different body"},
		{`200 {"a": 1}`, 200, "Content-Encoding: identity", `{"a": 2}`, "200 with a different body"},
		{`200 {"a": 1}`, 200, "Content-Encoding: br", "\x0b\x02\x80", ""},
		{`200 {"a": 1}`, 200, isJSON, lost, "200 with a body that abl could not keep, because too many were in transit"},
		{`200 with the text "ok"`, 200, "", lost, "200 with a body that abl could not keep, because too many were in transit"},
		{"200", 200, "", lost, ""},
		{`200 {"a": 1}`, 200, isJSON, long, ""},
		{`200 {"a": "x", "b": true, "c": null}`, 200, isJSON, `{"a": "x", "b": true, "c": null}`, ""},
		{`200 {"a": "x", "b": true}`, 200, isJSON, `{"a": "x", "b": "true"}`, "200 with a different body"},
		{`200 {"id": 1}`, 200, isJSON, `{"id": "f81d4fae"}`, ""},
		{`200 {"a": {"b": [1, 2]}}`, 200, isJSON, `{"a": {"b": [1, 2]}}`, ""},
		{`200 {"a": {"b": [1, 2]}}`, 200, isJSON, `{"a": {"b": [2, 3]}}`, "200 with a different body"},
		{`200 []`, 200, isJSON, `[]`, ""},
		{`200 []`, 200, isJSON, `[1]`, "200 with a different body"},
		{`200 {"a": […]}`, 200, isJSON, `{"a": []}`, ""},
		{`200 {"a": […]}`, 200, isJSON, `{"a": {}}`, "200 with a different body"},
		{`200 [{id, text}]`, 200, isJSON, `[{"id": 1, "text": "a"}, {"id": 2, "text": ""}]`, ""},
		{`200 [{id, text}]`, 200, isJSON, `[{"id": 1}]`, "200 with a different body"},
		{`200 with the text "a & b"`, 200, "", "<p>a &amp; b</p>", ""},
		{`200 with the text "ok"`, 200, "", "no", `200 with a body without "ok"`},
		{"302 to /b", 302, "Location: http://app:3000/b", "", ""},
		{`404 with the text "größe > 1"`, 404, isJSON, `{"error": "gr\u00f6\u00dfe \u003e 1"}`, ""},
		{`200 with the text "Hello Bob"`, 200, "", "<p>Hello\n<b>Bob</b></p>", ""},
		{`200 with the text "crème"`, 200, "Content-Type: text/plain; charset=iso-8859-1", "cr\xe8me", ""},
		{`200 with the text "crème"`, 200, "Content-Type: text/plain; charset=iso-8859-1", "cr\xe9me", `200 with a body without "crème"`},
		{`200 {"n": 1}`, 200, "Content-Type: text/event-stream", "data: {\"n\": 1}\n\n", ""},
		{`200 {"n": 1}`, 200, "Content-Type: application/x-ndjson", "{\"n\": 1}\n{\"n\": 2}\n", ""},
		{"201 with Location: http://app:3000/b", 201, "Location: /b", "", ""},
		{"302 to /b", 302, "Location: /c", "", "302 without header Location /b"},
		{"302 with header Location: U", 302, "", "", "302 without header Location"},
		{"200 with Content-Type text/html", 200, "Content-Type: Text/HTML; charset=utf-8", "", ""},
	} {
		t.Run(rowName(c.result), func(t *testing.T) {
			claim, ok := ReadClaim("", "GET /a", c.result)
			if !ok {
				t.Fatalf("claim of %s: got none, want one", c.result)
			}
			x := Exchange{Method: "GET", Target: "/a", Status: c.status, Header: http.Header{}}
			if name, value, ok := strings.Cut(c.head, ": "); ok {
				x.Header.Set(name, value)
			}
			x.Got = Body{Bytes: int64(len(c.body)), Begins: []byte(c.body)}
			if c.body == long {
				x.Got.Bytes = maxBody + 1
			}
			if c.body == lost {
				x.Got.Begins = nil
			}
			if got := claim.Misses(x); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Says finds the output and the files of a program in the broker's response, even in one that is
// cut off.
func TestProgramOutput(t *testing.T) {
	const line = "ok 1 - P1.C1"
	more := []byte(strings.Repeat("x", 3000))
	for name, c := range map[string]struct {
		ran  helper.AppRan
		kept int // bytes of the answer, 0 for all
		want bool
	}{
		"standard output":      {helper.AppRan{Stdout: []byte("1..1\n" + line + "\n")}, 0, true},
		"standard error":       {helper.AppRan{Stderr: []byte(line)}, 0, true},
		"a file":               {helper.AppRan{Files: map[string][]byte{"out.tap": []byte("1..1\n" + line)}}, 0, true},
		"before what is cut":   {helper.AppRan{Stdout: append([]byte(line), more...)}, 1001, true},
		"beside what is cut":   {helper.AppRan{Stdout: []byte(line), Files: map[string][]byte{"big": more}}, 1000, true},
		"behind what was kept": {helper.AppRan{Stdout: append(more, line...)}, 1000, false},
		"nothing of it":        {helper.AppRan{Stdout: []byte("fine")}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(c.ran)
			if err != nil {
				t.Fatal(err)
			}
			x := Exchange{}
			if x.Got.Begins, x.Got.Bytes = data, int64(len(data)); c.kept > 0 {
				x.Got.Begins = data[:c.kept]
			}
			if got := x.Says(line); got != c.want {
				t.Errorf("line in %.60s: got %v, want %v", x.Got.Begins, got, c.want)
			}
		})
	}
}

// rowName returns the name of a subtest for a contract: its letters and digits, joined by "-", at
// most 60 characters.
func rowName(contract string) string {
	words := strings.FieldsFunc(contract, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := strings.Join(words, "-")
	return strings.ToValidUTF8(name[:min(60, len(name))], "")
}
