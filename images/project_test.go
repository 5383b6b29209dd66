package images

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestCheckDockerfile(t *testing.T) {
	for text, want := range map[string]string{
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nRUN true":                 "",
		"# c\n\narg ABL_IMAGE\nfrom $ABL_IMAGE AS x\nRUN a \\\n  b":  "",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS a\nFROM debian\nFROM a": "",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS a\nFROM a AS b\nFROM b": "",
		"":              "first instructions",
		"ARG ABL_IMAGE": "first instructions",
		"FROM debian":   "first instructions",
		"ARG ABL_IMAGE=debian\nFROM ${ABL_IMAGE}":                         "first instructions",
		"ARG ABL_IMAGE\n\n# c\nFROM debian":                               "first instructions",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nFROM other":                    "last stage",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS a\nFROM debian AS a\nFROM a": "last stage",
	} {
		t.Run(text, func(t *testing.T) {
			err := checkDockerfile(text)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want %q", text, err, want)
			}
		})
	}
}

func TestProjectFolder(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "builder.Dockerfile")
	write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\n")
	write(t, filepath.Join(dir, "Dockerfile"), "another")
	write(t, filepath.Join(dir, ".dockerignore"), "# big\n*.log\nskip\n!keep.log\n")
	for _, f := range []string{"a.txt", "b.log", "keep.log", "skip/x", "sub/c", "sub/d.log"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, f), f)
	}
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(dir, "out")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err := projectRecipe(own, "abl/tools:1")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pack(&b, r.sealed("amd64").files); err != nil {
		t.Fatal(err)
	}
	files, err := untar(&b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range files {
		got = append(got, name)
	}
	slices.Sort(got)
	if want := "Dockerfile a.txt keep.log out sub/ sub/c sub/d.log"; strings.Join(got, " ") != want {
		t.Errorf("got context %q, want %q", got, want)
	}
	if files["out"] != "-> /etc/passwd" || files["a.txt"] != "a.txt" ||
		!strings.HasPrefix(files["Dockerfile"], "ARG ABL_IMAGE") {
		t.Errorf("context: got %q, want out as a link, a.txt, and builder.Dockerfile as Dockerfile", files)
	}
}

func TestInvalidProjectDockerfiles(t *testing.T) {
	dir := t.TempDir()
	ok := "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\n"
	plain, big, linked := filepath.Join(dir, "plain"), filepath.Join(dir, "big"), filepath.Join(dir, "linked")
	for _, d := range []string{plain, big, linked} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(plain, "Dockerfile"), "FROM debian")
	write(t, filepath.Join(big, "Dockerfile"), ok)
	write(t, filepath.Join(big, "data"), "")
	if err := errors.Join(os.Truncate(filepath.Join(big, "data"), maxContext+1),
		os.Symlink("../big/Dockerfile", filepath.Join(linked, "Dockerfile"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, want string }{
		"not-abls":   {plain, "ARG ABL_IMAGE"},
		"too-large":  {big, "200 MB"},
		"a-link":     {linked, "but a link"},
		"not-there":  {filepath.Join(dir, "away"), "does not exist"},
		"bad-ignore": {badIgnore(t, ok), ".dockerignore"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := projectRecipe(filepath.Join(c.dir, "Dockerfile"), "abl/tools:1")
			if !errors.Is(err, ErrDockerfile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func badIgnore(t *testing.T, dockerfile string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Dockerfile"), dockerfile)
	write(t, filepath.Join(dir, ".dockerignore"), "a\n!\n")
	return dir
}

func TestIgnore(t *testing.T) {
	for _, c := range []struct {
		rules, name string
		want        bool
	}{
		{"node_modules", "node_modules", true},
		{"node_modules", "node_modules/a/b", true},
		{"node_modules", "sub/node_modules", false},
		{"**/node_modules", "sub/node_modules/x", true},
		{"**/node_modules", "node_modules", true},
		{"/a/*.txt", "a/b.txt", true},
		{"a/*.txt", "a/b/c.txt", false},
		{"a/**", "a/b/c.txt", true},
		{"?.go", "a.go", true},
		{"?.go", "ab.go", false},
		{"*.go\n!main.go", "main.go", false},
		{"!main.go\n*.go", "main.go", true},
		{"a.b", "axb", false},
		{"é*", "éx", true},
		{"# a\n\n ./x/ ", "x/y", true},
	} {
		t.Run(c.rules+" "+c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), ".dockerignore")
			write(t, file, c.rules)
			rules, err := readIgnore(file)
			if err != nil {
				t.Fatalf("%q: %v", c.rules, err)
			}
			if got, err := rules.MatchesOrParentMatches(c.name); err != nil || got != c.want {
				t.Errorf("%q ignores %q: got %v, error %v, want %v", c.rules, c.name, got, err, c.want)
			}
		})
	}
}

func FuzzCheckDockerfile(f *testing.F) {
	f.Add("ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS a\nFROM a")
	f.Add("ARG\\\n")
	f.Fuzz(func(t *testing.T, text string) {
		if checkDockerfile(text) != nil {
			return
		}
		if err := checkDockerfile("# first\n" + text + "\n# last\n"); err != nil {
			t.Errorf("%q with comments around it: got error %v, want none", text, err)
		}
		if checkDockerfile(text+"\nFROM debian\n") == nil {
			t.Errorf("%q with a last stage on another image: got no error, want one", text)
		}
	})
}
