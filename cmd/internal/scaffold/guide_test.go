package scaffold

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page for coding agents names every rule of abl spec lint and every exit code of a phase.
func TestGuideIsComplete(t *testing.T) {
	guide := Guide("found\n")
	if !strings.HasSuffix(guide, "\nfound\n") {
		t.Errorf("end of the guide: got %q, want the findings", guide[len(guide)-40:])
	}
	for file, rows := range map[string]string{
		"../../../docs/specs.md": "(?m)^- `([a-z-]+)`: ",
	} {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(rows).FindAllStringSubmatch(string(page), -1)
		if len(found) < 30 {
			t.Fatalf("rules in %s: got %d, want 30 or more", file, len(found))
		}
		for _, m := range found {
			if !strings.Contains(guide, "`"+m[1]+"`") {
				t.Errorf("guide: got no rule %s of %s, want it", m[1], file)
			}
		}
	}
}
