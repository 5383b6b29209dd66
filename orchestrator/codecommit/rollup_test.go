package codecommit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/guard"

	"github.com/google/go-cmp/cmp"
)

func TestRollup(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "out/\n*.log\n", "b.go": "package b", "a/c.go": "package a\n", "a/x.log": "no", "out/o": "no", "bin": "\x00\x01", "latin": "\xe9",
		".env": "X=1", "deploy/server.pem": "x", "gemini-key.txt": "k", "go.sum": "x", "big.txt": strings.Repeat("x", 1<<20+1), "leak.md": "it is " + secret,
		"rsa.txt": "-----BEGIN RSA PRIVATE KEY-----", ".git/HEAD": "x", "sub/.git/HEAD": "x", "sub/y": "no", "logs/l": "no", "empty": "",
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	clean := func(s string) string { return strings.ReplaceAll(s, secret, "…") }
	r, err := codecommit.Roller{Root: root, Ignored: g.Ignored, Clean: clean, Without: []string{"logs"}}.Roll()
	if err != nil {
		t.Fatal(err)
	}
	want := "--- FILE .gitignore ---\nout/\n*.log\n--- FILE a/c.go ---\npackage a\n--- FILE b.go ---\npackage b\n--- FILE empty ---\n"
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, s.Path+": "+s.Why)
	}
	wantSkipped := []string{
		".env: its name says that it holds secrets", "big.txt: larger than 1024 KiB", "bin: not text", "deploy/server.pem: its name says that it holds secrets",
		"gemini-key.txt: its name says that it holds secrets", "go.sum: written by a program", "latin: not text", "leak.md: it holds a secret", "link: a link, or no file",
		"rsa.txt: it holds a secret", "sub: a repository of its own",
	}
	if diff := cmp.Diff(wantSkipped, skipped); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Bytes != len(want) || len(r.Files) != 4 || r.Files[1].Tokens != 8 {
		t.Errorf("%+v", r)
	}
	if some, err := (codecommit.Roller{Root: root, Clean: clean}).Roll("b.go", "a", "nowhere"); err != nil || len(some.Files) != 3 {
		t.Errorf("%+v, %v", some.Files, err)
	}
}
