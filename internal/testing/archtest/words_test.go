package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

func TestWordsOfThisModule(t *testing.T) {
	found, err := Words(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, places := range found {
		for _, place := range places {
			t.Error(place)
		}
	}
}

// Each archive of testdata/words has a module, and before it the expected findings.
func TestWords(t *testing.T) {
	archives, err := filepath.Glob("testdata/words/*.txtar")
	if err != nil || len(archives) < 15 {
		t.Fatalf("got %d archives, error %v, want 15 or more", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			module := fstest.MapFS{}
			for _, f := range archive.Files {
				module[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			found, err := Words(module)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, places := range found {
				for _, place := range places {
					got.WriteString(place + "\n")
				}
			}
			if diff := cmp.Diff(string(archive.Comment), got.String()); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}
