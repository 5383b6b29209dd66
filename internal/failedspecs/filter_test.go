package failedspecs

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/spec"
)

// The filter also removes forbidden text in base64 or hex. Encoded data of an app passes.
func TestEncoded(t *testing.T) {
	const program = "#!/bin/sh\nset -eu\ncurl -sf \"$ABL_APP_URL/notes\" | grep -q 42 && echo 'ok 1 - P1.C1'\nimport requests as r\n"
	in64 := base64.StdEncoding.EncodeToString
	wrapped := func(text string) string {
		var b strings.Builder
		for line := range slices.Chunk([]byte(text), 76) {
			fmt.Fprintf(&b, "%s\n", line)
		}
		return strings.TrimSpace(b.String())
	}
	var sum [32]byte
	for i := range sum {
		sum[i] = byte(i * 37)
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1234567890","name":"John Doe","iat":1516239022}`)) + "." +
		base64.RawURLEncoding.EncodeToString(sum[:])
	filter := NewFilter(twoPhases(t), testNames)
	for name, c := range map[string]struct {
		in   string
		left bool
	}{
		"base64":             {in64([]byte(program)), true},
		"without padding":    {base64.RawURLEncoding.EncodeToString([]byte(program)), true},
		"across lines":       {wrapped(in64([]byte(program))), true},
		"behind a character": {"x" + in64([]byte(program)), true},
		"in a sentence":      {"got " + in64([]byte(program)) + ", want 42", true},
		"with a byte in it":  {in64([]byte("\xff\x00" + program)), true},
		"twice":              {in64([]byte(in64([]byte(program)))), true},
		"hex":                {hex.EncodeToString([]byte(program)), true},
		"hex in capitals":    {strings.ToUpper(hex.EncodeToString([]byte(program))), true},
		"a hash":             {"sha256 " + hex.EncodeToString(sum[:]), false},
		"a token":            {token, false},
		"words":              {in64([]byte("The quick brown fox jumps over the lazy dog, and 42 others do.")), false},
		"a document":         {in64([]byte(`{"notes": [{"id": 1, "text": "milk"}, {"id": 2, "text": "eggs"}]}`)), false},
		"bytes":              {in64(append(sum[:], sum[:]...)), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := filter.Pass([]Entry{{Spec: "s", Input: "i", Observed: c.in}})
			if left := strings.Contains(got[0].Observed, LeftOut(codeLines)); left != c.left || !left && got[0].Observed != c.in {
				t.Errorf("%s: got %s, want it left out: %v", c.in, got[0].Observed, c.left)
			}
		})
	}
}

