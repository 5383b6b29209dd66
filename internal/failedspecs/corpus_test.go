package failedspecs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"abl/internal/spec"
)

var update = flag.Bool("update", false, "write what was found into testdata")

// odd replaces escapes with characters that editors and archives would change: ⟦x..⟧ with a byte, ⟦..⟧
// with a character. ∎ ends the file.
func odd(text string) []byte {
	text, _, _ = strings.Cut(text, "∎")
	text = strings.NewReplacer("␍", "\r", "⍽", "\u00a0", "␉", "\t").Replace(text)
	return []byte(regexp.MustCompile(`⟦x?[0-9a-f]+⟧`).ReplaceAllStringFunc(text, func(m string) string {
		m = strings.Trim(m, "⟦⟧")
		n, _ := strconv.ParseUint(strings.TrimPrefix(m, "x"), 16, 32)
		if m[0] == 'x' {
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	}))
}

// twoPhases are the specs for the corpus.
func twoPhases(t testing.TB) []spec.Spec {
	t.Helper()
	var specs []spec.Spec
	for i, contracts := range []string{
		"- POST /auth/login {valid credentials} → 200 {token}\n- GET /dashboard (valid token) → 200\n",
		"- GET /notes → 200 [{id, text}]\n- GET /notes/{unknown id} → 404 (absence)\n",
	} {
		text := fmt.Sprintf("# Phase %d: Notes\n\n## Context\n\nSome.\n\n## Contracts\n\n%s", i+1, contracts)
		s, problems := spec.Parse(fmt.Sprintf("phase%d.md", i+1), []byte(text), i+1)
		for _, p := range problems {
			if p.Stops() {
				t.Fatal(p)
			}
		}
		specs = append(specs, s)
	}
	return specs
}

// testNames are files of the Verifier.
var testNames = []string{"run.sh", "cases/dashboard_ok.sh", "dashboard_ok.sh", "dashboard_ok", "lib.sh"}

// The corpus has files as people and models write them. Each is followed by the expected result:
// the verdict, the entries with line, contract and values, "?" before incomplete ones, "!" before
// problems, and ">" before an entry for the Builder that differs.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/files/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("files of the corpus: got %d, error %v, want at least 60", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil || len(a.Files) != 2 {
				t.Fatalf("parts of the file: got %d, error %v, want 2", len(a.Files), err)
			}
			specs := twoPhases(t)
			r := In(specs).Name(Parse(odd(string(a.Files[0].Data))))
			law(t, r)
			if *update {
				a.Files[1].Data = []byte(found(t, r, specs))
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), found(t, r, specs)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// corpus returns the files as written.
func corpus(t testing.TB) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/files/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, odd(string(a.Files[0].Data)))
	}
	return all
}

func found(t *testing.T, r Result, specs []spec.Spec) string {
	t.Helper()
	var b strings.Builder
	one := func(mark string, e Entry) {
		fmt.Fprintf(&b, "%s%d %s\n", mark, e.Line, e.Contract)
		for f, text := range []string{e.Spec, e.Input, e.Observed} {
			fmt.Fprintf(&b, "  %s %q\n", field(f), text)
		}
	}
	fmt.Fprintln(&b, r.Kind)
	for _, e := range r.Entries {
		one("", e)
	}
	for _, e := range r.Incomplete {
		one("? ", e)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "! %d %s\n", p.Line, p.Text)
	}
	cross := NewFilter(specs, testNames)
	for _, e := range r.Entries {
		passed, left := cross.Pass([]Entry{e})
		if says, _ := cross.contracts.Says(e.Contract); passed[0].Spec == says {
			e.Spec = says
		}
		if passed[0] != e {
			one("> ", passed[0])
		}
		for _, p := range left {
			fmt.Fprintf(&b, "> ! %d %s\n", p.Line, p.Text)
		}
	}
	return b.String()
}
