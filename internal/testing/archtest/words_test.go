package archtest

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestWordsOfThisModule(t *testing.T) {
	found, err := Words(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for dir, places := range found {
		for _, place := range places {
			if !fits(dir, unclean) {
				t.Error(place)
			}
		}
	}
	for dir := range strings.FieldsSeq(unclean) {
		if found[dir] == nil {
			t.Logf("%s is clean: take it out of unclean", dir)
		}
	}
}

func TestWords(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"a comment", "a/a.go", "// Package a is none.\npackage a\n", []string{`a/a.go:1: replace "is none"`}},
		{
			"a phrase on two lines", "a/a.go", "// Package a: it is\n// told.\npackage a\n",
			[]string{`a/a.go:1: replace "is told"`},
		},
		{
			"a message", "a/a.go", "package a\n\nvar m = \"somebody wrote it anew\"\n",
			[]string{`a/a.go:3: replace "somebody"`, `a/a.go:3: replace "anew"`},
		},
		{
			"a page",
			"a/p.md",
			"# Lest\n\nThe person reads.\n",
			[]string{`a/p.md:1: replace "Lest"`, `a/p.md:3: replace "The person"`},
		},
		{"a prompt", "prompts/x", "a folder of its own.\n", []string{`prompts/x:1: replace "of its own."`}},
		{"a script", "a/testdata/x.sh", "# goes on\n# from there\n", []string{`a/testdata/x.sh:1: replace "goes on from"`}},
		{"plain words", "a/p.md", "# The user\n\nnone, mendable, of its own kind, personal, a lesson\n", nil},
		{"input of a test", "a/testdata/p.md", "It is none.\n", nil},
		{"a function", "a/a.go", "package a\n\nfunc keep() {}\n", []string{"a/a.go:3: rename keep"}},
		{"a method", "a/a.go", "package a\n\nfunc (T) Still() {}\n", []string{"a/a.go:3: rename Still"}},
		{"a type", "a/a.go", "package a\n\ntype hollow int\n", []string{"a/a.go:3: rename hollow"}},
		{"a field", "a/a.go", "package a\n\ntype t struct{ told int }\n", []string{"a/a.go:3: rename told"}},
		{"a constant", "a/a.go", "package a\n\nconst papers = 1\n", []string{"a/a.go:3: rename papers"}},
		{
			"a local variable", "a/a.go", "package a\n\nfunc f() { came := 1; _ = came }\n",
			[]string{"a/a.go:3: rename came"},
		},
		{"a plain name", "a/a.go", "package a\n\nfunc f(words []string) { keep := 1; _ = keep }\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Words(fstest.MapFS{tt.file: {Data: []byte(tt.text)}})
			if err != nil {
				t.Fatal(err)
			}
			dir, _, _ := strings.Cut(tt.file, "/")
			if diff := cmp.Diff(tt.want, found[dir]); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}