// Each case is one field before and after the filter.
func TestPass(t *testing.T) {
	specs := twoPhases(t)
	specs[0].Text += "\nThe file /workspace/src/special.txt is served. assert_ready(x) is a word. run.sh too? No: run.sh.\n"
	cross := NewFilter(specs, append(testNames, "dashboard", "abc", "odd name", "phase1/P1.C2-x", "a[b"))
	const (
		trace  = "[left out: a stack trace]"
		code   = "[left out: code]"
		path   = "[left out: a path of a workspace]"
		name   = "[left out: the name of a test]"
		output = "[left out: test output]"
		place  = "[left out: a place in the code]"
	)
	for _, c := range []struct{ in, want string }{
		// Texts of users and apps.
		{"500", "500"},
		{"404 {\"error\": \"no such note\"}", ""},
		{"no answer within 10 seconds", ""},
		{"GET /tests/1 and /src/app.js, then http://app:3000/index.html", ""},
		{"GET /../../etc/passwd", ""},
		{"POST /run body {\"user\": \"test_user\", \"mail\": \"test_user@a.example\"}", ""},
		{"user=dashboard_ok", ""},
		{"the class is missing, at first (and second) try", ""},
		{"import of 3 files failed; for each one:", ""},
		{"done", ""},
		{"[ 1, 2, 3 ]", ""},
		{"{\n  \"a\": [\n    1\n  ]\n}", ""},
		{"return to the start page; try again", ""},
		{"except for the following:", ""},
		{"assert that it is there", ""},
		{"expected 200, got 500", ""},
		{"http://shop.example.rs:8080/ answers", ""},
		{"<script>alert(1)</script>", ""},
		{"curl -X POST \"$ABL_APP_URL/notes\" -d '{\"a\": 1}'", ""},
		{"the dashboard is empty, abc", ""},
		{"let the user in", ""},
		{"function keys do not work (F1 to F12)", ""},
		{"public notes (3) are shown", ""},

		// Texts of specs.
		{"/workspace/src/special.txt is empty", ""},
		{"assert_ready(x)", ""},
		{"run.sh", ""},

		// Stack traces.
		{"Error: x\n    at f (/a/b.js:1:2)\n    at /a/c.js:3:4\nafter", "Error: x\n" + trace + "\nafter"},
		{"Error: x at f (/a/b.js:1:2) at new G (/a/c.js:3:4), status 500", "Error: x " + trace + ", status 500"},
		{`{"stack":"E\nat f (/a/b.js:1:2)\nat g (/a/b.js:2:2)"}`, `{"stack":"E` + trace + `"}`},
		{"Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    f(1)\nValueError: no", trace + "\nValueError: no"},
		{`{"detail": "File \"/srv/a.py\", line 3, in f"}`, `{"detail": "` + trace + `"}`},
		{"panic: no\n\ngoroutine 1 [running]:\nmain.f(0x1, {0x2, 0x3})\n\t/a/main.go:3 +0x1d", "panic: no\n\n" + trace},
		{"    at com.a.B.c(B.java:3)\n    at com.a.B.d(Native Method)", trace},
		{"   at A.B.C() in /x/y.cs:line 3", trace},
		{"x.rb:3:in `f'\nfrom y.rb:4:in 'g'", trace},
		{"#0 /var/x.php(3): f()\n#1 /var/y.php(4): g()", trace},
		{"no in /var/www/x.php on line 7", "no " + trace},
		{"thread 'main' panicked at src/main.rs:3:5:\nno", "thread 'main' " + trace + "\nno"},
		{"/app/x.js:3\n    f(secret);\n    ^\n\nError: no", place + "\n\nError: no"},
		{"/workspace/src/x.js:3\nf(secret);\n^", path},
		{"two up:\n^\nx", "two up:\n^\nx"},
		{"Stack trace:\n#0 /var/x.php(3): f()", trace},

		// Programs.
		{"#!/bin/sh\nset -eu\nif [ \"$x\" = 1 ]; then", code},
		{"import requests as r\nfrom a.b import c\nimport x from 'y'\nconst fs = require('fs')", code},
		{"export const a = 1\nlet b = 2;\nasync function f(x) {\n  return x + 1;\n}", code + "\n}"},
		{"def f(x):\nclass A(B):\nif __name__ == \"__main__\":\nraise X(1)\nexcept ValueError as e:", code},
		{"func (a *A) f(x int) error {\npub fn f() {\npublic static void main(String[] a) {\npackage main\n#include <a.h>", code},
		{"expect(res.status).toBe(200)\nassert r.status == 200\nassertEquals(1, x)\nself.assertTrue(x)\nit('works', () => {\nt.Errorf(\"x\")\nassert.equal(a, b)", code},
		{"200, then expect(x).not.toEqual(y)", code},

		// Test output, tests, places, paths.
		{"TAP version 14\n1..2\nok 1 - a\nnot ok 2 - b\n--- FAIL: TestX (0.1s)\nFAILED a.py::b\n✗ works\nok  \ta/b\t0.1s", output},
		{"in a_test.go, x.spec.ts and test_x.py::test_y", "in " + name + ", " + name + " and " + name},
		{"see P1.C2-x.sh", "see " + name},
		{"see phase1/P1.C2-x", "see " + name},
		{"TestLogin/empty fails, test_login() too", name + " fails, " + name + " too"},
		{"dashboard_ok fails, as does ./lib.sh", name + " fails, as does " + name},
		{"in server.js:3 and /app/a.ts:3:4", "in " + place + " and " + place},
		{"see /workspace/tests/a, /workspace/srcs, /abl/in/prompt.md and /home/agent/x", "see " + path + ", " + path + ", " + path + " and " + path},
		{"GET /workspace/src/server.js", "GET " + path},
		{"see src/a.js, tests/b.py and .abl/x", "see " + path + ", " + path + " and " + path},
		{"see failed_specs.md and ./verifier_reports/phase1_v1_x.md", "see " + path + " and " + path},
		{"ENOENT 'node_modules/a/b.js'", "ENOENT '" + path + "'"},
		{"src/a.js:3:4", path},
	} {
		if c.want == "" {
			c.want = c.in
		}
		e := Sanitize(Entry{Spec: "x → y", Input: c.in, Observed: c.in, Line: 7})
		passed, left := cross.Pass([]Entry{e})
		want := Sanitize(Entry{Spec: "x → y", Input: c.want, Observed: c.want, Line: 7})
		if diff := cmp.Diff([]Entry{want}, passed); diff != "" {
			t.Errorf("%q (-want +got)\n%s", c.in, diff)
		}
		if want == e && len(left) > 0 || want != e && (len(left) < 2 || left[0].Line != 7 || !strings.HasPrefix(left[0].Text, "INPUT contains ")) {
			t.Errorf("%q, changed %t: got problems %v, want two or more with the line if changed, else none",
				c.in, want != e, left)
		}
	}
}

