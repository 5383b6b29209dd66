package spec

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what was found into testdata")

// odd stands for what editors and archives would change.
var odd = strings.NewReplacer("␍", "\r", "⍽", "\u00a0", "␉", "\t")

// The corpus is specs as people write them: each file has a spec and what is to
// be found in it, one line a contract, "!" before errors, "~" before warnings.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/specs/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, problems := Parse("phase1.md", []byte(odd.Replace(string(a.Files[0].Data))), 1)
			law(t, s)
			got := found(s, problems)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "found", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 {
				t.Fatal("it does not say what is to be found")
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// found prints contracts and problems.
func found(s Spec, problems []Problem) string {
	var b strings.Builder
	for _, c := range s.Contracts {
		fmt.Fprintf(&b, "%d %s %s\n", c.Line, c.ID, c.Says())
	}
	for _, p := range problems {
		mark := "~"
		if p.Stops() {
			mark = "!"
		}
		fmt.Fprintf(&b, "%s %d %s\n", mark, p.Line, p.Code)
	}
	return b.String()
}
