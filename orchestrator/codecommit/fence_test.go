package codecommit_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"abl/orchestrator/codecommit"
)

// kinds distinguishes errors by their texts.
var kinds = [][2]string{
	{"more than the limit", "too_large"}, {"has no ", "unterminated"}, {"without a beginning", "stray"}, {"is inside of", "nested"},
	{"but also gives", "conflict"}, {"changes no file", "no_operations"}, {"gives no file", "no_operations"}, {"", "malformed"},
}

// show returns edits, or the kind and line of an error, as text.
func show(edits []codecommit.Edit, err error) string {
	if err != nil {
		line := 0
		fmt.Sscanf(err.Error(), "line %d:", &line)
		i := slices.IndexFunc(kinds, func(k [2]string) bool { return strings.Contains(err.Error(), k[0]) })
		return fmt.Sprintf("%s@%d", kinds[i][1], line)
	}
	var all []string
	for _, e := range edits {
		if e.Delete {
			all = append(all, "-"+e.Path)
		} else {
			all = append(all, fmt.Sprintf("%s=%q", e.Path, e.Content))
		}
	}
	return strings.Join(all, " ")
}

// parse reads an answer of the protocol v2.
func parse(text string) ([]codecommit.Edit, error) {
	a, err := codecommit.ParseAnswer(text, false)
	return a.Edits, err
}

func parseV1(text string) (codecommit.Answer, error) { return codecommit.ParseAnswer(text, true) }

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one file", "^^^a.go\npackage a\n^^^end\n", `a.go="package a\n"`},
		{"no line end at the end", "^^^a\nx\n^^^end", `a="x\n"`},
		{"empty file", "^^^a\n^^^end\n", `a=""`},
		{"blank lines are content", "^^^a\n\nx\n\n^^^end\n", `a="\nx\n\n"`},
		{"blanks at line ends are content", "^^^a\nx \t\n^^^end\n", `a="x \t\n"`},
		{"prose around and between", "Sure:\n^^^a\nx\n^^^end\nand\n^^^b\ny\n^^^end\nbye", `a="x\n" b="y\n"`},
		{"deletion", "^^^a\n^^^delete\n", "-a"},
		{"deletion then file", "^^^a\n^^^delete\n^^^b\n^^^end\n", `-a b=""`},
		{"blanks after fences", "^^^a \t\nx\n^^^end  \n", `a="x\n"`},
		{"CRLF", "^^^a\r\nx\r\n^^^end\r\n", `a="x\r\n"`},
		{"byte order mark", "\ufeff^^^a\nx\n^^^end\n", `a="x\n"`},
		{"fence in a string of code", "^^^a\ns := \"^^^end\"\n ^^^end\n^^^end\n", `a="s := \"^^^end\"\n ^^^end\n"`},
		{"more than three marks", "^^^a\nTitle\n^^^^^\n^^^^end\n^^^end\n^^^^\n", `a="Title\n^^^^^\n^^^^end\n"`},
		{"other protocol's marks", "&&&start\n%%%end\n$$$start\n^^^a\n$$$end\n^^^end\n", `a="$$$end\n"`},
		{"path with a space", "^^^my file.txt\n^^^end\n", `my file.txt=""`},
		{"a file called ending", "^^^ending\n^^^end\n", `ending=""`},
		{"not valid UTF-8", "^^^a\n\xff\x00\n^^^end\n", `a="\xff\x00\n"`},

		{"nothing", "", "no_operations@0"},
		{"prose alone", "I cannot do that.\n", "no_operations@0"},
		{"cut off", "^^^a\nx\n", "unterminated@1"},
		{"cut off in the fence", "^^^a\nx\n^^^en", "nested@3"},
		{"stray end", "x\n^^^end\n", "stray@2"},
		{"stray end after a file", "^^^a\n^^^end\n^^^end\n", "stray@3"},
		{"stray delete", "^^^delete\n", "stray@1"},
		{"delete after content", "^^^a\nx\n^^^delete\n", "malformed@3"},
		{"delete after a blank line", "^^^a\n\n^^^delete\n", "malformed@3"},
		{"deletion with an end", "^^^a\n^^^delete\n^^^end\n", "stray@3"},
		{"forgotten end", "^^^a\nx\n^^^b\ny\n^^^end\n", "nested@3"},
		{"no path", "^^^\n^^^end\n", "malformed@1"},
		{"blank before the path", "^^^ a\n^^^end\n", "malformed@1"},
		{"bare marks in a file", "^^^a\n^^^\n^^^end\n", "nested@2"},
		{"indented", "  ^^^a\nx\n  ^^^end\n", "no_operations@0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(parse(c.in)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 2<<20) + "\n"
	edits, err := parse("^^^a\n" + long + long + "^^^end\n")
	if err != nil || len(edits) != 1 || edits[0].Content != long+long {
		t.Errorf("edits of long lines: got %d, %v, want one with both lines", len(edits), err)
	}
	if got := show(parse(strings.Repeat("x", codecommit.MaxAnswer+1))); got != "too_large@0" {
		t.Errorf("answer of %d bytes: got %s, want too_large@0", codecommit.MaxAnswer+1, got)
	}
}

