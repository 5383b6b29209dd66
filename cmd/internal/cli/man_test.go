package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestManual(t *testing.T) {
	code, page, stderr := call(t.Context(), "man")
	if code != 0 || stderr != "" {
		t.Fatalf("abl man: got exit code %d, stderr %q, want 0 and none", code, stderr)
	}
	t.Run("golden", func(t *testing.T) {
		const path = "testdata/man.1"
		if *update {
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if page != string(want) {
			t.Errorf("abl man: got\n%s\nwant the text of %s (-update writes it)", page, path)
		}
	})
	t.Run("what help shows", func(t *testing.T) {
		plain := strings.NewReplacer(`\-`, "-", `\e`, `\`).Replace(page)
		for _, name := range []string{"", "phase", "images", "images save", "logs"} {
			_, text, _ := call(t.Context(), strings.Fields(name+" --help")...)
			for _, flag := range regexp.MustCompile(`(?m)^  .*?(--[a-z-]+)`).FindAllStringSubmatch(text, -1) {
				if !strings.Contains(plain, flag[1]) {
					t.Errorf("manual page: got no %s of abl %s, want it", flag[1], name)
				}
			}
			if !strings.Contains(plain, strings.TrimRight("\n.SS abl "+name, " ")) {
				t.Errorf("manual page: got no section of abl %s, want one", name)
			}
		}
	})
	t.Run("source", func(t *testing.T) {
		macro := regexp.MustCompile(`^\.(TH|SH|SS|PP|TP|B|I|nf|fi)( |$)`)
		for i, line := range strings.Split(page, "\n") {
			switch {
			case len(line) > 80 || strings.TrimRight(line, " ") != line || regexp.MustCompile(`[^ -~]`).MatchString(line):
				t.Errorf("line %d: got %q, want at most 80 columns of ASCII without a blank at the end", i+1, line)
			case strings.HasPrefix(line, ".") && !macro.MatchString(line), strings.HasPrefix(line, "'"):
				t.Errorf("line %d: got %q, want no text that the formatter takes for a macro", i+1, line)
			}
		}
	})
}
