package witness

import (
	"testing"

	"abl/internal/helper"
)

// Texts and Line return both sides of an exchange for a report.
func TestTexts(t *testing.T) {
	body := func(text string) Body { return Body{Bytes: int64(len(text)), Begins: []byte(text)} }
	ran := runOf(t, helper.AppRan{Exit: 2, Stdout: []byte("3\n"), Stderr: []byte("no note\n"), Files: map[string][]byte{"b.txt": {0xff}, "a.txt": []byte("x")},
		Left: []string{"c.txt is left out"}}, "add", "buy milk", "")
	ran.Sent = body(`{"args":["YWRk"],"files":{"in.txt":"eQ=="}}` + "\ntwo\nlines\n")
	unkept, idle := runOf(t, helper.AppRan{}, "add"), runOf(t, helper.AppRan{})
	unkept.Sent, idle.Sent = Body{Bytes: 70_000, Begins: []byte(`{"args":`)}, body(`{"args":null}`)
	for _, c := range []struct {
		name                  string
		x                     Exchange
		line, request, answer string
	}{
		{"a request", Exchange{Method: "POST", Target: "/a", Sent: body("hi"), Status: 201, Header: map[string][]string{"B": {"2", "3"}, "A": {"1"}}, Got: Body{Bytes: 9, Begins: []byte("ho")}},
			"POST /a → 201", "POST /a\n\nhi", "201\nA: 1\nB: 2, 3\n\nho\n… 7 more bytes"},
		{"no text", Exchange{Method: "GET", Target: "/", Status: 200, Got: body("\xff")}, "GET / → 200", "GET /\n\n", "200\n\n1 byte (not text, or not kept)"},
		{"a run", ran, `run with add "buy milk" "" → exit code 2`, `run with add "buy milk" ""` + "\n\ninput:\n\ntwo\nlines\n\nfile in.txt:\ny\n",
			"exit code 2\n\nstandard output:\n3\n\nstandard error:\nno note\n\nfile a.txt:\nx\n\nfile b.txt:\n1 byte (not text, or not kept)\nnot kept: c.txt is left out\n"},
		{"a run with more input than is kept", unkept, "run with add → exit code 0", "run with add\n70000 bytes of input and files (not kept)\n", "exit code 0\n"},
		{"a run with nothing", idle, "run with no arguments → exit code 0", "run with no arguments\n", "exit code 0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.x.Line(); got != c.line {
				t.Errorf("line: got %q, want %q", got, c.line)
			}
			if request, answer := c.x.Texts(); request != c.request || answer != c.answer {
				t.Errorf("request and response: got %q\n%q\nwant %q\n%q", request, answer, c.request, c.answer)
			}
		})
	}
}