func TestParseV1(t *testing.T) {
	show := func(a codecommit.Answer, err error) string {
		out := show(a.Edits, err)
		if len(a.Said) > 0 {
			out += fmt.Sprintf(" said%q", a.Said)
		}
		if len(a.Thoughts) > 0 {
			out += fmt.Sprintf(" thoughts%q", a.Thoughts)
		}
		if len(a.Calm) > 0 {
			out += fmt.Sprintf(" calm%q", a.Calm)
		}
		return strings.TrimSpace(out)
	}
	for _, c := range []struct{ name, in, want string }{
		{"all but calm", "&&&start\nhi\n&&&end\n%%%start\nhm\n%%%end\n^^^a\nx\n^^^end\n", `a="x\n" said["hi\n"] thoughts["hm\n"]`},
		{"calm", "$$$start\nall is well\n$$$end\n", `calm["all is well\n"]`},
		{"calm twice", "$$$start\na\n$$$end\n$$$start\nb\n$$$end\n", `calm["a\n" "b\n"]`},
		{"many of each", "&&&start\na\n&&&end\n&&&start\nb\n&&&end\n^^^x\n^^^end\n^^^y\n^^^end\n", `x="" y="" said["a\n" "b\n"]`},
		{"odd blanks", "  &&& start \t\r\nhi\r\n\t&&& end\n ^^^ src/a.go  \nx\n  ^^^  end \n", `src/a.go="x\n" said["hi\r\n"]`},
		{"prose is ignored", "Well.\n^^^a\n^^^end\nDone.\n", `a=""`},
		{"underlines in a file", "^^^a\n    let x\n    ^^^ expected\n    ^^^\n    ^^^^^\n^^^end\n", `a="    let x\n    ^^^ expected\n    ^^^\n    ^^^^^\n"`},
		{"other words after the marks", "^^^a\n%%%% Title\n%%% Section\n&&&x\n$$$\n^^^end\n", `a="%%%% Title\n%%% Section\n&&&x\n$$$\n"`},

		{"nothing", "", "no_operations@0"},
		{"words alone, heard", "&&&start\nhi\n&&&end\n", `no_operations@0 said["hi\n"]`},
		{"calm and files", "$$$start\n$$$end\n^^^a\n^^^end\n", "conflict@3"},
		{"no end", "^^^a\nx\n", "unterminated@1"},
		{"no end of words", "&&&start\nhi\n^^^a\n^^^end\n", "unterminated@1"},
		{"words heard before another fault", "&&&start\nhi\n&&&end\n^^^a\nx\n", `unterminated@4 said["hi\n"]`},
		{"stray end", "^^^end\n", "stray@1"},
		{"stray end of thoughts", "^^^a\n^^^end\n%%%end\n", "stray@3"},
		{"nested, same kind", "^^^a\n^^^b\n^^^end\n^^^end\n", "nested@2"},
		{"nested, indented", "^^^a\n  ^^^b.go\n^^^end\n", "nested@2"},
		{"nested words", "&&&start\n&&&start\n&&&end\n&&&end\n", "nested@2"},
		{"nested, other kind", "^^^a\n&&&start\n&&&end\n^^^end\n", `nested@2 said[""]`},
		{"overlapping", "%%%start\n^^^a\n%%%end\n^^^end\n", "nested@2"},
		{"delete", "^^^a\n^^^delete\n", "malformed@2"},
		{"delete, indented", "^^^a\n  ^^^ delete\n^^^end\n", "malformed@2"},
		{"no path", "^^^\n^^^end\n", "malformed@1"},
		{"calm cut off", "$$$start\nx", "unterminated@1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(parseV1(c.in)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// bare removes the positions of edits.
func bare(edits []codecommit.Edit) []codecommit.Edit {
	var out []codecommit.Edit
	for _, e := range edits {
		e.Line = 0
		out = append(out, e)
	}
	return out
}

// Parsed edits are the same after they are written and parsed again, and contain no invented text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"^^^a\nx\n^^^end\n", "^^^a\n^^^delete\n", "p\r\n^^^a\r\n\r\n^^^end", "^^^^\n^^^a\n^^^b\n^^^end"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		edits, err := parse(in)
		if err != nil {
			if edits != nil {
				t.Fatalf("edits of %q: got %v with error %v, want none", in, edits, err)
			}
			return
		}
		again, err := parse(render(edits))
		if err != nil || !reflect.DeepEqual(bare(edits), bare(again)) {
			t.Fatalf("edits of %q, rendered and parsed again: got %v, %v, want %v", in, again, err, edits)
		}
		for _, e := range edits {
			if !strings.Contains(in, e.Content) || e.Content != "" && e.Content[len(e.Content)-1] != '\n' {
				t.Fatalf("edit of %q: got the content %q, want whole lines of it", in, e.Content)
			}
		}
	})
}