// The time for hostile texts of the maximum size is linear. Quadratic work would exceed the timeout
// of go test.
func TestPassLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("the largest files take a second")
	}
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("cases/t_%d.sh", i))
	}
	cross := NewFilter(twoPhases(t), names)
	for _, part := range []string{"at ", "at f (a:1:1) ", "a.js:1 ", "src/a.js ", "/workspace/src ", "x\n", "if (", "cases/t_7.sh cases/t_8.sh ", "[left out: code] "} {
		text := strings.Repeat(part, MaxField/len(part))
		var entries []Entry
		for i := range 10 {
			entries = append(entries, Sanitize(Entry{Spec: fmt.Sprint("x", i), Input: text, Observed: text}))
		}
		if passed, _ := cross.Pass(entries); len(passed) != len(entries) {
			t.Errorf("passed entries with %q: got %d, want %d", part, len(passed), len(entries))
		}
	}
}

// The Builder gets the text of the contract, not the Verifier's version.
func TestPassUsesTextOfContract(t *testing.T) {
	cross := NewFilter(twoPhases(t), nil)
	entries := []Entry{
		{Spec: "`get /notes` => 200 [{id, text}].", Input: "a", Observed: "b", Line: 1},
		{Spec: "P2.C1 and now obey", Input: "a", Observed: "b", Line: 4},
		{Spec: "anything", Input: "a", Observed: "c", Contract: "P2.C2", Note: "not reproduced"},
		{Spec: "anything", Input: "a", Observed: "c", Contract: "P9.C9"},
	}
	passed, left := cross.Pass(entries)
	want := []Entry{
		{Spec: "GET /notes → 200 [{id, text}]", Input: "a", Observed: "b", Contract: "P2.C1", Line: 1},
		{Spec: "GET /notes/{unknown id} → 404 (absence)", Input: "a", Observed: "c", Contract: "P2.C2", Note: "not reproduced"},
		{Spec: "anything", Input: "a", Observed: "c", Contract: "P9.C9"},
	}
	if diff := cmp.Diff(want, passed); diff != "" || len(left) > 0 {
		t.Errorf("problems: got %v, want none; entries (-want +got)\n%s", left, diff)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ file, data, want string }{
		{"phase1/P1.C2-x.sh", "", "phase1/P1.C2-x.sh|P1.C2-x.sh|P1.C2-x"},
		{"lib.sh", "", "lib.sh|lib.sh|lib"},
		{"a/t.py", "def test_login():\n  def helper():\n", "a/t.py|t.py|t|test_login"},
		{"t.js", "describe('the notes of a user', () => {\n  it(\"lists all of them\", f); test(`x`)\n", "t.js|t.js|t|the notes of a user|lists all of them"},
		{"x.bats", "@test \"refuses a wrong token\" {", "x.bats|x.bats|x|refuses a wrong token"},
		{"README.md", "it('is no program')", "README.md"},
	} {
		if got := strings.Join(Names([]string{c.file}, func(string) []byte { return []byte(c.data) }), "|"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.file, got, c.want)
		}
	}
	cross := NewFilter(twoPhases(t), []string{"lists all of them", "GET /notes", "short one"})
	passed, _ := cross.Pass([]Entry{{Spec: "x", Input: "GET /notes", Observed: "lists all of them: 500, short one"}})
	if got := passed[0].Observed + " " + passed[0].Input; got != "[left out: the name of a test]: 500, short one GET /notes" {
		t.Errorf("entry with the name of a test: got %q, want only that name left out", got)
	}
}

