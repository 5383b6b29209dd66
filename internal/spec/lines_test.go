package spec

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what was found into testdata")

// odd replaces escapes with characters that editors and archives would change.
var odd = strings.NewReplacer("␍", "\r", "⍽", "\u00a0", "⌑", "\u200b", "␉", "\t", "⏎", "\n")

// A line among contracts is a contract with the same meaning as written, or an error or a warning
// with its line number. In testdata/lines.txt each line with "=" is a text, followed by the
// expected result. The text is below "## Contracts" unless it begins with a title.
func TestLines(t *testing.T) {
	const file = "testdata/lines.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	count := 0
	for part := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n=") {
		in, want, _ := strings.Cut(part, "\n")
		comment := ""
		if at := strings.LastIndex(want, "\n#"); at >= 0 {
			want, comment = want[:at], want[at:]
		} else if strings.HasPrefix(want, "#") {
			want, comment = "", "\n"+want
		}
		if now.Len() == 0 {
			now.WriteString(part)
			continue
		}
		count++
		t.Run(in, func(t *testing.T) {
			got := becomes(t, in)
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("(-want +got)\n%s", diff)
			}
			now.WriteString("\n=" + strings.TrimSuffix(in+"\n"+got, "\n") + comment)
		})
	}
	if count < 200 {
		t.Errorf("texts: got %d, want at least 200", count)
	}
	if *update {
		if err := os.WriteFile(file, []byte(now.String()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var proposal = regexp.MustCompile(`write it as: (.*)$`)

// becomes returns contracts and problems by line: "1: …" is a contract, "1! code" an error, "1~
// code" a warning, each with its proposal.
func becomes(t *testing.T, in string) string {
	text, before := odd.Replace(in), 0
	if !strings.HasPrefix(text, "# Phase 1") {
		text, before = "# Phase 1: T\n## Contracts\n"+text, 2
	}
	s, problems := Parse("phase1.md", []byte(text), 1)
	law(t, s)
	var lines []string
	for at := 1; at <= strings.Count(s.Text, "\n")+1; at++ {
		for _, c := range s.Contracts {
			if c.Line == at {
				lines = append(lines, fmt.Sprintf("\t%d: %s", at-before, c.Says()))
			}
		}
		for _, p := range problems {
			if p.Line != at {
				continue
			}
			mark := "~"
			if p.Stops() {
				mark = "!"
			}
			hint := proposed(p)
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d%s %s %s", at-before, mark, p.Code, hint)))
			lines[len(lines)-1] = "\t" + lines[len(lines)-1]
		}
	}
	return strings.Join(lines, "\n")
}

// proposed returns the contract that the hint of a problem proposes, "" without one.
func proposed(p Problem) string {
	if m := proposal.FindStringSubmatch(p.Hint); m != nil {
		return m[1]
	}
	return ""
}