func FuzzParseV1(f *testing.F) {
	for _, s := range []string{"^^^a\nx\n^^^end\n", "&&&start\nx\n&&&end\n$$$start\n$$$end", " %%% start\n %%%end\r\n^^^ a\n ^^^\n ^^^end"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, err := parseV1(in)
		if err != nil {
			if a.Edits != nil || a.Thoughts != nil || a.Calm != nil {
				t.Fatalf("answer %q: got %+v with error %v, want no content with it", in, a, err)
			}
			return
		}
		again, err := parseV1(renderV1(a))
		a.Edits, again.Edits = bare(a.Edits), bare(again.Edits)
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("answer %q, rendered and parsed again: got %+v, %v, want %+v", in, again, err, a)
		}
	})
}

// render writes edits as an answer. It is the inverse of ParseAnswer for contents that
// are empty or end a line, and have no fence among their lines.
func render(edits []codecommit.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString("^^^" + e.Path + "\n")
		if e.Delete {
			b.WriteString("^^^delete" + "\n")
			continue
		}
		b.WriteString(e.Content + "^^^end\n")
	}
	return b.String()
}

// renderV1 is the inverse of ParseAnswerV1.
func renderV1(a codecommit.Answer) string {
	var b strings.Builder
	put := func(mark, word, content string) { b.WriteString(mark + word + "\n" + content + mark + "end" + "\n") }
	for _, s := range a.Said {
		put("&&&", "start", s)
	}
	for _, s := range a.Thoughts {
		put("%%%", "start", s)
	}
	for _, e := range a.Edits {
		path := e.Path
		if strings.HasPrefix(path, "^") {
			path = " " + path // four carets are not a fence
		}
		put("^^^", path, e.Content)
	}
	for _, s := range a.Calm {
		put("$$$", "start", s)
	}
	return b.String()
}