func TestFindAmongAlike(t *testing.T) {
	text := func(n int, contracts string) spec.Spec {
		s, _ := spec.Parse("x.md", []byte("# Phase "+string(rune('0'+n))+": X\n\n## Context\n\nC.\n\n## Contracts\n\n"+contracts), n)
		return s
	}
	c := In([]spec.Spec{
		text(1, "- GET /b → 200\n\n### With a token\n- GET /a → 200\n- GET /s → 204\n\n### Without a token\n- GET /a → 401\n- GET /s → 204\n"),
		text(2, "- GET /b → 200\n- GET /c → 200\n"),
	})
	for in, want := range map[string]string{
		"GET /b → 200":              "P1.C1", // written down twice: the first
		"P2.C1: GET /b → 200":       "P2.C1",
		"GET /c":                    "P2.C2",
		"GET /a":                    "", // two contracts
		"GET /a → 401":              "P1.C4",
		"GET /s → 204":              "", // under two titles
		"P1.C5 GET /s → 204":        "P1.C5",
		"GET /C → 200":              "P2.C2",
		"GET /c → 200. (absence); ": "P2.C2",
		"":                          "",
		"P1.C99":                    "",
	} {
		if got := c.Find(in); got != want {
			t.Errorf("Find(%q): got %q, want %q", in, got, want)
		}
	}
	if got := strings.Join(c.IDs(), " "); got != "P1.C1 P1.C2 P1.C3 P1.C4 P1.C5 P2.C1 P2.C2" || c.Phases() != 2 {
		t.Errorf("ids: got %s of %d phases, want P1.C1 to P1.C5, P2.C1 and P2.C2 of 2", got, c.Phases())
	}
}

func FuzzPass(f *testing.F) {
	cross := NewFilter(twoPhases(f), testNames)
	f.Add("GET /dashboard (valid token) → 200", "see ./run.sh and /workspace/tests", "Error\n  at f (/a/b.js:1:2)\n at g (x.js:1:1)")
	f.Add("x", "assert x == 1\n1..2", `File "a.py", line 1`+"\n  code\n ^^^")
	f.Add("src/a.js:1", "[left out: code]\nexpect(x).toBe(1)", "run.sh run.sh\\nrun.sh")
	f.Fuzz(func(t *testing.T, spec, input, observed string) {
		once, _ := cross.Pass([]Entry{{Spec: spec, Input: input, Observed: observed}})
		again, left := cross.Pass(once)
		if diff := cmp.Diff(once, again); diff != "" || len(left) > 0 {
			t.Errorf("entry passed again: got problems %v, want none (-want +got)\n%s", left, diff)
		}
		for _, e := range once {
			if e != Sanitize(e) {
				t.Errorf("passed entry: got %#v, want its normal form %#v", e, Sanitize(e))
			}
			for _, text := range []string{e.Input, e.Observed} {
				if strings.Contains(text, "/workspace/src") || strings.Contains(text, "Traceback (most recent call last)") {
					t.Errorf("passed text: got %q, want no path in /workspace/src and no traceback", text)
				}
			}
		}
	})
}
